#!/bin/bash
# The scripts round the program: documentation that follows the option table, the sample
# configuration, installation, the test runner, package list, lint.
set -uo pipefail
here=$(dirname "$(readlink -f "$0")")
top=$(cd "$here/../.." && pwd)
BUILD=${BUILD:-$top/build}
# shellcheck source=tests/tools/checks.sh
. "$here/../tools/checks.sh"
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
unset MAKEFLAGS MAKELEVEL
program=$BUILD/bin/rdma-tune

# ---- documentation and samples against the option table -----------------------------------------
table_in_readme() {
  "$program" options >"$work/table" || return
  sed -n '/^| key | where it may be given/,/^$/p' "$top/README.md" | sed '/^$/d' | diff "$work/table" -
}
check "README.md's table is what \`rdma-tune options\` prints" table_in_readme
check "the documents name every option, variable and subcommand" python3 "$here/documented.py" "$program" "$top"

dead_links() { # links of the documentation that lead to no file, and documents that no index names
  local page link
  for page in "$top"/README.md "$top"/docs/*.md; do
    grep -oE '\]\([^)#:]+' "$page" | sed 's/^](//' | while read -r link; do
      [ -e "$(dirname "$page")/$link" ] || echo "${page#"$top"/}: $link"
    done
    [[ $page == */README.md ]] || grep -qF "($(basename "$page"))" "$top/docs/README.md" || echo "docs/README.md lacks $(basename "$page")"
  done | grep .
}
refuse "links in the documentation lead somewhere, and the index is complete" dead_links

uncommented() { # the sample with every default made a real line
  sed -E 's/^#([a-z_]+ = .+)$/\1/' "$top/conf/rdma-tune.conf" >"$work/all.conf"
  chmod 644 "$work/all.conf"
}
planned() { "$program" plan --tasks 1 --config "$1" --topology "$work/node.xml"; }
"$top/scripts/demo/topology.sh" mlx5_0 mlx5_1 mlx5_2 mlx5_3 >"$work/node.xml"
uncommented
check "the sample configuration is accepted with its defaults uncommented" planned "$work/all.conf"
echo 'budgte = 5' >>"$work/all.conf"
contains "a mistyped key is refused with file and line" "$(planned "$work/all.conf" 2>&1)" \
  "all.conf:$(wc -l <"$work/all.conf"): unknown key"
beside() { # for each local rank: the distance of its GPU and HCA
  "$program" plan --tasks 4 --topology "$work/node.xml" --json |
    python3 -c 'import json, sys; print(*[(r["distance"], *r["hcas"]) for r in json.load(sys.stdin)["ranks"]])'
}
check "the demo's topology has each GPU beside its own HCA" \
  test "$(beside)" = "('PIX', 'mlx5_0') ('PIX', 'mlx5_1') ('PIX', 'mlx5_2') ('PIX', 'mlx5_3')"

# ---- installation -------------------------------------------------------------------------------
staged() { make --no-print-directory -o all -C "$top" BUILD="$BUILD" PREFIX=/opt/rt DESTDIR="$work/root" "$@"; }
mkdir -p "$work/root/opt/rt/share/man/man1" && echo other >"$work/root/opt/rt/share/man/man1/other.1"
check "make install" staged install
for path in bin/rdma-tune bin/rdma-tune-task lib/libnccl-tuner-rdmatune.so lib/slurm/spank_rdma_tune.so share/man/man1/rdma-tune.1 \
  share/man/man5/rdma-tune.conf.5 share/man/man8/spank-rdma-tune.8 share/rdma-tune/conf/rdma-tune.conf \
  share/rdma-tune/examples/train.sbatch share/rdma-tune/train/train_ddp.py; do
  check "installed: $path" test -s "$work/root/opt/rt/$path"
done
check "the installed plugstack sample names the installed plugin" \
  grep -q '^optional /opt/rt/lib/slurm/spank_rdma_tune.so ' "$work/root/opt/rt/share/rdma-tune/conf/plugstack.conf.d/rdma-tune.conf"
refuse "no placeholder is left in what was installed" grep -rE '@[A-Z]+@' "$work/root/opt/rt/share/rdma-tune"
# S45, aws-parallelcluster #6459: a file in plugstack.conf.d that cannot be read fails every job.
check "installed samples can be read by everybody" \
  test -z "$(find "$work/root/opt/rt/share/rdma-tune/conf" -type f ! -perm -444)"
refuse "no text asks for an include that takes in temporary files" \
  grep -rnE 'include [^ ]*plugstack\.conf\.d/\*([^.]|$)' "$top/README.md" "$top/docs" "$top/conf" "$top/scripts"
# S39, pyxis #25 and #35: one symbol that Slurm does not have, and srun and sbatch fail for everybody.
defined() { nm -D --defined-only "$1" | awk '{ print $NF }' | sort -u; }
needed() { nm -D --undefined-only "$1" | awk '$1 == "U" && $2 !~ /@/ { print $2 }' | sort -u; }
unresolved() { # programs that load the plugin and lack what it needs
  local name path
  for name in srun sbatch salloc slurmd slurmstepd; do
    path=$(PATH=$PATH:/usr/sbin command -v "$name") || continue
    comm -23 <(needed "$BUILD/lib/spank_rdma_tune.so") \
      <({ defined "$path"; ldd "$path" | awk '$3 ~ /^\// { print $3 }' | while read -r library; do defined "$library"; done; } | sort -u) |
      sed "s/^/$name lacks /"
  done | grep .
}
check "the plugin needs Slurm's own symbols" grep -q '^spank_get_item$' <(needed "$BUILD/lib/spank_rdma_tune.so")
refuse "every program that loads the plugin has all that it needs" unresolved
check "the installed program runs" "$work/root/opt/rt/bin/rdma-tune" --version
check "make uninstall" staged uninstall
check "uninstall leaves what it did not install, and nothing else" \
  test "$(cd "$work/root" && find . -type f)" = ./opt/rt/share/man/man1/other.1

