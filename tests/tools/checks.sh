# shellcheck shell=bash
# For test scripts: named checks, and the line of counts that tests/run reads. Source it, then
#   check "what must hold" COMMAND...      passes when the command exits 0; its output is shown when not
#   refuse "what must fail" COMMAND...     passes when the command exits with another status than 0
#   contains "what" TEXT PATTERN           passes when an extended regular expression is found in a text
#   skip "what" "why"                      counts a check that cannot be made here
#   finish                                 prints "N passed, N failed, N skipped" and exits by it
checks_passed=0 checks_failed=0 checks_skipped=0

pass() { checks_passed=$((checks_passed + 1)); echo "ok: $1"; }
fail() { # NAME [EXPLANATION]
  checks_failed=$((checks_failed + 1))
  echo "FAILED: $1"
  [ -z "${2:-}" ] || printf '%s\n' "$2" | tail -n 40 | sed 's/^/    /'
}
skip() { checks_skipped=$((checks_skipped + 1)); echo "SKIPPED: $1: $2"; }

check() {
  local name=$1 output status
  shift
  output=$("$@" 2>&1) && { pass "$name"; return 0; }
  status=$?
  fail "$name" "$(printf '%s\n' "$output" "exit status $status of: $*")"
}
refuse() {
  local name=$1 output
  shift
  if output=$("$@" 2>&1); then fail "$name" "$(printf '%s\n' "$output" "exit status 0 of: $*")"; else pass "$name"; fi
}
contains() {
  if grep -qE -- "$3" <<<"$2"; then pass "$1"; else fail "$1" "$(printf 'no "%s" in:\n%s' "$3" "$2")"; fi
}
finish() {
  echo "$checks_passed passed, $checks_failed failed, $checks_skipped skipped"
  [ "$checks_failed" -eq 0 ]
  exit
}
