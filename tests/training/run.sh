#!/bin/bash
# The training job as users start it, on a Slurm cluster of this machine with the plugin: srun, sbatch,
# an array, one torchrun a node with `rdma-tune exec`; and alone. Its loss has to fall each time.
set -uo pipefail
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/tools/checks.sh
. "$here/../tools/checks.sh"
# shellcheck source=scripts/demo/setup.sh
. "$here/../../scripts/demo/setup.sh"
train=$top/scripts/train/train_ddp.py

/usr/bin/python3 -c 'import torch' 2>/dev/null || { skip "training" "python3-torch is not installed"; finish; }
[ "$(id -u)" = 0 ] || { skip "training" "the cluster needs root"; finish; }

# ---- alone --------------------------------------------------------------------------------------
alone() { env -i PATH=/usr/bin:/bin OMP_NUM_THREADS=1 /usr/bin/python3 "$train" --samples 1024 "$@" 2>&1; }
contains "alone: the loss falls" "$(alone --epochs 4)" '^the loss fell: 1\.[0-9]+ -> (1\.[0-3]|0)'
refuse "a loss that does not fall is a failure" alone --epochs 2 --rate 0
check "rendezvous from Slurm's variables" env PYTHONPATH="$(dirname "$train")" /usr/bin/python3 -B "$here/rendezvous.py"

# ---- on the cluster -----------------------------------------------------------------------------
demo_cluster 2 train >"${TMPDIR:-/tmp}/train-cluster.$$" 2>&1
started=$?
said=$(cat "${TMPDIR:-/tmp}/train-cluster.$$"); rm -f "${TMPDIR:-/tmp}/train-cluster.$$"
if [ $started -ne 0 ]; then fail "the cluster starts" "$said"; finish; fi
mkdir "$work/scripts"
cp -r "$top/scripts/examples" "$top/scripts/train" "$work/scripts/"
out=$("$cluster" home)

said=$(as_user timeout 120 "$work/scripts/examples/srun.sh" --samples 2048 --rate 4e-3 --epochs 4 --show-ranks 2>&1)
contains "srun: the loss falls on 2 nodes x 4 ranks" "$said" '^epoch 4: .*8 ranks on cpu'
contains "srun: and says so" "$said" '^the loss fell'
contains "srun: the rank table is shown" "$said" 'rank +GPU +HCA +distance'
for node in 1 2; do
  hcas=$(sed -nE "s/^rank [0-9]: gpu0$node, .*UCX_NET_DEVICES=([a-z0-9_]+).*/\1/p" <<<"$said" | tr '\n' ' ')
  case $node in 1) expected="mlx5_0 mlx5_1 mlx5_2 mlx5_3 " ;; 2) expected="mlx5_3 mlx5_2 mlx5_0 mlx5_1 " ;; esac
  check "srun: gpu0$node's ranks have the HCAs of their own switches" test "$hcas" = "$expected"
done
profiles=$(sed -nE 's/^rank [0-9]: .*, profile ([0-9a-f]{8})$/\1/p' <<<"$said")
check "srun: all 8 ranks have the same profile" test "$(wc -l <<<"$profiles") $(sort -u <<<"$profiles" | wc -l)" = "8 1"

submit() { # NAME: runs an example to its end; prints what it wrote. sbatch --wait looks only every 30 s.
  local job left states
  job=$(CL_WD=$work as_user sbatch --parsable --output="$out/$1.%a" "$work/scripts/examples/$1.sbatch") || return
  for ((left = 480; left > 0; left--)); do
    states=$("$cluster" exec head scontrol -o show job "$job" | grep -oE 'JobState=[A-Z]+')
    grep -qvxE 'JobState=(COMPLETED|FAILED|CANCELLED|TIMEOUT|NODE_FAIL)' <<<"$states" || break
    sleep 0.5
  done
  sed 's/^\[default[0-9]*\]://' "$out/$1".*
  ! grep -qvx JobState=COMPLETED <<<"$states"
}
said=$(submit train)
check "sbatch: train.sbatch ends well" test $? = 0
contains "sbatch: #SBATCH --rdma-tune reaches the srun inside" "$said" 'rank +GPU +HCA +distance'
contains "sbatch: the loss falls" "$said" '^the loss fell'
said=$(submit torchrun)
check "torchrun: torchrun.sbatch ends well" test $? = 0
contains "torchrun: the loss falls on all 8 processes" "$said" '^epoch 5: .*8 ranks on cpu'
said=$(submit array)
check "array: array.sbatch ends well" test $? = 0
check "array: the loss falls in each of 3 elements" test "$(grep -c '^the loss fell' <<<"$said")" = 3
check "no node was drained" test "$("$cluster" exec head sinfo -h -N -o %t | grep -cv idle)" = 0
finish
