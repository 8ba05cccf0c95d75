#!/bin/bash
# What a task of the tests runs: prints its number with each setting that rdma-tune may have changed.
n=$SLURM_PROCID
{
  echo "$n host=$(hostname)"
  echo "$n local=$SLURM_LOCALID"
  echo "$n cpus=$(awk '/^Cpus_allowed_list/ { print $2 }' /proc/self/status)"
  echo "$n memlock=$(ulimit -S -l)"
  env | grep -E '^(NCCL_|UCX_|NVSHMEM_|RDMA_TUNE_|CUDA_|SLURM_RDMA_TUNE_|SLURM_STEP_GPUS|SPECIAL)' | sed "s/^/$n /"
  # A device that a cgroup forbids says EPERM; a pretended one that is allowed says ENXIO.
  open=
  for ((i = 0; i < 8; i++)); do
    [ -e /dev/nvidia$i ] || continue
    case $( (: <"/dev/nvidia$i") 2>&1) in *"not permitted"*) ;; *) open+=" $i" ;; esac
  done
  echo "$n open=${open# }"
} 2>/dev/null
[ $# = 0 ] || exec "$@"
