#!/bin/bash
# What `srun --rdma-tune` adds to srun, on a local cluster of 4 nodes (all on this machine's cores, so
# 16 tasks, 4 daemons and 4 agents share them): the first step of a job, which measures, and later ones.
#   tests/bench/srun_overhead.sh [ROUNDS]     default 7; BUILD is the build folder
# Prints minimum and median in milliseconds over the rounds, each an allocation of its own, and where
# the time goes. Aims: first step under 1 s more than plain srun, later ones under 0.1 s.
# shellcheck disable=SC2016 # scripts that another shell runs
set -euo pipefail
top=$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd)
BUILD=${BUILD:-$top/build}
rounds=${1:-7}
[ "$(id -u)" = 0 ] || { echo "skipped: needs root for network namespaces"; exit 0; }
command -v slurmctld >/dev/null || { echo "skipped: Slurm is not installed"; exit 0; }
work=$(mktemp -d /tmp/rdma-tune-overhead.XXXXXX)
chmod 755 "$work"
export CL_NAME=o$$ CL_BASE=$work/cluster CL_NET=10.$((192 + $$ / 256 % 63)).$(($$ % 256)) CL_GPUS=4 CL_TASKPLUGIN=task/affinity
cluster=$top/scripts/cluster/cluster.sh
finish() {
  "$cluster" down >/dev/null 2>&1 || true
  rm -rf --one-file-system -- "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM
mkdir -p "$CL_BASE"
make --no-print-directory -C "$top" -s -o all install BUILD="$BUILD" PREFIX="$work/opt" >/dev/null
for node in 1 2 3 4; do
  "$top/scripts/demo/topology.sh" mlx5_0 mlx5_1 mlx5_2 mlx5_3 >"$work/gpu0$node.xml"
  echo "topology = gpu0$node=$work/gpu0$node.xml"
done >"$work/site.conf"
chmod 644 "$work"/*.xml "$work/site.conf"
plugin="optional $work/opt/lib/slurm/spank_rdma_tune.so config=$work/site.conf"
echo "$plugin" >"$work/plugstack.conf"
export CL_PLUGSTACK=$work/plugstack.conf
"$cluster" up 4 >/dev/null

# One allocation: KIND MILLISECONDS lines, and what `verbose` says of the phases.
cat >"$work/round.sh" <<'ROUND'
#!/bin/bash
now() { echo "${EPOCHREALTIME/[.,]/}"; }
timed() {
  local kind=$1 begin
  shift
  begin=$(now)
  srun "$@" true 2>>phases
  echo "$kind $((($(now) - begin) / 1000))"
}
: >phases
timed warm-up
timed plain
timed first --rdma-tune=verbose
for _ in 1 2 3; do
  timed plain
  timed later --rdma-tune
  timed bind --rdma-tune=bind
done
ROUND
chmod 755 "$work/round.sh"
: >"$work/times"
: >"$work/phases"
for ((round = 0; round < rounds; round++)); do
  "$cluster" user head salloc -Q -N4 -n16 --ntasks-per-node=4 --gpus-per-node=4 "$work/round.sh" >>"$work/times"
  cat "$("$cluster" home)/phases" >>"$work/phases"
done
# The plugin is loaded, but nobody asks for it; and no plugin at all.
for kind in "not-asked $plugin" "no-plugin # none"; do
  echo "${kind#* }" >"$CL_BASE/$CL_NAME/etc/plugstack.conf"
  for ((round = 0; round < rounds; round++)); do
    "$cluster" user head salloc -Q -N4 -n16 --ntasks-per-node=4 --gpus-per-node=4 bash -c '
      srun true
      for _ in 1 2 3; do begin=${EPOCHREALTIME/[.,]/}; srun true; echo "'"${kind%% *}"' $(((${EPOCHREALTIME/[.,]/} - begin) / 1000))"; done' >>"$work/times"
  done
done

# The program alone, as each of the three children is started.
"$cluster" user gpu01 bash -c '
  for _ in 1 2 3 4 5 6 7 8 9; do begin=${EPOCHREALTIME/[.,]/}; "$1" --version >/dev/null; echo "start $(((${EPOCHREALTIME/[.,]/} - begin)))"; done
' _ "$work/opt/bin/rdma-tune" >"$work/start"

echo "srun on 4 nodes x 4 tasks, $(nproc) cores for everything, Slurm $("$cluster" exec head srun -V | cut -d' ' -f2), $rounds rounds, milliseconds:"
awk -v rounds="$rounds" '
  { value[$1, ++count[$1]] = $2 }
  function sorted(kind,   i, j, t) {
    for (i = 2; i <= count[kind]; i++)
      for (j = i; j > 1 && value[kind, j - 1] > value[kind, j]; j--) { t = value[kind, j]; value[kind, j] = value[kind, j - 1]; value[kind, j - 1] = t }
  }
  function median(kind) { return value[kind, int((count[kind] + 1) / 2)] }
  END {
    n = split("no-plugin not-asked plain bind later first", kinds, " ")
    for (i = 1; i <= n; i++) { sorted(kinds[i]); printf "  %-10s minimum %5d  median %5d  (%d runs)\n", kinds[i], value[kinds[i], 1], median(kinds[i]), count[kinds[i]] }
    printf "extra against plain srun, medians: first step %d ms, later steps %d ms, bind %d ms\n", median("first") - median("plain"), median("later") - median("plain"), median("bind") - median("plain")
  }' "$work/times"
echo "where the first step's time goes (medians, ms):"
for phase in measuring "reading the topology" "preparing task 0"; do
  sed -nE "s/.*$phase took ([0-9.]+) s/\1/p" "$work/phases" | sort -n |
    awk -v phase="$phase" '{ v[NR] = $1 } END { if (NR) printf "  %-22s %5.0f\n", phase, 1000 * v[int((NR + 1) / 2)] }'
done
sort -k2 -n "$work/start" | awk '{ v[NR] = $2 } END { printf "  of each, program start %5.1f\n", v[int((NR + 1) / 2)] / 1000 }'
