#!/bin/bash
# Runs every fuzzer of $SAN_BUILD for FUZZ_SECONDS (10) on inputs that FUZZ_SEED (1) decides.
set -uo pipefail
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/tools/checks.sh
. "$here/../tools/checks.sh"
top=$(cd "$here/../.." && pwd)
SAN_BUILD=${SAN_BUILD:-${BUILD:-$top/build}-asan}
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
"$top/scripts/demo/topology.sh" mlx5_0 mlx5_1 mlx5_2 mlx5_3 >"$work/demo.xml"
cd "$SAN_BUILD/fuzz" || { fail "fuzzers are built" "no $SAN_BUILD/fuzz"; finish; }

for source in "$here"/*_fuzz.cpp; do
  name=$(basename "$source" .cpp)
  seeds=("$here/corpus/${name%_fuzz}")
  if [ "$name" = topology_fuzz ]; then seeds=("$here/../fixtures/topology" "$work"); fi
  output=$("./$name" "${FUZZ_SECONDS:-10}" "${FUZZ_SEED:-1}" "${seeds[@]}" 2>&1)
  status=$?
  if [ $status = 0 ]; then pass "$name: $output"; else fail "$name (status $status)" "$output"; fi
done
finish
