#!/bin/bash
# The model's choices against the simulator (a part of the grid; `make bench` takes more of it), and against
# published measurements where they are at hand (RDMA_TUNE_CASES, or ../shared/cases).
set -uo pipefail
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/tools/checks.sh
. "$here/../tools/checks.sh"
top=$(cd "$here/../.." && pwd)
BUILD=${BUILD:-$top/build}
cd "$top" || exit 2

check "the simulator is built" make -s BUILD="$BUILD" "$BUILD/model/sweep"
[ -x "$BUILD/model/sweep" ] || finish
# 409 and 607 go through all latencies, shares and sizes before they come round again.
output=$("$BUILD/model/sweep" --stride "${SWEEP_STRIDE:-409}" --check)
status=$?
echo "$output"
if [ $status = 0 ]; then pass "regret stays within its bounds"; else fail "regret stays within its bounds"; fi
contains "the sweep covers enough cases" "$output" '^all +[0-9]{3,} '
output=$("$BUILD/model/sweep" --uneven --stride "${SWEEP_UNEVEN_STRIDE:-607}" --check)
status=$?
echo "$output"
if [ $status = 0 ]; then pass "regret stays small where one edge or node is worse"
else fail "regret stays small where one edge or node is worse"; fi

cases=${RDMA_TUNE_CASES:-$top/../shared/cases}
if [ -d "$cases/ringtree" ]; then
  check "published measurements can be compared" "$BUILD/model/sweep" --published "$cases/ringtree"
  "$BUILD/model/sweep" --published "$cases/ringtree"
else
  skip "published measurements" "no folder $cases/ringtree"
fi
finish
