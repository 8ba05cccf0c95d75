#!/bin/bash
# collectives.sh BUILD: a real ring and a real double-binary-tree allreduce over verbs on 2 and 4
# nodes: they must carry their data rightly; and their times beside what the measured alpha and beta
# promise. Runs inside the guest (see guest.sh).
#
# Which of the two won is compared and printed, not judged: four emulated nodes share two emulated
# CPUs, which makes every message of a node wait for those of the others.
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=lib.sh
. "$here/lib.sh"
# shellcheck source=nodes.sh
. "$here/nodes.sh"
build=$1
take_program
# Emulated, a node carries 10 to 30 MB/s, so larger messages would take minutes.
sizes=8,4096,65536
budget=150
take_time "$budget"

make_fabric 4 2

# compare: one line for each size of $OUT/result.json, and "agree N of M" at the end. The promise is
# the textbook's, from alpha and beta of each pattern alone: a ring has 2 (n - 1) steps, each with
# one n-th of the data; a tree 2 ceil(log2 n) steps of latency, and its busiest node sends all of
# the data (n = 2), one and a half times that (n = 3) or twice (n > 3).
compare() {
    python3 - "$OUT/result.json" <<'PY'
import json, math, sys
r = json.load(open(sys.argv[1]))
n = r["nodes"]
slowest = {}
for one in r["collectives"]:
    known = slowest.setdefault(one["bytes"], [0, 0])
    known[0] = max(known[0], one["ring_us"])
    known[1] = max(known[1], one["tree_us"])
agree = 0
for size, (ring, tree) in sorted(slowest.items()):
    leaving = {2: 1.0, 3: 1.5}.get(n, 2.0)
    by_ring = 2 * (n - 1) * r["ring"]["alpha_us"] + 2 * (n - 1) / n * size / (r["ring"]["beta_gbs"] * 1e3)
    by_tree = 2 * math.ceil(math.log2(n)) * r["tree"]["alpha_us"] + leaving * size / (r["tree"]["beta_gbs"] * 1e3)
    same = (ring < tree) == (by_ring < by_tree)
    agree += same
    print("# %d nodes, %8d bytes: ring %9.0f us (promised %9.0f), tree %9.0f us (promised %9.0f): %s" %
          (n, size, ring, by_ring, tree, by_tree, "same winner" if same else "another winner than promised"))
print("# agree %d of %d" % (agree, len(slowest)))
PY
}

# Two rails where the data is cut for them, one where the trees are deep.
for case in "2 0 1" "4 0"; do
    read -r count rails <<<"$case"
    nodes=n1
    for ((node = 1; node <= count; node++)); do
        # shellcheck disable=SC2086  # several rails on purpose
        make_node $node $rails
        [ $node = 1 ] || nodes+=,n$node
    done
    # A busy machine may keep an emulated node from answering for so long that its queue pairs give up;
    # the program says so, and it is no answer to whether the sums are right.
    for _ in 1 2 3; do
        LIMIT=200 measure "$nodes" --collectives --sizes $sizes
        [ "$(result 'len(r["collectives"])')" = $((count * 3)) ] && break
        note "not complete: $(heard)"
    done
    check "$count nodes: both allreduces end over RoCE, with right sums" \
        "[ \"\$(result '(r[\"transport\"], len(r[\"collectives\"]) > 0 and all(c[\"ring_us\"] > 0 and c[\"tree_us\"] > 0 and c[\"runs\"] > 0 for c in r[\"collectives\"]))')\" = \"('RoCE', True)\" ]" \
        "$(heard)"
    check "$count nodes: every node reports every size" \
        "[ \"\$(result 'len({(c[\"node\"], c[\"bytes\"]) for c in r[\"collectives\"]})')\" = $((count * 3)) ]" \
        "$(result 'r["collectives"]')"
    compare
done
finish
