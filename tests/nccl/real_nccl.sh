# shellcheck shell=bash
# shellcheck disable=SC2154 # plugin is the sourcing script's
# Sourced by run.sh: the plugin inside the unmodified NCCL. NCCL_DRYRUN names a program that starts NCCL for
# pretend nodes and prints one JSON object per rank with NCCL's table before and after the tuner and its
# choice. NCCL_DRYRUN_LARGE=1 adds 4 x 8 and 8 x 8 ranks (half an hour and more). NCCL_VERSIONS_CACHE=FOLDER adds
# the other NCCL versions that nccl-dryrun's versions.sh has put there, or puts there now (Debian's).

# One run: SHAPE NODES GPUS PROFILE (or "") COLLECTIVES; JSON lines on standard output.
run_nccl() {
  RDMA_TUNE_PROFILE=$4 "$NCCL_DRYRUN" --nodes "$2" --gpus "$3" --procs-per-node 1 --shape "$1" --net ib --topo xml \
    --coll "$5" --sizes 64K:4G:x2 --sim --timeout 900 --tuner "$plugin" 2>/dev/null
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

# standing_aside LABEL SHAPE NODES GPUS RAILS: a neutral profile is like none.
standing_aside() {
  local label=$1 state alike from choices plain text
  read -r state alike from plain <<<"$(run_nccl "$2" "$3" "$4" "" ar,ag | digest)"
  if [ "$state" != ok ]; then fail "$label: NCCL runs with the plugin standing aside" "$state"; return; fi
  text=$("$BUILD/bin/rdma-tune" profile make --nodes "$3" --rails "$5" --neutral)
  read -r state alike from choices <<<"$(run_nccl "$2" "$3" "$4" "$text" ar,ag | digest)"
  if [ "$choices" = "$plain" ]; then pass "$label: a neutral profile changes nothing (ring from $from)"
  else fail "$label: a neutral profile changes nothing" "$plain"$'\n'"$choices"; fi
}

# moving LABEL SHAPE NODES GPUS RAILS NOMINAL BETA ALPHA...: all ranks choose alike, and higher latencies never let ring begin
# earlier. Where a ring has more steps than a tree, from four nodes on, they let it begin later. Latencies near what NCCL assumes
# (below 5 us at full bandwidth) are no part of that: there its own price has a part in the choice.
moving() {
  local label=$1 shape=$2 nodes=$3 gpus=$4 rails=$5 nominal=$6 beta=$7 first=0 last=0 alpha state alike from choices
  shift 7
  for alpha; do
    read -r state alike from choices <<<"$(run_nccl "$shape" "$nodes" "$gpus" "$(profile "$nodes" "$rails" "$alpha" "$beta" "$nominal")" ar | digest)"
    if [ "$state $alike" = "ok yes" ]; then pass "$label, $alpha us, $beta GB/s: all ranks choose alike (ring from $from)"
    else fail "$label, $alpha us, $beta GB/s: all ranks choose alike" "$state $alike $choices"; continue; fi
    if [ "$beta" = "$nominal" ] && [ "$alpha" -lt 5 ]; then continue; fi
    if [ "$from" -ge "$last" ]; then pass "$label, $beta GB/s: ring does not begin earlier at $alpha us"
    else fail "$label, $beta GB/s: ring does not begin earlier at $alpha us" "from $from, before $last"; fi
    [ "$first" != 0 ] || first=$from
    last=$from
  done
  [ "$nodes" -ge 4 ] || return 0
  if [ "$last" -gt "$first" ]; then pass "$label, $beta GB/s: ring begins later at $alpha us ($first, then $last)"
  else fail "$label, $beta GB/s: ring begins later at $alpha us" "from $first, then $last"; fi
}

# Every NCCL that versions.sh knows, two nodes: loads, chooses alike, and a neutral profile changes nothing.
other_versions() {
  local kit=${NCCL_DRYRUN%/*} root version
  if [ ! -x "$kit/versions.sh" ]; then skip "other NCCL versions" "no versions.sh beside $NCCL_DRYRUN"; return; fi
  CACHE=$NCCL_VERSIONS_CACHE "$kit/versions.sh" true
  for root in "$NCCL_VERSIONS_CACHE"/nccl-*; do
    version=${root##*/nccl-}
    [ -d "$root" ] || { skip "other NCCL versions" "none in $NCCL_VERSIONS_CACHE"; return; }
    export DRYRUN_ROOT=$root
    standing_aside "NCCL $version, dgx-h100 2x8" dgx-h100 2 8 8
    moving "NCCL $version, dgx-h100 2x8" dgx-h100 2 8 8 50 50 2 30
    moving "NCCL $version, hgx-4gpu-2nic 4x4" hgx-4gpu-2nic 4 4 2 25 12.5 2 30
    unset DRYRUN_ROOT
  done
}

if [ -z "${NCCL_DRYRUN:-}" ]; then
  skip "the plugin inside NCCL" "${NCCL_DRYRUN_WHY:-no NCCL that runs without a GPU}"
elif [ ! -x "$BUILD/bin/rdma-tune" ]; then
  fail "rdma-tune is built" "no $BUILD/bin/rdma-tune"
else
  standing_aside "dgx-a100 2x8" dgx-a100 2 8 8
  moving "dgx-a100 2x8" dgx-a100 2 8 8 25 25 10 30
  moving "hgx-4gpu-2nic 4x4" hgx-4gpu-2nic 4 4 2 25 12.5 2 10 30
  if [ -n "${NCCL_DRYRUN_LARGE:-}" ]; then
    moving "dgx-a100 2x8" dgx-a100 2 8 8 25 25 2
    moving "dgx-a100 2x8" dgx-a100 2 8 8 25 12.5 10
    moving "hgx-4gpu-2nic 4x4" hgx-4gpu-2nic 4 4 2 25 25 10 30
    for nodes in 4 8; do
      standing_aside "dgx-a100 ${nodes}x8" dgx-a100 "$nodes" 8 8
      moving "dgx-a100 ${nodes}x8" dgx-a100 "$nodes" 8 8 25 25 2 10 30
      moving "dgx-a100 ${nodes}x8" dgx-a100 "$nodes" 8 8 25 12.5 2 10 30
    done
  fi
  [ -z "${NCCL_VERSIONS_CACHE:-}" ] || other_versions
fi
