#!/bin/bash
# Prints the path of a program that runs the unmodified NCCL without a GPU, for the tests that ask NCCL itself:
#   tests/tools/nccl_dryrun.sh            the path; or nothing, status 1, and on standard error why there is none
# NCCL_DRYRUN names the program where it is built already. Else its sources are taken from NCCL_DRYRUN_KIT, or from
# ../shared/tools/nccl-dryrun beside the checkout; they are no part of this project and stay untouched: a copy is
# built once, in $BUILD/nccl-dryrun, and again when they have changed. That needs cuda.h and libnccl.so.2.
# For scripts, sourced:   dryrun_program    sets and exports NCCL_DRYRUN, or NCCL_DRYRUN_WHY says what is missing.

dryrun_program() {
  local said
  said=$(mktemp) || return 1
  unset NCCL_DRYRUN_WHY
  if NCCL_DRYRUN=$("${BASH_SOURCE[0]}" 2>"$said"); then export NCCL_DRYRUN
  else
    unset NCCL_DRYRUN
    NCCL_DRYRUN_WHY=$(tail -n 1 "$said")
    export NCCL_DRYRUN_WHY
  fi
  rm -f "$said"
}
[ "${BASH_SOURCE[0]}" = "$0" ] || return 0

set -uo pipefail
top=$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd)
missing() { echo "$1" >&2; exit 1; }

if [ -n "${NCCL_DRYRUN:-}" ]; then
  if [ ! -f "$NCCL_DRYRUN" ] || [ ! -x "$NCCL_DRYRUN" ]; then missing "NCCL_DRYRUN=$NCCL_DRYRUN is no program"; fi
  readlink -f -- "$NCCL_DRYRUN"
  exit
fi
kit=${NCCL_DRYRUN_KIT:-$top/../shared/tools/nccl-dryrun}
[ -f "$kit/Makefile" ] || missing "NCCL_DRYRUN names no program, and there is no $kit"
copy=${BUILD:-$top/build}/nccl-dryrun
mkdir -p "$(dirname "$copy")" || missing "cannot write to $(dirname "$copy")"

# Two suites may begin at the same moment.
exec 9>"$copy.lock"
flock 9 || missing "cannot lock $copy.lock"
current() { [ -x "$copy/nccl-dryrun" ] && [ -x "$copy/build/dryrun-main" ] && diff -rq -x build "$kit" "$copy" >/dev/null 2>&1; }
if ! current; then
  rm -rf -- "$copy" "$copy.new"
  # The original may be read-only, its build folder another machine's.
  if ! cp -r -- "$kit" "$copy.new" || ! chmod -R u+w,a+rX -- "$copy.new" || ! rm -rf -- "$copy.new/build"; then
    missing "cannot copy $kit to $copy.new"
  fi
  if ! env -u BUILD -u MAKEFLAGS -u MAKELEVEL make -s -C "$copy.new" >"$copy.log" 2>&1 9>&-; then
    missing "nccl-dryrun does not build here: $(grep -v '^make' "$copy.log" | tail -n 1) (all of it: $copy.log)"
  fi
  # A build that was interrupted never stands where the next run looks.
  mv -T -- "$copy.new" "$copy"
fi
# It must find NCCL, too.
lib=$("$copy/find-nccl.sh" 2>&1) || missing "$lib"
readlink -f -- "$copy/nccl-dryrun"
