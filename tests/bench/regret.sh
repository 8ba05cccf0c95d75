#!/bin/bash
# What the choices of NCCL, of the plugin and of the model lose against the best, simulated, on even networks and on those with
# one long edge or one slow node; and published measurements where they are at hand. SWEEP_STRIDE=1 takes every case of the grid
# (hours), the default a part.
set -uo pipefail
here=$(dirname "$(readlink -f "$0")")
top=$(cd "$here/../.." && pwd)
BUILD=${BUILD:-$top/build}
make -s -C "$top" BUILD="$BUILD" "$BUILD/model/sweep" || exit 1
"$BUILD/model/sweep" --stride "${SWEEP_STRIDE:-47}" --offset "${SWEEP_OFFSET:-11}"
"$BUILD/model/sweep" --uneven --stride "${SWEEP_UNEVEN_STRIDE:-101}"
cases=${RDMA_TUNE_CASES:-$top/../shared/cases}
[ ! -d "$cases/ringtree" ] || "$BUILD/model/sweep" --published "$cases/ringtree"
