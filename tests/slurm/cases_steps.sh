# The ways to start a step, and what its tasks get.
# shellcheck shell=bash disable=SC2154,SC2015,SC2016 # $out and the like are the suite's; die ends the case

# Four tasks on each of four nodes, one GPU each.
all16=(srun -N4 -n16 --ntasks-per-node=4 --gpus-per-node=4)

case_step_01_without_flag_nothing_changes() {
  faked
  run "${all16[@]}" "$work/task.sh"
  ended 0
  ranks_ran 16
  untouched
  lacks "$err" rdma-tune
  lacks "$out" SLURM_RDMA_TUNE
  [ ! -s "$work/fake.log" ] || die "the program was started: $(cat "$work/fake.log")"
}

case_step_02_first_step_is_bound_and_measured() {
  run "${all16[@]}" --rdma-tune "$work/task.sh"
  ended 0
  ranks_ran 16
  # The HCA below the same switch, by each node's own names.
  expect 0 UCX_NET_DEVICES mlx5_0:1
  expect 3 UCX_NET_DEVICES mlx5_3:1
  expect 4 UCX_NET_DEVICES mlx5_3:1
  expect 5 UCX_NET_DEVICES mlx5_2:1
  expect 6 UCX_NET_DEVICES mlx5_0:1
  expect 15 UCX_NET_DEVICES mlx5_3:1
  expect 0 NCCL_IB_HCA =mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1
  expect 5 NCCL_IB_HCA "$(of 4 NCCL_IB_HCA)"
  expect 5 CUDA_DEVICE_ORDER PCI_BUS_ID
  # The node's GPUs stay visible to all, so that peers can reach each other.
  expect 6 CUDA_VISIBLE_DEVICES 0,1,2,3
  expect 9 NCCL_TUNER_PLUGIN "$work/opt/lib/libnccl-tuner-rdmatune.so"
  has "$out" '^0 RDMA_TUNE_PROFILE=rt1;nodes=4;measured=4;net=tcp;'
  local profiles
  profiles=$(sed -n 's/^[0-9]* RDMA_TUNE_PROFILE=//p' "$out" | sort -u | wc -l)
  count_is "$out" '^[0-9]+ RDMA_TUNE_PROFILE=' 16
  [ "$profiles" = 1 ] || die "$profiles different profiles"
  # The table of ranks once, and of the first node.
  count_is "$err" 'rank +GPU +HCA +distance' 1
  count_is "$err" 'PIX' 4
  has "$err" 'gpu01: 3 .*mlx5_3 +PIX'
}

case_step_03_tasks_are_on_the_cores_of_their_gpu() {
  [ "$(nproc)" -ge 2 ] || skip "one core"
  run srun -N1 -n4 --exclusive --gpus-per-node=4 --rdma-tune "$work/task.sh"
  ended 0
  [ "$(of 0 cpus)" != "$(of 3 cpus)" ] || die "ranks 0 and 3 share $(of 0 cpus)"
  expect 0 cpus 0
  run srun -N1 -n4 --exclusive --gpus-per-node=4 --cpu-bind=none --rdma-tune "$work/task.sh"
  ended 0
  expect 0 cpus "$(of 3 cpus)" # --cpu-bind is the user's word
  run srun -N1 -n4 --exclusive --gpus-per-node=4 --cpu-bind=none "$work/task.sh"
  local plain
  plain=$(of 0 cpus)
  run srun -N1 -n4 --exclusive --gpus-per-node=4 --cpu-bind=none --rdma-tune "$work/task.sh"
  expect 0 cpus "$plain"
}

case_step_04_verbose_says_what_and_why() {
  run env NCCL_IB_HCA==mine srun -N2 -n2 --gpus-per-node=4 --rdma-tune=verbose "$work/task.sh"
  ended 0
  expect 0 NCCL_IB_HCA =mine
  expect 1 NCCL_IB_HCA =mine
  has "$err" 'rdma-tune: .*set CUDA_DEVICE_ORDER=PCI_BUS_ID'
  has "$err" 'rdma-tune: .*left NCCL_IB_HCA==mine'
  has "$err" 'measuring took'
}

