#!/bin/bash
# The same without a batch script: allocation, measuring and training by one command.
#   scripts/examples/srun.sh [ARGUMENT OF train_ddp.py...]
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
here=$(dirname "$(readlink -f "$0")")
exec srun --nodes=2 --ntasks-per-node=4 --gpus-per-node=4 --rdma-tune \
  "${PYTHON:-python3}" "${TRAIN:-$here/../train/train_ddp.py}" "$@"
