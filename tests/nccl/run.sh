#!/bin/bash
# The NCCL plugin as a file, and the commands about it: what it needs, what it shows, that every build decides alike, and, where
# there is a program that runs the unmodified NCCL without GPUs (tests/tools/nccl_dryrun.sh), what NCCL makes of it.
set -uo pipefail
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/tools/checks.sh
. "$here/../tools/checks.sh"
# shellcheck source=tests/tools/nccl_dryrun.sh
. "$here/../tools/nccl_dryrun.sh"
top=$(cd "$here/../.." && pwd)
export BUILD=${BUILD:-$top/build}
plugin=$BUILD/lib/libnccl-tuner-rdmatune.so
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
cd "$top" || exit 2

[ -e "$plugin" ] || { fail "the plugin is built" "no $plugin"; finish; }

# ---- what it needs, and what it shows ----
needed=$(readelf -d "$plugin" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vE '^lib(c|m|pthread|dl)\.so\.')
if [ -z "$needed" ]; then pass "needs only libc and its kin"; else fail "needs only libc and its kin" "$needed"; fi

newest=$(objdump -T "$plugin" | grep -oE 'GLIBC_[0-9.]+' | sort -uV | tail -n 1)
oldest_allowed=GLIBC_2.17
if [ "$(printf '%s\n%s\n' "$newest" $oldest_allowed | sort -V | tail -n 1)" = $oldest_allowed ]; then
  pass "no symbol newer than glibc 2.17 (newest: $newest)"
else fail "no symbol newer than glibc 2.17" "$newest"; fi

exported=$(nm -D --defined-only "$plugin" | awk '{print $3}' | sort | tr '\n' ' ')
expected="ncclTunerPlugin_v2 ncclTunerPlugin_v3 ncclTunerPlugin_v4 ncclTunerPlugin_v5 ncclTunerPlugin_v6 "
if [ "$exported" = "$expected" ]; then pass "exports the five interfaces and nothing else"
else fail "exports the five interfaces and nothing else" "$exported"; fi

check "the loading program compiles" "${CC:-cc}" -O1 -Wall -Wextra -Werror -o "$work/load" "$here/load.c" -ldl
check "loads beside another C++ library, unloads, loads again" "$work/load" "$plugin"

# ---- every build decides alike ----
core="tuner/model/pricing.cpp tuner/model/reprice.cpp tuner/model/network.cpp tuner/model/rules.cpp tuner/model/nccl_price.cpp"
# The compiler may fuse and reorder floating point as it likes in some of these: there is none that matters.
builds=("-O0" "-O3" "-O2 -ffast-math" "-O3 -mfma -ffp-contract=fast" "-O3 -march=native -ffp-contract=fast")
first=
for options in "${builds[@]}"; do
  # shellcheck disable=SC2086 # options and files are lists
  if ! "${CXX:-g++}" -std=c++20 $options -I. -o "$work/bits" tests/model/bits/bits.cpp $core >"$work/log" 2>&1; then
    fail "builds with $options" "$(cat "$work/log")"
    continue
  fi
  if [[ $options == *-mfma* ]] && ! grep -qw fma /proc/cpuinfo; then skip "a million tables with $options" "this CPU has no FMA"; continue; fi
  hash=$("$work/bits")
  [ -n "$first" ] || first=$hash
  if [ -n "$hash" ] && [ "$hash" = "$first" ]; then pass "a million tables with $options: $hash"
  else fail "a million tables with $options" "$hash instead of $first"; fi
done

# ---- the commands ----
# shellcheck source=tests/nccl/commands.sh
. "$here/commands.sh"

# ---- the unmodified NCCL ----
# What cannot be had is said by name, and nothing is run.
without=$(NCCL_DRYRUN="" NCCL_DRYRUN_KIT=$work/nowhere "$here/../tools/nccl_dryrun.sh" 2>&1)
contains "an NCCL that cannot be had is said" "$without" "NCCL_DRYRUN names no program, and there is no $work/nowhere"
without=$(NCCL_DRYRUN=$work/load.txt "$here/../tools/nccl_dryrun.sh" 2>&1)
contains "a wrong NCCL_DRYRUN is said" "$without" "NCCL_DRYRUN=$work/load.txt is no program"
[ -n "${NCCL_DRYRUN_WHY:-}" ] || dryrun_program
# shellcheck source=tests/nccl/real_nccl.sh
. "$here/real_nccl.sh"
finish
