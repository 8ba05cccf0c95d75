# What may go wrong. The job runs, one line says why it is untuned, no node is drained; with strict
# srun fails, and no node is drained.
# shellcheck shell=bash disable=SC2154,SC2016,SC2015

step=(srun -N4 -n8 --ntasks-per-node=2 --gpus-per-node=4)

# fails_open PATTERN [WORDS]: with the site as it is now.
fails_open() {
  run "${step[@]}" --rdma-tune"${2:+=$2}" "$work/task.sh"
  ended 0
  ranks_ran 8
  told_once "$1"
}
fails_strictly() {
  local kind
  for kind in optional required; do
    REQUIRED=$kind "${2:-plugstack}" "${@:3}"
    run "${step[@]}" --rdma-tune=strict "$work/task.sh"
    failed_run
    ranks_ran 0
    has "$err" "error: rdma-tune: strict, so .*$1"
  done
}

case_fault_01_missing_program() {
  plugstack program=/nonexistent/rdma-tune
  fails_open 'program /nonexistent/rdma-tune: No such file'
  untouched
  fails_strictly 'No such file' plugstack program=/nonexistent/rdma-tune
}

case_fault_02_program_that_others_can_write() {
  install -m 777 "$work/opt/bin/rdma-tune" "$work/opt/bin/writable"
  plugstack program="$work/opt/bin/writable"
  fails_open 'writable can be written by anybody'
  untouched
  chmod 755 "$work/opt/bin/writable"
  chown 20001 "$work/opt/bin/writable"
  fails_open 'belongs to user 20001'
}

case_fault_03_unreadable_configuration() {
  chmod 600 "$work/site.conf"
  fails_open "$work/site.conf: cannot be opened: Permission denied"
  fails_strictly 'Permission denied'
}

case_fault_04_wrong_configuration() {
  site 'budgte = 3'
  fails_open "$work/site.conf:5: unknown key 'budgte'"
  fails_strictly "site.conf:5"
  site 'budget = 3 minutes'
  fails_open "$work/site.conf:5: budget: expected a number"
  site
  chmod 666 "$work/site.conf"
  fails_open 'can be written by its group or by others'
  site
  plugstack nonsense=1
  fails_open "plugstack.conf: unknown key 'nonsense'"
  # Nobody asked: nothing is said.
  run "${step[@]}" "$work/task.sh"
  ended 0
  lacks "$err" .
}

case_fault_05_wrong_rule() {
  site 'rule = allreduce sideways'
  run "${step[@]}" --rdma-tune "$work/task.sh"
  ended 0
  ranks_ran 8
  told_once 'site.conf:5: rule: .*allreduce'
}

case_fault_06_measuring_fails() {
  faked
  export -n RDMA_TUNE_FAKE
  step=(env RDMA_TUNE_FAKE=fail-measure "${step[@]}")
  fails_open 'untuned: made to fail'
  has "$out" '^7 NCCL_IB_HCA=' # still bound
  lacks "$out" '^[0-9]+ RDMA_TUNE_PROFILE='
  fails_strictly 'made to fail' faked
}

case_fault_07_measuring_hangs() {
  faked budget=0.5
  step=(env RDMA_TUNE_FAKE=hang-measure "${step[@]}")
  fails_open 'untuned: measuring took longer than 5.5 s'
  [ "$took" -lt 350 ] || die "took $took tenths of a second"
  untouched
}

case_fault_08_measuring_talks_nonsense() {
  local kind
  faked
  for kind in garbage huge die; do
    step=(env "RDMA_TUNE_FAKE=$kind-measure" srun -N2 -n8 --ntasks-per-node=4 --gpus-per-node=4)
    fails_open 'untuned: measuring'
    lacks "$out" '^[0-9]+ RDMA_TUNE_PROFILE='
  done
}

case_fault_09_topology_hangs_everywhere() {
  site 'node_timeout = 0.5'
  faked
  step=(env RDMA_TUNE_FAKE=hang-node srun --nodelist=gpu01 -N1 -n8 --gpus-per-node=4)
  fails_open 'gpu01: not bound: reading this node.s topology took longer than 0.5 s'
  untouched
  [ "$took" -lt 300 ] || die "took $took tenths of a second"
  fails_strictly 'gpu01 starts no task: reading' faked
}

