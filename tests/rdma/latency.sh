#!/bin/bash
# latency.sh BUILD: the same link measured by us and by perftest, in turn, in one boot; and with
# delays of known size added. Runs inside the guest (see guest.sh).
# shellcheck source=lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
probe=$1/tests/verbs_probe
soft_roce_pair va vb

# ours FIELD [OPTION...]: our figure of one run; fields: 2 minimum, 3 median, 4 p99.
ours() { timeout 60 "$probe" "${@:2}" rxeva rxevb | awk -v f="$1" '/^latency/ {print $f}'; }
# theirs PROGRAM FIELD: 3 minimum, 5 typical.
theirs() { perftest "$1" rxeva rxevb -s 8 -n "${rounds:-1000}" | awk -v f="$2" '{print $f}'; }

# --- small messages, side by side ---
us=() them=()
for _ in 1 2 3 4 5 6; do
    them+=("$(theirs ib_write_lat 5)")
    us+=("$(ours 3 --rounds 1000)")
done
note "ib_write_lat typical, us: ${them[*]}; median $(median "${them[@]}")"
note "rdma-tune median, us:     ${us[*]}; median $(median "${us[@]}")"
mine=$(median "${us[@]}") reference=$(median "${them[@]}")
low=$(smallest "${them[@]}") high=$(largest "${them[@]}")
check "latency is that of ib_write_lat" \
    'holds "($mine >= 0.85 * $reference && $mine <= 1.15 * $reference) || ($mine >= $low && $mine <= $high)"' \
    "$mine us against $reference us ($low to $high)"

# --- delays that are known: ours must follow as a read's round trip does ---
rounds=200
# The least of several runs: what else the machine does can only add.
thrice() { smallest "$("$@")" "$("$@")" "$("$@")"; }
base=$(thrice ours 2 --rounds 200)
base_read=$(thrice theirs ib_read_lat 3)
for delay in 1 2; do
    for interface in va vb; do tc qdisc replace dev $interface root netem delay ${delay}ms; done
    figure=$(thrice ours 2 --rounds 200)
    read=$(thrice theirs ib_read_lat 3)
    note "with $delay ms each way, minimum: ours $figure us one way (without: $base), ib_read_lat $read us both ways (without: $base_read)"
    check "latency follows a delay of $delay ms" 'holds "$figure - $base >= 950 * $delay && $figure - $base <= 1500 * $delay + 300"' \
        "it rose by $(awk "BEGIN {print $figure - $base}") us"
    check "latency agrees with a read's at $delay ms" \
        'holds "($figure - $base) / (($read - $base_read) / 2) > 0.7 && ($figure - $base) / (($read - $base_read) / 2) < 1.4"' \
        "ours rose by $(awk "BEGIN {print $figure - $base}"), half the read's by $(awk "BEGIN {print ($read - $base_read) / 2}")"
done
for interface in va vb; do tc qdisc del dev $interface root; done

# --- large messages ---
bandwidth=$(perftest ib_write_bw rxeva rxevb -s 65536 -n 300 | awk '{print $4}')
stream=$(timeout 60 "$probe" --stream 0.5 --bytes 65536 rxeva rxevb | awk '/^stream/ {print $2 * 1000}')
note "64 KiB writes, MB/s: ib_write_bw $bandwidth MiB/s, ours $stream MB/s"
check "bandwidth is of ib_write_bw's order" 'holds "$stream > 0.4 * $bandwidth && $stream < 3 * $bandwidth"' \
    "$stream MB/s against $bandwidth MiB/s"

# --- a device that another process holds in error must not hurt the next link ---
refused=$(timeout 60 "$probe" --wrong-cookie rxeva rxevb 2>&1)
check "a wrong cookie is refused by both ends" \
    'grep -q "refused a peer with a wrong cookie" <<<"$refused" && grep -q "peer refused" <<<"$refused"' "$refused"
begin=$(date +%s%N)
absent=$(timeout 60 "$probe" --absent --budget 3 rxeva rxevb 2>&1)
took=$((($(date +%s%N) - begin) / 1000000))
check "a peer that never connects ends in time" 'grep -q "10.9.0.2" <<<"$absent" && [ $took -lt 6000 ]' "$took ms: $absent"
finish
