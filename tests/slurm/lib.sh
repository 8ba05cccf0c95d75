# Sourced by run.sh: the cluster of this run, and what a case is written with.
# shellcheck shell=bash disable=SC2154,SC2034,SC2015,SC2119,SC2120 # the variables are run.sh's
#
# A case is a function `case_NAME` that runs in a subshell. It calls `die WHY` when something is wrong
# and `skip WHY` when it cannot be tried here. Before each case the site is as `reset_site` makes it,
# and after each all nodes must still be idle: nothing that the plugin does may drain one.

NODES=4
GPUS=4
cluster=$top/scripts/cluster/cluster.sh
passed=0 failed=0 skipped=0

die() { printf '%s\n' "$*" >"$work/why"; exit 1; }
skip() { printf '%s\n' "$*" >"$work/why"; exit 77; }

on() { "$cluster" exec "$@"; }   # NODE CMD..., as root
user() { "$cluster" user head "$@"; }

# run CMD...: as the user on head; its output is in $out and $err, its status in $rc, its time in $took
# (tenths of a second). LIMIT seconds, default 40.
run() {
  local begin=${EPOCHREALTIME/[.,]/}
  rc=0
  timeout -k 5 "${LIMIT:-40}" "$cluster" user head "$@" >"$out" 2>"$err" </dev/null || rc=$?
  took=$(((${EPOCHREALTIME/[.,]/} - begin) / 100000))
  # On a busy machine the nodes of the case before may not be free yet, which srun tells.
  sed -i -E '/^srun: job [0-9]+ (queued and waiting for|has been allocated) resources$/d' "$err"
}

shown() { printf '%s' "$(tail -c 400 "$1" | tr '\n' '|')"; }
ended() { [ "$rc" = "$1" ] || die "status $rc instead of $1: $(shown "$err")"; }
# It failed by itself: 124 and 137 are our own time limit's.
failed_run() { [[ $rc != 0 && $rc != 124 && $rc != 137 ]] || die "status $rc, expected a failure: $(shown "$err")"; }
has() { grep -qE -- "$2" "$1" || die "no '$2' in: $(shown "$1")"; }
lacks() { ! grep -qE -- "$2" "$1" || die "unexpected '$(grep -m1 -E -- "$2" "$1")'"; }
count_is() { # FILE PATTERN NUMBER
  local n
  n=$(grep -cE -- "$2" "$1") || true
  [ "$n" = "$3" ] || die "$n lines with '$2' instead of $3: $(shown "$1")"
}
# The reason is said once, and it is the only thing said about not being tuned.
told_once() { count_is "$err" "rdma-tune: .*(untuned|not bound)" 1; has "$err" "$1"; }

# of RANK NAME: what the task showed (see task.sh).
of() { sed -n "s/^$1 $2=//p" "$out" | head -n 1; }
expect() { # RANK NAME VALUE
  [ "$(of "$1" "$2")" = "$3" ] || die "rank $1: $2 is '$(of "$1" "$2")' instead of '$3'"
}
ranks_ran() { # NUMBER
  local n
  n=$(grep -cE '^[0-9]+ host=' "$out") || true
  [ "$n" = "$1" ] || die "$n tasks ran instead of $1: $(shown "$err")"
}
untouched() { lacks "$out" '^[0-9]+ (NCCL_|UCX_|RDMA_TUNE_PROFILE|CUDA_DEVICE_ORDER)'; }

# plugstack [ARGUMENT...]: the plugin's line; srun and slurmstepd read it anew for every step.
plugstack() { echo "${REQUIRED:-optional} $work/opt/lib/slurm/spank_rdma_tune.so config=$work/site.conf $*" >"$state/etc/plugstack.conf"; }
site() { # LINE...: what rdma-tune.conf has besides the topologies
  { printf 'topology = gpu%02d=%s\n' 1 "$work/gpu01.xml" 2 "$work/gpu02.xml" 3 "$work/gpu03.xml" 4 "$work/gpu04.xml"
    [ $# = 0 ] || printf '%s\n' "$@"; } >"$work/site.conf"
  chown 0:0 "$work/site.conf"
  chmod 644 "$work/site.conf"
}
reset_site() {
  site
  plugstack
  : >"$work/fake.log"
  chmod 666 "$work/fake.log"
}
# The program that stands in front of the real one and misbehaves as RDMA_TUNE_FAKE says.
faked() { plugstack "program=$work/opt/bin/fake-rdma-tune" "$@"; }

all_idle() { [ "$(on head sinfo -h -N -o %t | grep -c '^idle$')" = $NODES ]; }
settle() {
  local i
  for ((i = 0; i < 100; i++)); do
    if all_idle && [ -z "$(on head squeue -h)" ]; then return 0; fi
    sleep 0.1
  done
  return 1
}

case_filter=${1:-.}
try() { # NAME
  local name=$1 status=0 begin=${EPOCHREALTIME/[.,]/}
  [[ $name =~ $case_filter ]] || return 0
  : >"$work/why"
  reset_site
  (set -uo pipefail; "case_$name") >"$work/case.log" 2>&1 || status=$?
  if [ $status = 0 ] || [ $status = 77 ]; then
    settle || { status=1; echo "afterwards not all nodes are idle: $(on head sinfo -h -N -o '%N %t %E' | tr '\n' '|') $(on head squeue -h | tr '\n' '|')" >"$work/why"; }
  fi
  case $status in
    0) passed=$((passed + 1)); printf 'ok %s (%d.%d s)\n' "$name" $(((${EPOCHREALTIME/[.,]/} - begin) / 1000000)) $(((${EPOCHREALTIME/[.,]/} - begin) / 100000 % 10)) ;;
    77) skipped=$((skipped + 1)); printf 'skip %s - %s\n' "$name" "$(cat "$work/why")" ;;
    *)
      failed=$((failed + 1))
      printf 'not ok %s - %s\n' "$name" "$(cat "$work/why" "$work/case.log" | tr '\n' ' ')"
      on head scancel --user=jobuser >/dev/null 2>&1 || true
      settle || on head scontrol update nodename="gpu[01-0$NODES]" state=resume >/dev/null 2>&1 || true
      ;;
  esac
}

finish() {
  "$cluster" down >/dev/null 2>&1 || true
  rm -rf --one-file-system -- "$work"
}
