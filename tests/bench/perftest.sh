#!/bin/bash
# Our latency and bandwidth beside perftest's, on the same soft-RoCE link in one boot of the guest, by turns;
# and a real ring and tree allreduce beside what the measured alpha and beta promise. The guest is emulated:
# its microseconds are those of its CPU, only the comparison means something. Needs root once, to set it up.
set -uo pipefail
top=$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd)
export BUILD=${BUILD:-$top/build}
make -s -C "$top" BUILD="$BUILD" "$BUILD/tests/verbs_probe" || exit 1
why=$("$top/tests/rdma/guest.sh" why)
[ -z "$why" ] || { echo "skipped: $why"; exit 0; }
"$top/tests/rdma/run.sh" latency collectives | sed -n -E 's/^# ([^0-9]|[0-9]+ nodes,)/\1/p'
exit "${PIPESTATUS[0]}"
