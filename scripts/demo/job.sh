#!/bin/bash
# What a user would type, inside one allocation. Arguments: the training script and its options.
set -euo pipefail
shown() { printf '\n$ %s\n' "$*"; }

shown srun --rdma-tune "python3 $(basename "$1") ${*:2}"
srun --rdma-tune python3 "$@"

# A later step of the allocation reuses the profile, so this asks for what the first one measured.
# shellcheck disable=SC2016  # expanded by the task's shell
one='test "$SLURM_PROCID" != 0 || printenv RDMA_TUNE_PROFILE'
profile=$(srun --rdma-tune --quiet --ntasks=2 --ntasks-per-node=1 sh -c "$one" 2>/dev/null)
# shellcheck disable=SC2016  # shown as typed
shown 'rdma-tune explain --gpus-per-node 4 --profile "$RDMA_TUNE_PROFILE"'
rdma-tune explain --gpus-per-node 4 --profile "$profile"