# ---- the test runner ----------------------------------------------------------------------------
mkdir -p "$work/run/tests" "$work/run/scripts" "$work/run/build/tests"
cp "$top/tests/run" "$work/run/tests/"
suite() { # NAME, standard input: its script
  mkdir -p "$work/run/tests/$1"
  { echo '#!/bin/bash'; cat; } >"$work/run/tests/$1/run.sh"
  chmod +x "$work/run/tests/$1/run.sh"
}
suite good <<<'echo "SKIPPED: gpu: no GPU here"; echo "3 passed, 0 failed, 1 skipped"'
suite bad <<<'echo "1 passed, 2 failed"; exit 1'
suite silent <<<'echo nothing counted'
suite killed <<<'echo "5 passed, 0 failed"; kill -KILL $$'
suite liar <<<'echo "5 passed, 0 failed, 0 skipped"; exit 3'
suite empty <<<'echo "0 passed, 0 failed, 0 skipped"'
suite slow <<<'sleep 60; echo "1 passed, 0 failed"'
googletest_says() { # NAME STATUS, standard input: its output
  { echo '#!/bin/bash'; echo "cat <<'OUT'"; cat; echo OUT; echo "exit $2"; } >"$work/run/build/tests/$1_test"
  chmod +x "$work/run/build/tests/$1_test"
}
runner() { BUILD=$work/run/build TEST_LIMIT=3 "$work/run/tests/run" "$@"; }
ends() { # NAME STATUS LASTLINE SUITE...
  local name=$1 status=$2 line=$3 output got
  shift 3
  output=$(runner "$@" 2>&1)
  got=$?
  if [ "$got" = "$status" ] && [ "$(tail -n 1 <<<"$output")" = "$line" ]; then pass "$name"
  else fail "$name" "$(printf 'status %s, expected %s; last line expected: %s\n%s' "$got" "$status" "$line" "$output")"; fi
}
ends "a suite that passes" 0 "3 passed, 0 failed, 1 skipped" good
contains "a skip is explained" "$(runner good)" 'skipped:.*no GPU here'
ends "suites add up, and one failure is enough" 1 "4 passed, 2 failed, 1 skipped" good bad
ends "a suite without counts has failed" 1 "0 passed, 1 failed, 0 skipped" silent
ends "a suite that dies after its counts has failed" 1 "5 passed, 1 failed, 0 skipped" killed
ends "a status that the counts do not explain is a failure" 1 "5 passed, 1 failed, 0 skipped" liar
ends "a suite that tested nothing has failed" 1 "0 passed, 1 failed, 0 skipped" empty
ends "a suite over its time has failed" 1 "0 passed, 1 failed, 0 skipped" slow
ends "a suite that does not exist has failed" 1 "0 passed, 1 failed, 0 skipped" nonesuch
ends "no unit test programs is a failure" 1 "0 passed, 1 failed, 0 skipped" unit
googletest_says base 0 <<'OUT'
[==========] Running 3 tests from 1 test suite.
[==========] 3 tests from 1 test suite ran. (0 ms total)
[  PASSED  ] 2 tests.
[  SKIPPED ] 1 test, listed below:
[  SKIPPED ] Base.NeedsRoot
OUT
ends "GoogleTest's counts" 0 "2 passed, 0 failed, 1 skipped" unit
googletest_says crash 139 <<'OUT'
[==========] Running 3 tests from 1 test suite.
[       OK ] Base.First (0 ms)
OUT
ends "a test program that crashes has failed" 1 "2 passed, 1 failed, 1 skipped" unit

# ---- packages and lint --------------------------------------------------------------------------
mkdir "$work/deps" && cp "$top/scripts/deps.sh" "$work/deps/"
printf 'build  dpkg\nodd  no-such-package-of-debian\n' >"$work/deps/packages.txt"
check "deps: nothing to do when all is there" "$work/deps/deps.sh" build
contains "deps: names what is missing" "$("$work/deps/deps.sh" --check build odd)" '^no-such-package-of-debian$'
refuse "deps: --check fails when something is missing" "$work/deps/deps.sh" --check odd
refuse "deps: an unknown group is an error" "$work/deps/deps.sh" nonesuch

mkdir -p "$work/lint/scripts" && cp "$top/scripts/lint.sh" "$work/lint/scripts/"
seq 500 | sed 's/^/# /' >"$work/lint/fits.py"
check "lint: a file of 500 lines is accepted" env BUILD="$work/lint/build" "$work/lint/scripts/lint.sh" length python
seq 501 | sed 's/^/# /' >"$work/lint/long.py"
refuse "lint: a file of 501 lines is not" env BUILD="$work/lint/build" "$work/lint/scripts/lint.sh" length
printf '#!/bin/sh\necho $1\n' >"$work/lint/scripts/quoted" && chmod +x "$work/lint/scripts/quoted"
refuse "lint: shell scripts are found by their first line" env BUILD="$work/lint/build" "$work/lint/scripts/lint.sh" shell

finish
