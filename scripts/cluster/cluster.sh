#!/bin/bash
# A real Slurm cluster of several nodes on one machine, from the distribution's packages, without
# containers. Each node has its own network, UTS, mount, PID and IPC namespaces, a private /dev with
# pretended GPU device files, and a private /run; all share this machine's files.
#
#   cluster.sh up N              start head and gpu01 .. gpuNN; again with the same N does nothing
#   cluster.sh down              stop all of it and remove its state; again does nothing
#   cluster.sh status            the nodes as Slurm sees them
#   cluster.sh exec NODE CMD...  run CMD as root on NODE (head or gpuNN)
#   cluster.sh user NODE CMD...  run CMD as the cluster's ordinary user (jobuser) on NODE
#   cluster.sh home              print jobuser's home folder
#   cluster.sh log NODE          print the log of NODE's slurmd (of slurmctld for head)
#
# Variables, all optional. Clusters with different CL_NAME, CL_BASE and CL_NET run side by side.
#   CL_NAME (dev)                  prefix of everything that has a name
#   CL_BASE (/tmp/rdma-tune-cluster)  folder for all state; jobuser must be able to reach it
#   CL_NET (10.77.0)               first three numbers of the nodes' addresses
#   CL_ROOT (/)                    a chroot with another Slurm; bootstrap_chroot.sh makes one
#   CL_GPUS (8), CL_CPUS (16)      pretended per node
#   CL_CGROUP (0)                  1: cgroup v1 and ConstrainDevices, so that Slurm really takes the
#                                  GPUs away that a task was not given
#   CL_TASKPLUGIN (task/none)      task/affinity to have tasks bound to cores
#   CL_PROCTRACK (proctrack/linuxproc)
#   CL_PLUGSTACK                   file to copy as plugstack.conf
#   CL_EXTRA                       further lines for slurm.conf
#   CL_HOOK                        script run as root in each node's namespaces before its daemons,
#                                  with the node's name as its argument
#   CL_DEBUG (info)                level of the daemons' logs
#   CL_WD                          folder for `user` (default: jobuser's home)
set -euo pipefail
here=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
# shellcheck source=scripts/cluster/settings.sh
. "$here/settings.sh"

say() { echo "cluster[$NAME]: $*"; }
seconds() { awk -v from="$1" -v to="$2" 'BEGIN { printf "%.2f", to - from }'; }

# The process id of a node's first process, as this machine sees it; checked to be ours, because the
# number in the file may have been given to another process since.
node_pid() {
  local pid
  pid=$(cat "$STATE/pid/$1" 2>/dev/null) || return 1
  [ -n "$pid" ] && [ -r "/proc/$pid/environ" ] || return 1
  tr '\0' '\n' <"/proc/$pid/environ" | grep -qx "CL_HOLDER=$NAME/$1" || return 1
  echo "$pid"
}

# enter NODE FOLDER CMD...: replaces nothing, runs CMD as root in the node's namespaces and root.
enter() {
  local node=$1 folder=$2 pid
  shift 2
  pid=$(node_pid "$node") || { say "no such node: $node (is the cluster up?)" >&2; return 1; }
  # --wdns: the folder is looked up inside, which with a chroot is another one.
  nsenter -t "$pid" -m -u -i -n -p -r --wdns="$folder" -- "$@"
}
on() { local node=$1; shift; enter "$node" / "$@"; }

# wait_for SECONDS WHAT CMD...: until CMD succeeds.
wait_for() {
  local limit=$1 what=$2 begin=$SECONDS
  shift 2
  until "$@" >/dev/null 2>&1; do
    if ((SECONDS - begin >= limit)); then
      say "$what: not there after $limit s" >&2
      return 1
    fi
    sleep 0.05
  done
}

# start_node NODE ADDRESS: a bridge in head's network namespace connects all.
start_node() {
  local node=$1 address=$2 cgroup_flag=() parent controller
  ip netns add "$NAME-$node"
  if [ "$node" = head ]; then
    ip -n "$NAME-head" link add br0 type bridge
    ip -n "$NAME-head" addr add "$address/24" dev br0
    ip -n "$NAME-head" link set br0 up
  else
    ip -n "$NAME-head" link add "v$node" type veth peer name eth0 netns "$NAME-$node"
    ip -n "$NAME-head" link set "v$node" master br0 up
    ip -n "$NAME-$node" addr add "$address/24" dev eth0
    ip -n "$NAME-$node" link set eth0 up
  fi
  if [ "$CGROUP" = 1 ]; then
    cgroup_flag=(--cgroup)
    for controller in $CONTROLLERS; do
      parent=/sys/fs/cgroup/$controller
      mkdir -p "$parent/$NAME-$node"
      [ "$controller" = cpuset ] || continue
      cat "$parent/cpuset.cpus" >"$parent/$NAME-$node/cpuset.cpus"
      cat "$parent/cpuset.mems" >"$parent/$NAME-$node/cpuset.mems"
    done
  fi
  rm -f "$STATE/pid/$node.ready"
  # A clean environment: what the caller has set must not reach the daemons. The shell in between
  # joins the node's cgroups, so that the new cgroup namespace has them as its root.
  # shellcheck disable=SC2016
  env -i PATH="$PATH" HOME=/root LANG=C CL_HOLDER="$NAME/$node" CL_NAME="$NAME" CL_BASE="$BASE" \
    CL_ROOT="$ROOT" CL_GPUS="$GPUS" CL_CGROUP="$CGROUP" CL_HOOK="$HOOK" CLUSTER_CONTROLLERS="$CONTROLLERS" \
    setsid bash -c '
      node=$1 script=$2; shift 2
      if [ "$CL_CGROUP" = 1 ]; then
        for c in $CLUSTER_CONTROLLERS; do echo $$ >"/sys/fs/cgroup/$c/$CL_NAME-$node/cgroup.procs"; done
      fi
      exec ip netns exec "$CL_NAME-$node" unshare --uts --ipc --mount --pid --fork --kill-child \
        --mount-proc "$@" bash "$script" "$node"' \
    _ "$node" "$here/node.sh" "${cgroup_flag[@]}" </dev/null >"$STATE/log/namespace.$node.log" 2>&1 &
  local unshare_pid=$!
  echo "$unshare_pid" >"$STATE/pid/$node.unshare"
  if ! wait_for 10 "namespaces of $node" test -e "$STATE/pid/$node.ready"; then
    cat "$STATE/log/namespace.$node.log" >&2
    return 1
  fi
  # unshare's only child is the node's first process.
  tr ' ' '\n' <"/proc/$unshare_pid/task/$unshare_pid/children" | head -n 1 >"$STATE/pid/$node"
  node_pid "$node" >/dev/null
}

