#!/bin/bash
# make demo: a Slurm cluster of two nodes on this machine, the plugin in its plugstack.conf alone, and
# one training job under `srun --rdma-tune`. Everything lives in a folder of its own below /tmp and is
# gone afterwards, whatever happens. BUILD is the build folder.
set -euo pipefail
top=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null || { echo "rdma-tune: the demo's cluster needs root (network namespaces): run it as root" >&2; exit 1; }
  exec sudo BUILD="${BUILD:-$top/build}" "$0" "$@"
fi
BUILD=${BUILD:-$top/build}
begin=$SECONDS

work=$(mktemp -d /tmp/rdma-tune-demo.XXXXXX)
chmod 755 "$work"
# Names and addresses that another cluster of this machine does not use.
export CL_NAME=demo$$ CL_BASE=$work/cluster CL_NET=10.$((64 + $$ / 256 % 64)).$(($$ % 256)) CL_GPUS=4
cluster=$top/scripts/cluster/cluster.sh
finish() {
  "$cluster" down >/dev/null 2>&1 || true
  rm -rf --one-file-system -- "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM
mkdir -p "$CL_BASE"

# As a site would: install, then name the plugin in plugstack.conf and the settings in rdma-tune.conf.
make --no-print-directory -C "$top" -s install BUILD="$BUILD" PREFIX="$work/opt" >/dev/null
cp "$top"/scripts/train/train_ddp.py "$top"/scripts/demo/job.sh "$work"
chmod 755 "$work"/job.sh
"$top"/scripts/demo/topology.sh mlx5_0 mlx5_1 mlx5_2 mlx5_3 >"$work"/gpu01.xml
"$top"/scripts/demo/topology.sh mlx5_3 mlx5_2 mlx5_0 mlx5_1 >"$work"/gpu02.xml
printf 'topology = gpu01=%s\ntopology = gpu02=%s\n' "$work"/gpu01.xml "$work"/gpu02.xml >"$work"/rdma-tune.conf
echo "optional $work/opt/lib/slurm/spank_rdma_tune.so default=off config=$work/rdma-tune.conf" >"$work"/plugstack.conf
export CL_PLUGSTACK=$work/plugstack.conf

cat <<'TEXT'
Two Slurm nodes, pretended on this machine with network namespaces. Their GPUs, HCAs and PCIe switches
are pretended too (device files and a saved topology; on the second node the HCAs have other names).
What is real: Slurm, the plugin, the binding, the fabric measured (TCP between the namespaces, as there
is no RDMA device) and the training, which runs on the CPU with gloo.
TEXT
"$cluster" up 2
"$cluster" user head env "PATH=$work/opt/bin:/usr/bin:/bin" OMP_NUM_THREADS=1 TERM=dumb \
  salloc --quiet --nodes=2 --ntasks-per-node=4 --gpus-per-node=4 \
  "$work"/job.sh "$work"/train_ddp.py --epochs 4
echo
echo "make demo: done in $((SECONDS - begin)) s; the cluster is stopped, and nothing is left behind."
