#!/bin/bash
# How long `rdma-tune measure` takes for 2 to 64 agents, and what the rendezvous costs up to 10,000 nodes.
#   tests/bench/measure.sh [ROUNDS]     default 5; BUILD is the build folder
# All agents share this machine's cores and memory: their times are an upper limit for as many nodes, and
# their bandwidth says nothing.
set -euo pipefail
top=$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd)
BUILD=${BUILD:-$top/build}
rounds=${1:-5}
program=$BUILD/bin/rdma-tune
[ -x "$program" ] || { echo "skipped: $program is not built"; exit 0; }

echo "time of 'rdma-tune measure --local N' in seconds, $rounds rounds, $(nproc) cores shared by all agents"
printf '%8s %8s %8s %8s   %s\n' agents min median max "median of: start connect patterns retests; edges without figure"
for agents in 2 4 8 16 32 64; do
  for ((round = 0; round < rounds; round++)); do
    "$program" measure --local "$agents" --budget 10 --json 2>/dev/null || true
  done | python3 -c '
import json, statistics, sys
text, decoder, results = sys.stdin.read(), json.JSONDecoder(), []
while text.strip():
    value, end = decoder.raw_decode(text.lstrip())
    results.append(value)
    text = text.lstrip()[end:]
totals = [r["time_s"]["total"] for r in results]
part = lambda name: statistics.median(r["time_s"].get(name, 0) for r in results)
missing = statistics.median(sum("error" in e for e in r["edges"]) for r in results)
print("%8s %8.2f %8.2f %8.2f   %.2f %.2f %.2f %.2f; %d" % (sys.argv[1], min(totals), statistics.median(totals),
      max(totals), part("start"), part("connect"), part("patterns"), part("retests"), missing))' "$agents"
done