all_idle() { [ "$(on head sinfo -h -N -o '%N %t' 2>/dev/null | awk '$2 == "idle"' | wc -l)" = "$1" ]; }

start_daemons() {
  local count=$1 node munge_user munge_group
  munge_user=$(awk -F: '$1 == "munge" { print $3 }' "$ROOT/etc/passwd")
  munge_group=$(awk -F: '$1 == "munge" { print $4 }' "$ROOT/etc/passwd")
  # One munged for all nodes: they share its socket's folder.
  on head setpriv --reuid="$munge_user" --regid="$munge_group" --clear-groups \
    /usr/sbin/munged --key-file="$STATE/munge.key" --socket=/run/munge/munge.socket.2 \
    --pid-file=/run/munge/munged.pid --log-file=/run/munge/munged.log --seed-file=/run/munge/munged.seed
  wait_for 10 munged on head munge -n
  local clean=(env -i HOME=/root LANG=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin)
  on head "${clean[@]}" /usr/sbin/slurmctld -c
  for node in $(node_names "$count"); do
    mkdir -p "$STATE/spool/$node"
    on "$node" "${clean[@]}" /usr/sbin/slurmd
  done
  wait_for 30 slurmctld on head scontrol ping
  if ! wait_for 60 "$count idle nodes" all_idle "$count"; then
    on head sinfo -N -l >&2 || true
    tail -n 20 "$STATE"/log/*.log >&2
    return 1
  fi
}

up() {
  local count=$1 begin middle index=0 node
  begin=$EPOCHREALTIME
  if [ -e "$STATE/count" ] && [ "$(cat "$STATE/count")" = "$count" ] && all_idle "$count"; then
    say "is up already ($count nodes)"
    return 0
  fi
  down quiet
  "$here/configure.sh" "$count"
  echo "$count" >"$STATE/count"
  start_node head "$NET.254"
  for node in $(node_names "$count"); do
    index=$((index + 1))
    start_node "$node" "$NET.$index"
  done
  middle=$EPOCHREALTIME
  start_daemons "$count"
  say "up: $count nodes; namespaces $(seconds "$begin" "$middle") s, daemons $(seconds "$middle" "$EPOCHREALTIME") s"
}

down() {
  local file node pid
  for file in "$STATE"/pid/*.unshare; do
    [ -e "$file" ] || continue
    node=$(basename "$file" .unshare)
    if pid=$(node_pid "$node"); then
      kill -KILL "$pid" 2>/dev/null || true # a PID namespace ends with its first process
      wait_for 10 "end of $node" test ! -e "/proc/$pid" || true
    fi
    rm -f "$STATE/pid/$node" "$STATE/pid/$node.ready" "$file"
  done
  { ip netns list 2>/dev/null || true; } | awk '{ print $1 }' | { grep "^$NAME-" || true; } |
    while read -r node; do ip netns del "$node"; done
  for file in /sys/fs/cgroup/*/"$NAME"-*; do
    [ -d "$file" ] && find "$file" -depth -type d -exec rmdir {} \; 2>/dev/null
  done
  rm -rf --one-file-system -- "$STATE"
  [ "${1:-}" = quiet ] || say down
}

usage() { sed -n '2,/^set /{/^set /!s/^# \{0,1\}//p}' "$0"; }

case ${1:-} in
  up)
    [[ ${2:-} =~ ^[1-9][0-9]?$ ]] || { echo "cluster.sh: up: expected a number of nodes from 1 to 99" >&2; exit 2; }
    up "$2"
    ;;
  down) down ;;
  status) on head sinfo -N -l ;;
  home) echo "$USER_HOME" ;;
  log) if [ "${2:-head}" = head ]; then cat "$STATE/log/slurmctld.log"; else cat "$STATE/log/slurmd.$2.log"; fi ;;
  exec)
    [ $# -ge 3 ] || { usage >&2; exit 2; }
    shift
    on "$@"
    ;;
  user)
    [ $# -ge 3 ] || { usage >&2; exit 2; }
    node=$2
    shift 2
    enter "$node" "${CL_WD:-$USER_HOME}" setpriv --reuid="$USER_ID" --regid="$USER_ID" --clear-groups \
      env -i HOME="$USER_HOME" USER="$USER_NAME" LOGNAME="$USER_NAME" LANG=C.UTF-8 \
      PATH=/usr/local/bin:/usr/bin:/bin "$@"
    ;;
  *)
    usage >&2
    exit 2
    ;;
esac