case_step_05_bind_and_one_node_are_not_measured() {
  faked
  run srun -N2 -n2 --gpus-per-node=4 --rdma-tune=bind "$work/task.sh"
  ended 0
  has "$out" '^1 UCX_NET_DEVICES='
  lacks "$out" '^[0-9]+ RDMA_TUNE_PROFILE='
  run srun -N1 -n4 --gpus-per-node=4 --rdma-tune "$work/task.sh"
  ended 0
  expect 2 UCX_NET_DEVICES mlx5_2:1
  lacks "$out" '^[0-9]+ RDMA_TUNE_PROFILE='
  lacks "$err" untuned
  lacks "$work/fake.log" '^measure'
}

case_step_06_off_beats_everything() {
  plugstack default=auto
  run env RDMA_TUNE_MODE=auto "${all16[@]}" --rdma-tune=off "$work/task.sh"
  ended 0
  untouched
  run env RDMA_TUNE_MODE=off "${all16[@]}" "$work/task.sh"
  ended 0
  untouched
}

case_step_07_later_steps_reuse_the_profile() {
  faked
  # shellcheck disable=SC2016
  run salloc -Q -N2 -n8 --gpus-per-node=4 bash -c '
    srun -n2 --rdma-tune '"$work"'/task.sh | grep "^0 RDMA_TUNE_PROFILE" >one
    srun -n8 --rdma-tune '"$work"'/task.sh | grep "^7 RDMA_TUNE_PROFILE" >two
    srun -n2 --rdma-tune=refresh '"$work"'/task.sh | grep "^0 RDMA_TUNE_PROFILE" >three'
  ended 0
  local one two three
  one=$(cut -d' ' -f2- "$home/one") two=$(cut -d' ' -f2- "$home/two") three=$(cut -d' ' -f2- "$home/three")
  [ -n "$one" ] && [ "$one" = "$two" ] || die "the second step has another profile: '$one' '$two'"
  [ -n "$three" ] && [ "$one" != "$three" ] || die "refresh did not measure anew"
  run find /tmp /run/user -maxdepth 2 -user jobuser -name 'measured-*' -not -perm 600
  [ ! -s "$out" ] || die "kept where others can read: $(cat "$out")"
}

case_step_08_a_new_job_measures_anew() {
  run srun -N2 -n2 --gpus-per-node=4 --rdma-tune "$work/task.sh"
  local first
  first=$(of 0 RDMA_TUNE_PROFILE)
  run srun -N2 -n2 --gpus-per-node=4 --rdma-tune "$work/task.sh"
  [ "$(of 0 RDMA_TUNE_PROFILE)" != "$first" ] || die "another job's profile was used"
}

case_step_09_site_default_leaves_steps_without_gpus_alone() {
  faked default=auto
  run srun -N4 -n4 "$work/task.sh"
  ended 0
  untouched
  run srun -N1 -n1 "$work/task.sh"
  ended 0
  untouched
  lacks "$err" rdma-tune
  [ ! -s "$work/fake.log" ] || die "the program was started: $(cat "$work/fake.log")"
  run srun -N2 -n2 --gpus-per-node=1 "$work/task.sh"
  ended 0
  has "$out" '^1 RDMA_TUNE_PROFILE='
  run salloc -Q -N2 --gres=gpu:2 srun -n2 --gres=none "$work/task.sh"
  ended 0
  untouched
}

case_step_10_the_flag_works_without_gpus() {
  run srun -N2 -n2 --rdma-tune "$work/task.sh"
  ended 0
  has "$out" '^1 RDMA_TUNE_PROFILE='
  has "$out" '^1 NCCL_IB_HCA='
}

case_step_11_gpus_per_task() {
  [ "$constrained" = 1 ] || skip "no cgroup v1 device controller to constrain devices with"
  run srun -N2 -n4 --ntasks-per-node=2 --gpus-per-task=2 --rdma-tune "$work/task.sh"
  ended 0
  ranks_ran 4
  # Slurm says 0,1 to every task; what can be opened is the truth, and names the HCA.
  expect 0 open "0 1"
  expect 1 open "2 3"
  expect 0 CUDA_VISIBLE_DEVICES 0,1
  expect 1 CUDA_VISIBLE_DEVICES 0,1
  has "$out" '^0 UCX_NET_DEVICES=mlx5_0:1(,mlx5_1:1)?$'
  has "$out" '^1 UCX_NET_DEVICES=mlx5_2:1(,mlx5_3:1)?$'
  has "$out" '^3 UCX_NET_DEVICES=mlx5_0:1(,mlx5_1:1)?$' # gpu02
}

