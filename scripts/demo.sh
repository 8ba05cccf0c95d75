#!/bin/bash
# make demo: a Slurm cluster of two nodes on this machine, the plugin in its plugstack.conf alone, and
# one training job under `srun --rdma-tune`. Everything lives in a folder of its own below /tmp and is
# gone afterwards, whatever happens. BUILD is the build folder.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null || { echo "rdma-tune: the demo's cluster needs root (network namespaces): run it as root" >&2; exit 1; }
  exec sudo BUILD="${BUILD:-}" "$0" "$@"
fi
# shellcheck source=scripts/demo/setup.sh
. "$here/demo/setup.sh"
begin=$SECONDS

cat <<'TEXT'
Two Slurm nodes, pretended on this machine with network namespaces. Their GPUs, HCAs and PCIe switches
are pretended too (device files and a saved topology; on the second node the HCAs have other names).
What is real: Slurm, the plugin, the binding, the network that is measured (TCP between the namespaces,
as there is no RDMA device) and the training, which runs on the CPU with gloo.
TEXT
demo_cluster 2 demo
cp "$top"/scripts/train/train_ddp.py "$top"/scripts/demo/job.sh "$work"
as_user salloc --quiet --nodes=2 --ntasks-per-node=4 --gpus-per-node=4 \
  "$work"/job.sh "$work"/train_ddp.py --epochs 4 --show-ranks 2>&1
echo
echo "make demo: done in $((SECONDS - begin)) s; the cluster is stopped, and nothing is left behind."