case_fault_10_one_nodes_topology_fails() {
  # Its ranks are not bound, but price ring and tree like all others.
  rm -f "$work/gpu03.xml"
  run env RDMA_TUNE_FAKE=none srun -N4 -n8 --ntasks-per-node=2 --gpus-per-node=4 --rdma-tune=bind "$work/task.sh"
  ended 0
  ranks_ran 8
  has "$err" 'gpu03: not bound: .*gpu03.xml'
  has "$out" '^7 UCX_NET_DEVICES='
  lacks "$out" '^[45] UCX_NET_DEVICES='
  "$top/scripts/demo/topology.sh" mlx5_0 mlx5_1 mlx5_2 mlx5_3 >"$work/gpu03.xml"
}

case_fault_11_node_report_is_nonsense() {
  local kind
  faked
  for kind in garbage huge die fail; do
    step=(env "RDMA_TUNE_FAKE=$kind-node" srun --nodelist=gpu01 -N1 -n8 --gpus-per-node=4)
    fails_open 'gpu01: not bound: '
    untouched
  done
}

case_fault_12_task_preparation_fails() {
  local kind
  site 'task_timeout = 0.5'
  faked
  for kind in garbage huge die fail hang; do
    step=(env "RDMA_TUNE_FAKE=$kind-task" srun --nodelist=gpu01 -N1 -n8 --gpus-per-node=4)
    fails_open 'gpu01: not bound: '
    untouched
  done
  fails_strictly 'gpu01 starts no task: ' faked
}

case_fault_13_unprepared_tasks_still_choose_alike() {
  faked
  run env RDMA_TUNE_FAKE=fail-task "${step[@]}" --rdma-tune "$work/task.sh"
  ended 0
  count_is "$out" '^[0-9]+ RDMA_TUNE_PROFILE=rt1' 8
  count_is "$out" '^[0-9]+ NCCL_TUNER_PLUGIN=/' 8
  lacks "$out" '^[0-9]+ NCCL_IB_HCA='
}

case_fault_14_agent_killed() {
  # Waits inside gpu02's own process namespace, so that nothing else of this machine can be meant.
  on gpu02 timeout 90 bash -c 'until pid=$(pgrep -o -f "[r]dma-tune(.real)? agent"); do :; done; kill -9 $pid && echo $pid' >"$work/killed" &
  sleep 0.2
  run "${step[@]}" --rdma-tune "$work/task.sh"
  wait $! || die "no agent could be killed"
  ended 0
  ranks_ran 8
  # What was measured before it died may do; then the profile says that it is incomplete.
  if grep -q '^0 RDMA_TUNE_PROFILE=' "$out"; then
    has "$out" '^0 RDMA_TUNE_PROFILE=.*;complete=0;'
    has "$err" 'rdma-tune: .*(incomplete|gpu02)'
  else
    told_once 'untuned: '
  fi
  has "$out" '^7 NCCL_IB_HCA=' # bound all the same
}

case_fault_15_interrupted_while_measuring() {
  local signal kind
  for signal in INT TERM; do
    for kind in optional required; do
      REQUIRED=$kind faked
      : >"$work/fake.log"
      # The signal comes when measuring has begun, however long that takes here.
      # shellcheck disable=SC2016
      run env RDMA_TUNE_FAKE=hang-measure bash -c 'srun -N2 -n2 --rdma-tune '"$work"'/task.sh &
        until grep -qs ^measure '"$work"'/fake.log; do sleep 0.1; done; sleep 0.2
        kill -'$signal' $!; begin=$SECONDS; wait $!; status=$?; [ $((SECONDS - begin)) -le 9 ] || exit 99; exit $status'
      [ "$rc" != 99 ] || die "took more than 9 seconds to end"
      failed_run
      ranks_ran 0
      has "$err" 'interrupted while measuring'
    done
  done
  all_idle || settle || die "the allocation stayed"
}

