#!/bin/bash
# `rdma-tune exec` as each launcher starts it: with torchrun's real program, and with the environments that
# Open MPI, MPICH and Intel MPI (Hydra), MVAPICH2, PALS, Flux, Slurm and Kubernetes give a process. The node is
# the demo's: four switches, each with a GPU and an HCA, whose names do not follow the slots.
set -uo pipefail
here=$(dirname "$(readlink -f "$0")")
top=$(cd "$here/../.." && pwd)
BUILD=${BUILD:-$top/build}
# shellcheck source=tests/tools/checks.sh
. "$here/../tools/checks.sh"
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
program=$BUILD/bin/rdma-tune
tuner=$BUILD/lib/libnccl-tuner-rdmatune.so
"$top/scripts/demo/topology.sh" mlx5_3 mlx5_2 mlx5_0 mlx5_1 >"$work/node.xml"
printf 'topology = *=%s\ntuner = %s\n' "$work/node.xml" "$tuner" >"$work/site.conf"
chmod 644 "$work/site.conf"
mkdir "$work/dev"
for i in 0 1 2 3; do : >"$work/dev/nvidia$i"; done
order=(mlx5_3 mlx5_2 mlx5_0 mlx5_1)  # the HCA beside each GPU, in PCI order

# Shows what a process sees, in one line.
cat >"$work/show" <<'SHOW'
#!/bin/sh
echo "gpus=${CUDA_VISIBLE_DEVICES-unset} order=${CUDA_DEVICE_ORDER-unset} hcas=${NCCL_IB_HCA-unset} own=${UCX_NET_DEVICES-unset} tuner=${NCCL_TUNER_PLUGIN-unset} profile=${RDMA_TUNE_PROFILE-unset} args=$*"
SHOW
chmod +x "$work/show"
# under VARIABLE=VALUE... [-- OPTION...]: one process in exactly this environment
under() {
  local variables=() options=()
  while [ $# -gt 0 ] && [ "$1" != -- ]; do variables+=("$1"); shift; done
  [ $# = 0 ] || { shift; options=("$@"); }
  env -i PATH=/usr/bin:/bin HOME="$work" "${variables[@]}" "$program" exec --config "${CONFIG:-$work/site.conf}" \
    --dev-root "$work/dev" "${options[@]}" -- "$work/show" 'two words' 2>"$work/err"
}
# all_four NAME VARIABLE...: four processes of a node; @ stands for the local rank
all_four() {
  local name=$1 rank output failed=
  shift
  for rank in 0 1 2 3; do
    output=$(under "${@//@/$rank}") || failed+="rank $rank: exit status $?: $(cat "$work/err")"$'\n'
    [[ $output == *"own=${order[rank]}:1"* ]] || failed+="rank $rank: not its HCA ${order[rank]}: $output"$'\n'
    [[ $output == *"hcas==mlx5_3:1,mlx5_2:1,mlx5_0:1,mlx5_1:1"* ]] || failed+="rank $rank: $output"$'\n'
    [[ $output == *"order=PCI_BUS_ID"* ]] || failed+="rank $rank: $output"$'\n'
    [[ $output == *"args=two words" ]] || failed+="rank $rank: arguments: $output"$'\n'
  done
  if [ -z "$failed" ]; then pass "$name: each rank its own HCA, all ranks the same list"
  else fail "$name: each rank its own HCA, all ranks the same list" "$failed"; fi
}

# ---- the launchers' environments ----------------------------------------------------------------
all_four "torchrun" LOCAL_RANK=@ LOCAL_WORLD_SIZE=4 RANK=@ WORLD_SIZE=8 GROUP_RANK=0 ROLE_RANK=@ \
  MASTER_ADDR=n1 MASTER_PORT=29500 OMP_NUM_THREADS=1
all_four "Open MPI" OMPI_COMM_WORLD_LOCAL_RANK=@ OMPI_COMM_WORLD_LOCAL_SIZE=4 OMPI_COMM_WORLD_RANK=@ \
  OMPI_COMM_WORLD_SIZE=8 OMPI_COMM_WORLD_NODE_RANK=@ OMPI_APP_CTX_NUM_PROCS=8 PMIX_RANK=@
all_four "Hydra (MPICH, Intel MPI)" MPI_LOCALRANKID=@ MPI_LOCALNRANKS=4 PMI_RANK=@ PMI_SIZE=8 PMI_FD=6
all_four "MVAPICH2" MV2_COMM_WORLD_LOCAL_RANK=@ MV2_COMM_WORLD_LOCAL_SIZE=4 MV2_COMM_WORLD_RANK=@
all_four "PALS" PALS_LOCAL_RANKID=@ PALS_LOCAL_SIZE=4 PALS_RANKID=@ PALS_NODEID=0
all_four "Flux" FLUX_TASK_LOCAL_ID=@ FLUX_TASK_RANK=@ FLUX_JOB_SIZE=8 FLUX_JOB_NNODES=2 FLUX_JOB_ID=f1
all_four "Slurm" SLURM_LOCALID=@ SLURM_PROCID=@ SLURM_NTASKS=8 SLURM_NNODES=2 SLURM_NODEID=0 SLURM_JOB_ID=1 \
  'SLURM_STEP_TASKS_PER_NODE=4(x2)' 'SLURM_TASKS_PER_NODE=4(x2)' SLURM_STEP_GPUS=0,1,2,3
all_four "mpirun under sbatch: the inner launcher counts" OMPI_COMM_WORLD_LOCAL_RANK=@ OMPI_COMM_WORLD_LOCAL_SIZE=4 \
  SLURM_LOCALID=0 SLURM_PROCID=0 SLURM_NODEID=0 SLURM_TASKS_PER_NODE=1 SLURM_JOB_ID=1
all_four "torchrun under srun, one task a node" LOCAL_RANK=@ LOCAL_WORLD_SIZE=4 SLURM_LOCALID=0 SLURM_PROCID=0 \
  SLURM_NODEID=0 SLURM_STEP_TASKS_PER_NODE=1 SLURM_JOB_ID=1
all_four "a Kubernetes pod with torchrun" LOCAL_RANK=@ LOCAL_WORLD_SIZE=4 KUBERNETES_SERVICE_HOST=10.0.0.1 \
  KUBERNETES_PORT=tcp://10.0.0.1:443 HOSTNAME=train-pytorch-0 JOB_COMPLETION_INDEX=0 NVIDIA_VISIBLE_DEVICES=all \
  RDMA_TUNE_PROFILE=

one=$(under KUBERNETES_SERVICE_HOST=10.0.0.1 JOB_COMPLETION_INDEX=1 NVIDIA_VISIBLE_DEVICES=all)
contains "one process in a pod has all HCAs" "$one" 'hcas==mlx5_3:1,mlx5_2:1,mlx5_0:1,mlx5_1:1 '
contains "a pod that was given two GPUs has their HCAs first" "$(
  mv "$work/dev/nvidia2" "$work/dev/hidden2"; mv "$work/dev/nvidia3" "$work/dev/hidden3"
  under LOCAL_RANK=1 LOCAL_WORLD_SIZE=2
  mv "$work/dev/hidden2" "$work/dev/nvidia2"; mv "$work/dev/hidden3" "$work/dev/nvidia3")" 'own=mlx5_2:1'
contains "two ranks of four GPUs have two each" "$(under LOCAL_RANK=1 LOCAL_WORLD_SIZE=2)" 'own=mlx5_[01]:1'

# ---- the real torchrun --------------------------------------------------------------------------
if torchrun --help >/dev/null 2>&1; then
  # --redirects and --tee: their default trips PyTorch 1.13 on Python 3.11 (Debian 12).
  timeout 120 torchrun --redirects=1 --tee=1 --log_dir="$work/torchrun" --nnodes=1 --nproc_per_node=4 --master_port=$((20000 + $$ % 20000)) --no_python \
    "$program" exec --config "$work/site.conf" --dev-root "$work/dev" -- "$work/show" >"$work/out" 2>"$work/err"
  status=$?
  contains "real torchrun: four ranks, four HCAs" "$status $(grep -o 'own=[^ ]*' "$work/out" | sort | tr '\n' ' ')$(tail -n 5 "$work/err")" \
    '^0 own=mlx5_0:1 own=mlx5_1:1 own=mlx5_2:1 own=mlx5_3:1 '
else
  skip "real torchrun" "python3-torch is not installed"
fi

# ---- what may not be undone, and failures -------------------------------------------------------
profile=$("$program" profile make --nodes 2 --rails 4 --alpha 20 --beta 10)
tuned=(LOCAL_RANK=0 LOCAL_WORLD_SIZE=4 "RDMA_TUNE_PROFILE=$profile")
contains "with a profile the tuner is named by its absolute path" "$(under "${tuned[@]}")" "tuner=$tuner profile=.+ args="
contains "without one it is not" "$(under LOCAL_RANK=0 LOCAL_WORLD_SIZE=4)" "tuner=unset profile=unset "
contains "a profile may come with the command" "$(under LOCAL_RANK=0 LOCAL_WORLD_SIZE=4 -- --profile "$profile")" "tuner=$tuner profile=.+ args="
contains "what measure printed may be given as it is, both lines" \
  "$(under LOCAL_RANK=0 LOCAL_WORLD_SIZE=4 "RDMA_TUNE_PROFILE=$profile"$'\n''rt-agreed/1 rails=0 layer=none order=position cross=no')" "tuner=$tuner "
contains "what the user set is left" \
  "$(under LOCAL_RANK=0 LOCAL_WORLD_SIZE=4 NCCL_IB_HCA=mine UCX_NET_DEVICES=mine NCCL_TUNER_PLUGIN=none)" \
  'hcas=mine own=mine tuner=none '
under LOCAL_RANK=0 LOCAL_WORLD_SIZE=4 NCCL_IB_HCA=mine -- --verbose >/dev/null
contains "and verbose says so" "$(cat "$work/err")" 'left NCCL_IB_HCA=mine'
echo 'NCCL_IB_HCA=from-a-file' >"$work/.nccl.conf"
contains "what ~/.nccl.conf sets is left" "$(under LOCAL_RANK=0 LOCAL_WORLD_SIZE=4)" 'hcas=unset '
rm "$work/.nccl.conf"
printf 'topology = *=%s\ntuner = %s\n' "$work/node.xml" "$work/gone.so" >"$work/gone.conf"
chmod 644 "$work/gone.conf"
contains "a tuner that is not there is not named" "$(CONFIG=$work/gone.conf under "${tuned[@]}")" 'tuner=unset '
contains "and one line says so" "$(grep -c 'gone.so' "$work/err")" '^1$'
contains "a damaged profile is left out" "$(under LOCAL_RANK=0 LOCAL_WORLD_SIZE=4 RDMA_TUNE_PROFILE='rt1 nonsense')" 'args=two words'
contains "and that is said" "$(cat "$work/err")" 'NCCL is not tuned: the profile is damaged'
bad() { env -i PATH=/usr/bin:/bin "$program" exec "$@" >"$work/out" 2>"$work/err"; echo "$? $(cat "$work/err")"; }
echo 'nonsense = 1' >"$work/bad.conf"
chmod 644 "$work/bad.conf"
contains "a wrong configuration does not stop the program" "$(bad --config "$work/bad.conf" -- true)" '^0 rdma-tune: .*bad.conf:1: .*the command runs as it is'
contains "but it does with --strict" "$(bad --strict --config "$work/bad.conf" -- true)" '^1 rdma-tune: .*bad.conf:1: '
contains "a program that is not there: 127, as in a shell" "$(bad --config "$work/site.conf" -- "$work/nowhere")" '^127 .*nowhere'
contains "its exit status is the program's" "$(bad --config "$work/site.conf" -- sh -c 'exit 7')" '^7 '
contains "no command is wrong usage" "$(bad)" '^2 '
finish
