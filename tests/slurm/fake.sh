#!/bin/bash
# Stands in front of the real program (beside it) and misbehaves at one command:
#   RDMA_TUNE_FAKE=hang-node  ignores SIGTERM and never ends
#   fail-, garbage-, huge-, die-   exits 1 with a reason, prints nonsense, prints without end, dies by a signal
#   slow-                          takes half a second more
# Every call goes into fake.log with who made it.
here=$(dirname "$(readlink -f "$0")")
command=$1
echo "$command uid=$(id -u) groups=$(id -G | tr ' ' ,) caps=$(awk '/^CapPrm/ { print $2 }' /proc/self/status)" \
  "fds=$(/bin/ls /proc/$$/fd | tr '\n' ,) cwd=$PWD preload=${LD_PRELOAD:-} args=$*" >>"$here/../../fake.log"
if [ "${RDMA_TUNE_FAKE:-}" != "${RDMA_TUNE_FAKE%-"$command"}" ]; then
  case $RDMA_TUNE_FAKE in
    hang-*) trap '' TERM; while :; do sleep 100; done ;;
    fail-*) echo "made to fail" >&2; echo "second line" >&2; exit 1 ;;
    garbage-*) head -c 3000 /dev/urandom; exit 0 ;;
    huge-*) exec cat /dev/zero ;;
    die-*) kill -SEGV $$ ;;
    slow-*) sleep 0.5 ;;
  esac
fi
exec "$here/rdma-tune" "$@"