case_fault_16_children_are_the_user() {
  faked
  run env LD_PRELOAD=/nonexistent.so RDMA_TUNE_FAKE=none srun -N2 -n2 --gpus-per-node=4 --rdma-tune "$work/task.sh"
  ended 0
  local command
  for command in measure node task; do has "$work/fake.log" "^$command uid=20001 groups=20001 caps=0+ "; done
  lacks "$work/fake.log" '^(node|task) .*preload=/' # what a daemon starts has no loader variables
  lacks "$work/fake.log" '^(measure|node|task) .*cwd=/[^ ]'
  # 255 is bash's own descriptor of the script, 3 the folder that is being listed.
  lacks "$work/fake.log" 'fds=0,1,2,([4-9]|3,[0-9]{2},)'
}

case_fault_17_users_variables_choose_no_program() {
  run env RDMA_TUNE_PROGRAM=/bin/false RDMA_TUNE_DEFAULT=auto srun -N1 -n1 "$work/task.sh"
  ended 0
  untouched
  run srun --rdma-tune=program=/bin/false -N1 -n1 "$work/task.sh"
  failed_run
}

# S41, NVIDIA/pyxis #84: the option is known where the job was submitted, not where it runs.
case_fault_18_node_without_the_plugin_is_named() {
  echo "# none" >"$work/empty.conf"
  on gpu02 mount --bind "$work/empty.conf" /etc/slurm/plugstack.conf
  run srun -N3 -n3 --gpus-per-node=4 --rdma-tune "$work/task.sh"
  on gpu02 umount /etc/slurm/plugstack.conf
  ended 0
  ranks_ran 3
  has "$out" '^0 NCCL_IB_HCA='
  lacks "$out" '^1 NCCL_IB_HCA='
  told_once 'untuned: gpu02: plugstack.conf does not name the rdma-tune plugin'
  # Ranks with and without a tuner would choose differently, and hang.
  lacks "$out" '^[0-9]+ NCCL_TUNER_PLUGIN='
}

case_fault_19_batch_step_never_fails() {
  plugstack program=/nonexistent/rdma-tune
  printf '#!/bin/bash\necho "0 host=$(hostname)"\n' >"$home/job.sh"
  local words
  for words in auto strict; do
    run sbatch -Q -W --output=job.out -N1 --gpus-per-node=1 --rdma-tune=$words job.sh
    ended 0
    has "$home/job.out" 'host=gpu0'
  done
  site 'nonsense'
  run sbatch -Q -W --output=job.out -N1 --gpus-per-node=1 --rdma-tune=strict job.sh
  ended 0
}

case_fault_20_load_peermem() {
  local log=$state/log/slurmd.gpu04.log
  [ ! -e /sys/module/nvidia_peermem ] || skip "nvidia_peermem is loaded here"
  # A modprobe that only this node sees.
  printf '#!/bin/bash\necho "$(id -u) $*" >>%s/modprobe.log\n' "$work" >"$work/modprobe"
  chmod 755 "$work/modprobe"
  on gpu04 mount --bind "$work/modprobe" "$(readlink -f /usr/sbin/modprobe)" || skip "there is no modprobe here"
  restart() {
    on gpu04 bash -c 'pid=$(cat /run/slurmd.pid); kill $pid; while kill -0 $pid 2>/dev/null; do sleep 0.05; done
      env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root /usr/sbin/slurmd'
    settle || die "gpu04 did not come back"
  }
  restart
  [ ! -e "$work/modprobe.log" ] || die "modprobe ran without being asked for"
  site 'load_peermem = yes'
  restart
  has "$work/modprobe.log" '^0 nvidia_peermem$'
  has "$log" 'rdma-tune: nvidia_peermem was loaded'
  printf '#!/bin/bash\nsleep 100\n' >"$work/modprobe"
  site 'load_peermem = yes' 'nonsense'
  restart
  has "$log" "rdma-tune: .*site.conf:6: .*steps on this node will run untuned"
  on gpu04 umount "$(readlink -f /usr/sbin/modprobe)"
  site
  restart
}

case_fault_21_unequal_nodes_are_named() {
  "$top/scripts/demo/topology.sh" mlx5_0 mlx5_1 mlx5_2 mlx5_3 | grep -v 'net name="mlx5_3"' >"$work/gpu04.xml"
  run "${step[@]}" --rdma-tune "$work/task.sh"
  "$top/scripts/demo/topology.sh" mlx5_0 mlx5_1 mlx5_2 mlx5_3 >"$work/gpu04.xml"
  ended 0
  ranks_ran 8
  has "$err" 'gpu04'
}
