# sbatch, salloc, #SBATCH, --export, arrays, and the flag's own forms.
# shellcheck shell=bash disable=SC2154,SC2015 # $out and the like are the suite's; die ends the case

# batch FILE-TEXT [SBATCH-OPTION...]: waits for the job; its output is in $out.
batch() {
  local text=$1
  shift
  printf '%s\n' "$text" >"$home/job.sh"
  rm -f "$home"/job.*.out
  run sbatch -Q -W --output=job.%a.out "$@" job.sh
  cat "$home"/job.*.out >"$out" 2>/dev/null || true
}

case_submit_01_sbatch_flag_reaches_srun() {
  local form
  for form in --rdma-tune --rdma-tune=auto; do
    batch "#!/bin/bash
env | grep -E '^NCCL_|^RDMA_TUNE' | sed 's/^/batch /'
srun -n2 $work/task.sh" -N2 --gpus-per-node=4 $form
    ended 0
    has "$out" '^1 RDMA_TUNE_PROFILE=rt1;nodes=2;'
    lacks "$out" '^batch ' # the script's own step is a shell, and stays one
  done
}

case_submit_02_sbatch_directive() {
  batch "#!/bin/bash
#SBATCH -N2 --gpus-per-node=4
#SBATCH --rdma-tune
srun -n2 $work/task.sh"
  ended 0
  has "$out" '^1 RDMA_TUNE_PROFILE='
  batch "#!/bin/bash
#SBATCH -N2 --gpus-per-node=4
#SBATCH --rdma-tune=bind,verbose
srun -n2 $work/task.sh"
  ended 0
  has "$out" '^1 NCCL_IB_HCA='
  lacks "$out" '^1 RDMA_TUNE_PROFILE='
}

case_submit_03_inner_flag_wins() {
  batch "#!/bin/bash
srun -n2 --rdma-tune=off $work/task.sh" -N2 --gpus-per-node=4 --rdma-tune
  ended 0
  ranks_ran 2
  untouched
  batch "#!/bin/bash
srun -n2 --rdma-tune=bind $work/task.sh" -N2 --gpus-per-node=4 --rdma-tune=off
  ended 0
  has "$out" '^1 NCCL_IB_HCA='
}

case_submit_04_salloc() {
  run salloc -Q -N2 --gpus-per-node=4 --rdma-tune srun -n2 "$work/task.sh"
  ended 0
  has "$out" '^1 RDMA_TUNE_PROFILE='
  run salloc -Q -N2 --gpus-per-node=4 --rdma-tune srun -n2 --rdma-tune=off "$work/task.sh"
  ended 0
  untouched
}

case_submit_05_export_none_and_names() {
  local names
  for names in NONE SPECIAL=1 PATH,SPECIAL=1; do
    run srun --export="$names" -N2 -n2 --gpus-per-node=4 --rdma-tune "$work/task.sh"
    ended 0
    has "$out" '^1 RDMA_TUNE_PROFILE=rt1'
    has "$out" '^1 NCCL_IB_HCA==mlx5_3:1,'
  done
  batch "#!/bin/bash
srun -n2 $work/task.sh" -N2 --gpus-per-node=4 --export=NONE --rdma-tune
  ended 0
  has "$out" '^1 RDMA_TUNE_PROFILE=rt1'
}

case_submit_06_job_array() {
  batch "#!/bin/bash
srun -n2 $work/task.sh" -N2 --gpus-per-node=4 --array=1-2 --rdma-tune
  ended 0
  [ -s "$home/job.1.out" ] && [ -s "$home/job.2.out" ] || die "an element did not run"
  count_is "$out" '^1 RDMA_TUNE_PROFILE=rt1;nodes=2' 2
}

case_submit_07_requeue() {
  printf '%s\n' '#!/bin/bash' "srun -n2 $work/task.sh" 'sleep 20' >"$home/job.sh"
  rm -f "$home/requeue.out"
  run sbatch --parsable --output=requeue.out --open-mode=append --requeue -N2 --gpus-per-node=4 --rdma-tune job.sh
  ended 0
  local job i=0
  job=$(cat "$out")
  until grep -q '^1 open=' "$home/requeue.out" 2>/dev/null; do sleep 0.1; ((i++ < 100)) || die "the job did not start"; done
  on head scontrol requeue "$job"
  # slurmd refuses a job whose credential is not younger, in whole seconds, than the last one's end.
  sleep 3
  # A requeued job waits two minutes unless it is told otherwise.
  i=0
  until [ "$(grep -c '^1 open=' "$home/requeue.out")" = 2 ]; do
    # Not before its first run has left the nodes.
    if [ "$(on head squeue -h -j "$job" -o %T 2>/dev/null)" = PENDING ] && all_idle; then
      on head scontrol update jobid="$job" starttime=now 2>/dev/null || true
    fi
    sleep 0.2
    ((i++ < 100)) || die "the job did not start again: $(tail -n 4 "$home/requeue.out") $(on head scontrol --oneliner show job "$job" | cut -c1-300)"
  done
  on head scancel "$job"
  cp "$home/requeue.out" "$out"
  count_is "$out" '^1 RDMA_TUNE_PROFILE=rt1' 2
  local profiles
  profiles=$(grep '^1 RDMA_TUNE_PROFILE=rt1' "$out" | sort -u | wc -l)
  [ "$profiles" = 2 ] || die "the restarted job did not measure anew"
}

case_submit_08_bad_words_submit_nothing() {
  local word
  for word in fast budget=0 auto,off strict=perhaps ''strict,''; do
    run srun --rdma-tune="$word" "$work/task.sh"
    failed_run
    ranks_ran 0
    has "$err" 'rdma-tune: --rdma-tune=.*: '
    run salloc --rdma-tune="$word" true
    failed_run
    run sbatch --rdma-tune="$word" --wrap true
    failed_run
    lacks "$out" 'Submitted'
    has "$err" 'Invalid --rdma-tune argument'
  done
  [ -z "$(on head squeue -h)" ] || die "a job was submitted"
}

case_submit_09_help_submits_nothing() {
  local command
  for command in srun sbatch salloc; do
    run $command --rdma-tune=help "$work/task.sh"
    ended 0
    has "$out" '^  strict '
    lacks "$out" 'host='
    lacks "$err" .
  done
  [ -z "$(on head squeue -h)" ] || die "a job was submitted"
  run srun --help
  has "$out" '\[rdma-tune\]'
}

case_submit_10_environment_variables() {
  run env RDMA_TUNE_MODE=bind srun -N2 -n2 --gpus-per-node=4 "$work/task.sh"
  ended 0
  has "$out" '^1 NCCL_IB_HCA='
  run env RDMA_TUNE_MODE=bind srun --export=NONE -N2 -n2 --gpus-per-node=4 "$work/task.sh"
  ended 0
  has "$out" '^1 NCCL_IB_HCA='
  run env RDMA_TUNE_BUDGET=soon srun -N2 -n2 --rdma-tune "$work/task.sh"
  ended 0
  ranks_ran 2
  told_once 'RDMA_TUNE_BUDGET: expected a number'
}
