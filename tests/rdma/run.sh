#!/bin/bash
# run.sh BUILD [SUITE...]: runs the suites, each in a guest of its own, and adds up. Without names:
# all of them. Prints their lines and, at the end, "N passed, N failed, N skipped".
set -uo pipefail
here=$(dirname "$(readlink -f "$0")")
build=$(readlink -f "$1")
shift
[ $# -gt 0 ] || set -- latency faults slurm topology

why=$("$here/guest.sh" why)
if [ -n "$why" ]; then
    for suite in "$@"; do echo "skip $suite: $why"; done
    echo "0 passed, 0 failed, $# skipped"
    exit 0
fi

declare -A options=([topology]="--topology --timeout 240" [slurm]="--timeout 240" [faults]="--timeout 300" [latency]="--timeout 240")
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for suite in "$@"; do
    echo "# suite $suite"
    begin=$SECONDS
    # shellcheck disable=SC2086  # several words on purpose
    "$here/guest.sh" run ${options[$suite]-} "$here/$suite.sh" "$build" 2>&1 | sed 's/^\([0-9]* passed, \)/# \1/' | tee -a "$log"
    status=${PIPESTATUS[0]}
    # A suite that ended before its own summary has failed, whatever it counted.
    [ "$status" = 0 ] || grep -q '^not ok' "$log" || echo "not ok $suite: ended with status $status" | tee -a "$log"
    echo "# suite $suite took $((SECONDS - begin)) s"
done
failed=$(grep -c '^not ok' "$log")
echo "$(grep -c '^ok' "$log") passed, $failed failed, $(grep -c '^skip' "$log") skipped"
[ "$failed" = 0 ]
