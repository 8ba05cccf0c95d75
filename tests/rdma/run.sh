#!/bin/bash
# run.sh [SUITE...]: runs the suites, each in a guest of its own, and adds up. Without names: all of
# them. Takes the programs from $BUILD (default: build). Prints the suites' lines and, at the end,
# "N passed, N failed, N skipped". RDMA_TUNE_GUEST names another folder for the prepared guest.
set -uo pipefail
here=$(dirname "$(readlink -f "$0")")
build=$(readlink -f "${BUILD:-$here/../../build}")
[ $# -gt 0 ] || set -- latency collectives slurm topology faults
for file in bin/rdma-tune tests/verbs_probe; do
    [ -x "$build/$file" ] || { echo "run.sh: $build/$file is missing; make check-rdma builds it" >&2; exit 2; }
done
# Small, because the guest reads the machine's files slowly.
strip -o "$build/tests/rdma-tune.stripped" "$build/bin/rdma-tune"

why=$("$here/guest.sh" why)
if [ -n "$why" ]; then
    for suite in "$@"; do echo "skip $suite: $why"; done
    echo "0 passed, 0 failed, $# skipped"
    exit 0
fi

declare -A options=([topology]="--topology --timeout 400" [slurm]="--timeout 600" [faults]="--timeout 900" [latency]="--timeout 300" [collectives]="--timeout 700")
log=$(mktemp) one=$(mktemp)
trap 'rm -f "$log" "$one"' EXIT
for suite in "$@"; do
    echo "# suite $suite"
    begin=$SECONDS
    # shellcheck disable=SC2086  # several words on purpose
    "$here/guest.sh" run ${options[$suite]-} "$here/$suite.sh" "$build" 2>&1 | sed -u 's/^\([0-9]* passed, \)/# \1/' | tee "$one"
    status=${PIPESTATUS[0]}
    # What a guest said before its emulator crashed does not count.
    awk '/^# guest.sh: QEMU ended by signal/ { n = 0; next } { line[n++] = $0 } END { for (i = 0; i < n; i++) print line[i] }' "$one" >>"$log"
    # A suite that ended before its own summary has failed, whatever it counted.
    [ "$status" = 0 ] || grep -q '^not ok' "$log" || echo "not ok $suite: ended with status $status" | tee -a "$log"
    echo "# suite $suite took $((SECONDS - begin)) s"
done
failed=$(grep -c '^not ok' "$log")
echo "$(grep -c '^ok' "$log") passed, $failed failed, $(grep -c '^skip' "$log") skipped"
[ "$failed" = 0 ]
