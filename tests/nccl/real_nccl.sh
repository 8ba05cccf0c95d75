# shellcheck shell=bash
# shellcheck disable=SC2154 # plugin is the sourcing script's
# Sourced by run.sh: the plugin inside the unmodified NCCL. NCCL_DRYRUN names a program that starts NCCL for
# pretend nodes and prints one JSON object per rank with NCCL's table before and after the tuner and its
# choice. NCCL_DRYRUN_LARGE=1 adds 4 x 8 and 8 x 8 ranks (minutes).

# One run: SHAPE NODES GPUS PROFILE (or "") COLLECTIVES; JSON lines on standard output.
run_nccl() {
  RDMA_TUNE_PROFILE=$4 "$NCCL_DRYRUN" --nodes "$2" --gpus "$3" --procs-per-node 1 --shape "$1" --net ib --topo xml \
    --coll "$5" --sizes 64K:4G:x2 --sim --timeout 500 --tuner "$plugin" 2>/dev/null
}

# What the JSON of a run says, in one line: STATE ALIKE FROM CHOICES. STATE: ok or what went wrong; ALIKE: yes when
# all ranks choose alike; FROM: the first size from which ring stays chosen; CHOICES: all of rank 0's.
digest() {
  python3 -c '
import json, sys
ranks = []
for line in sys.stdin:
    if line.startswith("{"):
        ranks.append(json.loads(line))
if not ranks or any(r.get("status") != "ok" for r in ranks):
    print("failed", "-", "-", "-"); sys.exit()
def choices(rank):
    rows = next(v for v in rank.values() if isinstance(v, list) and v and isinstance(v[0], dict) and "algo" in v[0])
    return [(row["coll"], row["bytes"], row["algo"] + "/" + row["proto"]) for row in rows]
every = [choices(r) for r in ranks]
start = 0
for coll, size, choice in every[0]:
    if coll != "ar": continue
    if not choice.startswith("RING"): start = 0
    elif start == 0: start = size
print("ok", "yes" if all(c == every[0] for c in every) else "no", start or 1 << 62,
      ",".join("%s:%d:%s" % c for c in every[0]))'
}

# profile NODES RAILS ALPHA BETA NOMINAL
profile() { "$BUILD/bin/rdma-tune" profile make --nodes "$1" --rails "$2" --alpha "$3" --beta "$4" --nominal "$5"; }

real_nccl() { # SHAPE NODES GPUS RAILS NOMINAL
  local label="$1 $2x$3" state alike from choices plain last=0 alpha beta text
  read -r state alike from plain <<<"$(run_nccl "$1" "$2" "$3" "" ar,ag | digest)"
  if [ "$state" != ok ]; then fail "$label: NCCL runs with the plugin standing aside"; return; fi
  text=$("$BUILD/bin/rdma-tune" profile make --nodes "$2" --rails "$4" --neutral)
  read -r state alike from choices <<<"$(run_nccl "$1" "$2" "$3" "$text" ar,ag | digest)"
  if [ "$choices" = "$plain" ]; then pass "$label: a neutral profile changes nothing"
  else fail "$label: a neutral profile changes nothing" "$plain"$'\n'"$choices"; fi
  for beta in "$5" "$(awk "BEGIN { print $5 / 2 }")"; do
    last=0
    for alpha in 2 10 30; do
      text=$(profile "$2" "$4" "$alpha" "$beta" "$5")
      read -r state alike from choices <<<"$(run_nccl "$1" "$2" "$3" "$text" ar,ag | digest)"
      if [ "$state $alike" = "ok yes" ]; then pass "$label alpha $alpha us beta $beta GB/s: all ranks choose alike, ring from $from"
      else fail "$label alpha $alpha us beta $beta GB/s: all ranks choose alike" "$state $alike $choices"; continue; fi
      if [ "$from" -ge "$last" ]; then pass "$label beta $beta: ring does not begin earlier at $alpha us"
      else fail "$label beta $beta: ring does not begin earlier at $alpha us" "from $from, before $last"; fi
      last=$from
    done
  done
}

if [ -z "${NCCL_DRYRUN:-}" ]; then
  skip "the plugin inside NCCL" "${NCCL_DRYRUN_WHY:-no NCCL that runs without a GPU}"
elif [ ! -x "$BUILD/bin/rdma-tune" ]; then
  fail "rdma-tune is built" "no $BUILD/bin/rdma-tune"
else
  real_nccl dgx-a100 2 8 8 25
  if [ -n "${NCCL_DRYRUN_LARGE:-}" ]; then
    real_nccl dgx-a100 4 8 8 25
    real_nccl dgx-a100 8 8 8 25
  fi
fi
