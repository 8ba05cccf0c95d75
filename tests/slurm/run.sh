#!/bin/bash
# The plugin and the program on a real Slurm cluster of this machine (scripts/cluster): every way a
# user may start a job, and every way it may go wrong.
#   tests/slurm/run.sh [REGEX]     only the cases whose names match
# BUILD is the build folder. SLURM_CHROOT=DIR runs on the Slurm in that folder, which
# scripts/cluster/bootstrap_chroot.sh makes (the plugin is built again there). NCCL_DRYRUN names the
# command of an NCCL that runs without a GPU; without it that case is skipped.
# shellcheck disable=SC2034,SC2154 # the variables are the cases'
set -uo pipefail
here=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
top=$(cd "$here/../.." && pwd)
export BUILD=${BUILD:-$top/build}
cannot() { echo "skip slurm - $1"; echo "0 passed, 0 failed, 1 skipped"; exit 0; }
[ "$(id -u)" = 0 ] || cannot "needs root for network namespaces"
command -v slurmctld >/dev/null || [ -n "${SLURM_CHROOT:-}" ] || cannot "Slurm is not installed (make deps)"
unshare --net true 2>/dev/null || cannot "this machine allows no network namespaces"
for file in bin/rdma-tune lib/spank_rdma_tune.so lib/libnccl-tuner-rdmatune.so; do
  [ -e "$BUILD/$file" ] || { echo "not ok build - $BUILD/$file is missing: make all"; echo "0 passed, 1 failed, 0 skipped"; exit 1; }
done

work=$(mktemp -d /tmp/rdma-tune-slurm.XXXXXX)
chmod 755 "$work"
out=$work/out err=$work/err rc=0 took=0
# Names and addresses of this run alone.
export CL_NAME=t$$ CL_BASE=$work CL_NET=10.$((128 + $$ / 256 % 64)).$(($$ % 256)) CL_CPUS=16
state=$CL_BASE/$CL_NAME
# shellcheck source=tests/slurm/lib.sh
. "$here/lib.sh"
# shellcheck source=tests/tools/nccl_dryrun.sh
. "$here/../tools/nccl_dryrun.sh"
[ -n "${NCCL_DRYRUN_WHY:-}" ] || dryrun_program
for file in "$here"/cases_*.sh; do
  # shellcheck source=/dev/null
  . "$file"
done
trap finish EXIT
trap 'exit 130' INT TERM
export CL_GPUS=$GPUS
constrained=0
if [ -d /sys/fs/cgroup/devices ] && mkdir "/sys/fs/cgroup/devices/$CL_NAME" 2>/dev/null; then
  rmdir "/sys/fs/cgroup/devices/$CL_NAME"
  constrained=1
  export CL_CGROUP=1 CL_TASKPLUGIN=task/cgroup,task/affinity
else
  export CL_TASKPLUGIN=task/affinity
fi

install_all() {
  make --no-print-directory -C "$top" -s -o all install BUILD="$BUILD" PREFIX="$work/opt" >/dev/null || return 1
  install -m 755 "$here/fake.sh" "$work/opt/bin/fake-rdma-tune"
  install -m 755 "$here/task.sh" "$work/task.sh"
  [ -z "${SLURM_CHROOT:-}" ] || "$here/chroot.sh" "$SLURM_CHROOT" "$work" "$BUILD"
}
install_all || { echo "not ok install - make install failed"; echo "0 passed, 1 failed, 0 skipped"; exit 1; }
if [ -n "${SLURM_CHROOT:-}" ]; then
  # Everything that the nodes see of this machine is below CL_BASE.
  export CL_ROOT=$SLURM_CHROOT
fi

# The same cards in the same slots, but named otherwise on gpu02, as drivers do.
for node in 01 03 04; do "$top/scripts/demo/topology.sh" mlx5_0 mlx5_1 mlx5_2 mlx5_3 >"$work/gpu$node.xml"; done
"$top/scripts/demo/topology.sh" mlx5_3 mlx5_2 mlx5_0 mlx5_1 >"$work/gpu02.xml"
chmod 644 "$work"/*.xml
home=$state/home/jobuser

export CL_PLUGSTACK=$work/plugstack.first
echo "optional $work/opt/lib/slurm/spank_rdma_tune.so" >"$CL_PLUGSTACK"
if ! "$cluster" up "$NODES" >"$work/up.log" 2>&1; then
  echo "not ok cluster - $(tail -n 3 "$work/up.log" | tr '\n' ' ')"
  echo "0 passed, 1 failed, 0 skipped"
  exit 1
fi

for name in $(declare -F | sed -n 's/^declare -f case_//p' | sort); do try "$name"; done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
