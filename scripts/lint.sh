#!/bin/bash
# What must be clean before a change goes in: format, mistakes that clang-tidy finds, shell scripts,
# man pages, and files short enough to be read in one go.
#   scripts/lint.sh [CHECK...]   checks: format length shell man python tidy (all of them without arguments)
# The last line counts the checks, as a test suite does. clang-tidy needs a quarter of an hour for all
# files on two cores; TIDY_ROOMS="spank tuner/nccl" limits it to some folders; CI leaves it out.
set -uo pipefail
cd "$(dirname "$(readlink -f "$0")")/.." || exit 2
BUILD=${BUILD:-$PWD/build}
TIDY_ROOMS=${TIDY_ROOMS:-spank tuner}
max_lines=500

# Files that git knows, or all of them where this is no git checkout.
sources() {
  if git rev-parse --git-dir >/dev/null 2>&1; then git ls-files -co --exclude-standard -- "$@"
  else local g; for g in "${@:-*}"; do find . -path ./build -prune -o -name "$g" -type f -printf '%P\n'; done; fi
}
cxx() { sources '*.cpp' '*.hpp'; }
shell_scripts() {
  sources '*.sh'
  sources | while IFS= read -r f; do
    [[ $f != *.sh ]] || continue
    if head -c 20 -- "$f" 2>/dev/null | grep -qaE '^#! ?/(usr/)?bin/(env )?(ba)?sh'; then echo "$f"; fi
  done
}

check_format() { cxx | xargs -r -d '\n' clang-format --dry-run -Werror; }

check_length() {
  local long
  long=$(sources '*.cpp' '*.hpp' '*.sh' '*.py' Makefile | xargs -r -d '\n' wc -l |
    awk -v max=$max_lines '$2 != "total" && $1 > max {print $2 ": " $1 " lines, at most " max}')
  [ -z "$long" ] || { echo "$long"; return 1; }
}

check_shell() { shell_scripts | sort -u | xargs -r -d '\n' shellcheck -x -S info -e SC2016,SC2317; }

check_man() { sources 'docs/man/*.[0-9]' | xargs -r -d '\n' mandoc -T lint -W warning; }

check_python() {
  sources '*.py' | xargs -r -d '\n' python3 -c '
import ast, sys
for name in sys.argv[1:]:
    ast.parse(open(name, encoding="utf-8").read(), name)'
}

# clang-tidy is slow: what it once found clean, with the same headers and checks, is not looked at again.
check_tidy() {
  local stamps=$BUILD/tidy key
  mkdir -p "$stamps"
  key=$(cxx | grep '\.hpp$' | sort | xargs -r -d '\n' cat .clang-tidy | sha256sum)
  export stamps key
  # shellcheck disable=SC2016  # expanded by the inner shell
  sources '*.cpp' | grep -E "^(${TIDY_ROOMS// /|})/" | xargs -r -d '\n' -P "$(nproc)" -n 1 bash -c '
    stamp=$stamps/$( { echo "$key"; cat "$1"; } | sha256sum | cut -c1-32)
    [ -e "$stamp" ] && exit 0
    clang-tidy --quiet "$1" -- -std=c++20 -I. $(pkg-config --cflags hwloc libibverbs fmt inih) 2>/dev/null && touch "$stamp"' _
}

checks=("$@")
[ $# -gt 0 ] || read -r -a checks <<<"${LINT_CHECKS:-format length shell man python tidy}"
passed=0 failed=0
for check in "${checks[@]}"; do
  start=$SECONDS
  if output=$("check_$check" 2>&1); then
    passed=$((passed + 1)); verdict=clean
  else
    failed=$((failed + 1)); verdict=FAILED
  fi
  [ -z "$output" ] || printf '%s\n' "$output"
  printf 'lint %-8s %s, %d s\n' "$check" "$verdict" $((SECONDS - start))
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
