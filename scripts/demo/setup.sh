# shellcheck shell=bash
# Sourced by the demo and by the training test: a Slurm cluster of this machine with rdma-tune in it,
# and nothing of either outside $work. Needs root and $BUILD. Sets `work` and `cluster`.
#   demo_cluster NODES NAME   prepares and starts it; it is stopped and removed when the shell exits
#   as_user COMMAND...        as the cluster's ordinary user, on the machine that submits
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
BUILD=${BUILD:-$top/build}
cluster=$top/scripts/cluster/cluster.sh

demo_finish() {
  "$cluster" down >/dev/null 2>&1 || true
  rm -rf --one-file-system -- "$work"
}

demo_cluster() {
  work=$(mktemp -d /tmp/rdma-tune-demo.XXXXXX)
  chmod 755 "$work"
  trap demo_finish EXIT
  trap 'exit 130' INT TERM
  # A name and addresses that another cluster of this machine does not use.
  export CL_NAME=$2$$ CL_BASE=$work/cluster CL_NET=10.$((64 + $$ / 256 % 64)).$(($$ % 256)) CL_GPUS=4
  export CL_PLUGSTACK=$work/plugstack.conf
  # Real nodes let jobs lock memory, which RDMA needs; where this machine may not, doctor says so.
  ulimit -l unlimited 2>/dev/null || true

  # As a site would: install, name the plugin in plugstack.conf and the settings in rdma-tune.conf.
  # (-o all: what is built is installed as it is.) A Slurm that this machine belongs to is left alone.
  env -u MAKEFLAGS -u MAKELEVEL make --no-print-directory -C "$top" -s -o all install BUILD="$BUILD" PREFIX="$work/opt" >/dev/null || return
  mkdir -p "$work/cluster"
  "$top"/scripts/demo/topology.sh mlx5_0 mlx5_1 mlx5_2 mlx5_3 >"$work"/gpu01.xml
  "$top"/scripts/demo/topology.sh mlx5_3 mlx5_2 mlx5_0 mlx5_1 >"$work"/gpu02.xml
  printf 'topology = %s\n' "gpu0[13579]=$work/gpu01.xml" "gpu0[2468]=$work/gpu02.xml" >"$work"/rdma-tune.conf
  echo "optional $work/opt/lib/slurm/spank_rdma_tune.so default=off config=$work/rdma-tune.conf" >"$work"/plugstack.conf
  chmod 644 "$work"/*.xml "$work"/*.conf
  "$cluster" up "$1"
}

as_user() {
  "$cluster" user head env "PATH=$work/opt/bin:/usr/bin:/bin" OMP_NUM_THREADS=1 TERM=dumb "$@"
}