case_step_12_steps_side_by_side() {
  local script=$home/side.sh
  cat >"$script" <<'SH'
#!/bin/bash
srun -N2 -n2 --overlap --gpus-per-node=2 --rdma-tune "$1" >side.1 2>&1 &
srun -N2 -n2 --overlap --gpus-per-node=2 --rdma-tune "$1" >side.2 2>&1 &
wait %1 && wait %2
SH
  chmod 755 "$script"
  run salloc -Q -N2 --gpus-per-node=4 "$script" "$work/task.sh"
  ended 0
  local side
  for side in 1 2; do
    has "$home/side.$side" '^0 RDMA_TUNE_PROFILE=rt1;nodes=2;'
    has "$home/side.$side" '^1 UCX_NET_DEVICES='
  done
}

case_step_13_standard_input_is_the_users() {
  seq 1 20000 >"$home/table"
  # shellcheck disable=SC2016
  run bash -c 'srun -N2 -n2 --rdma-tune cat <table | sort | uniq -c | awk "\$1 == 2" | wc -l'
  ended 0
  has "$out" '^20000$'
}

case_step_14_multi_prog_pty_quiet() {
  printf '0 %s\n1 %s echo other\n' "$work/task.sh" "$work/task.sh" >"$home/multi"
  run srun -N2 -n2 --rdma-tune --multi-prog multi
  ended 0
  has "$out" '^1 NCCL_IB_HCA='
  has "$out" '^other$'
  run srun -Q -N2 -n2 --gpus-per-node=4 --rdma-tune "$work/task.sh"
  ended 0
  has "$out" '^1 RDMA_TUNE_PROFILE='
  lacks "$err" .
  run script -q -c "srun -N2 -n2 --pty --rdma-tune $work/task.sh" /dev/null
  has "$out" '^0 RDMA_TUNE_PROFILE='
}

case_step_15_nested_srun_is_its_own_step() {
  local inner="srun --overlap --cpu-bind=none -N1 -n2 --gres=gpu:4"
  run srun -N2 -n2 --exclusive --gpus-per-node=4 --rdma-tune bash -c '[ $SLURM_PROCID = 0 ] || exit 0
    export NCCL_ALGO=mine; '"$inner --rdma-tune $work/task.sh"
  ended 0
  ranks_ran 2
  # Not the outer step's profile nor its rank 0's HCAs for everybody; what the user set stays.
  lacks "$out" '^0 RDMA_TUNE_PROFILE='
  lacks "$out" '^0 SLURM_RDMA_TUNE_(PROFILE|AGREED)=.'
  has "$out" '^0 UCX_NET_DEVICES=mlx5_0:1,mlx5_1:1$'
  has "$out" '^1 UCX_NET_DEVICES=mlx5_2:1,mlx5_3:1$'
  expect 1 NCCL_ALGO mine
}

case_step_16_no_memory_limit_below_the_hard_one() {
  # shellcheck disable=SC2016
  run bash -c 'ulimit -S -l 64; srun --propagate=MEMLOCK -N1 -n1 --rdma-tune '"$work"'/task.sh; srun -N1 -n1 bash -c "ulimit -H -l" | sed "s/^/hard=/"'
  ended 0
  expect 0 memlock "$(sed -n 's/^hard=//p' "$out")"
}

case_step_17_mpi_plugins() {
  local kind
  for kind in none pmi2; do
    run srun --mpi=$kind -N2 -n2 --rdma-tune "$work/task.sh"
    ended 0
    has "$out" '^1 RDMA_TUNE_PROFILE='
  done
}

case_step_18_heterogeneous_step_is_bound() {
  LIMIT=60 run srun -N1 -n1 --gpus-per-node=4 --rdma-tune "$work/task.sh" : -N2 -n2 --gpus-per-node=2 "$work/task.sh"
  ended 0
  ranks_ran 3
  has "$out" '^0 NCCL_IB_HCA='
  has "$out" '^2 NCCL_IB_HCA='
  lacks "$out" '^[0-9]+ RDMA_TUNE_PROFILE='
  told_once 'heterogeneous'
}
