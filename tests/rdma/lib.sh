# shellcheck shell=bash
# Common to the suites that run inside the guest; sourced by them.
# Each suite prints "ok NAME", "not ok NAME: why" or "skip NAME: why" and ends with finish.

passed=0 failed=0 skipped=0
ok() { echo "ok $1"; passed=$((passed + 1)); }
not_ok() { echo "not ok $1: ${*:2}"; failed=$((failed + 1)); }
skip() { echo "skip $1: ${*:2}"; skipped=$((skipped + 1)); }
note() { echo "# $*"; }

# check NAME CONDITION [why]: CONDITION is a shell command line.
check() {
    if eval "$2"; then ok "$1"; else not_ok "$1" "${3:-$2}"; fi
}
# holds EXPRESSION: arithmetic over real numbers, by awk.
holds() { awk "BEGIN {exit !($1)}"; }

finish() {
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" = 0 ] && [ "$((passed + skipped))" -gt 0 ]
}

# median NUMBER...
median() { printf '%s\n' "$@" | sort -g | awk '{v[NR] = $1} END {print (NR % 2) ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2}'; }
smallest() { printf '%s\n' "$@" | sort -g | head -1; }
largest() { printf '%s\n' "$@" | sort -g | tail -1; }

# soft_roce_pair A B: interfaces A and B, joined, with addresses 10.9.0.1 and 10.9.0.2 and the
# RDMA devices rxeA and rxeB. Both ends are in one network namespace, because kernel 6.1's rxe
# carries nothing between namespaces; hence the settings that let a machine talk to itself over
# a wire. MTU 4200 gives the RDMA path its largest MTU, 4096.
soft_roce_pair() {
    modprobe -a rdma_rxe veth sch_netem
    sysctl -qw net.ipv4.conf.all.accept_local=1 net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.all.arp_ignore=1
    ip link add "$1" type veth peer name "$2"
    local interface host=1
    for interface in "$1" "$2"; do
        sysctl -qw "net.ipv4.conf.$interface.accept_local=1" "net.ipv4.conf.$interface.rp_filter=0"
        ip link set "$interface" up mtu 4200
        ip addr add "10.9.0.$host/24" dev "$interface"
        host=2
    done
    for interface in "$1" "$2"; do rdma link add "rxe$interface" type rxe netdev "$interface"; done
    # The GID of the address appears a moment after the address.
    local try
    for try in $(seq 50); do
        [ "$(grep -lE 'ffff:0a09' /sys/class/infiniband/rxe{"$1","$2"}/ports/1/gids/* 2>/dev/null | wc -l)" = 2 ] && return
        sleep 0.1
    done
    note "no IPv4 GID after $try tries"
}

# perftest PROGRAM SERVER_DEVICE CLIENT_DEVICE OPTION...: the result line of one run, both ends on
# this machine, over RoCE v2's IPv4 GID. Empty when it did not come to one.
perftest() {
    local program=$1 server=$2 client=$3 attempt gid
    shift 3
    gid=$(ipv4_gid_index "$client")
    for attempt in 1 2 3; do
        timeout 60 "$program" -F -d "$server" -x "$(ipv4_gid_index "$server")" "$@" >"$TMPDIR/perftest.$attempt" 2>&1 &
        local server_process=$!
        # The server has no way to say that it listens but its socket.
        local try
        for try in $(seq 100); do
            ss -Hltn 'sport = :18515' | grep -q . && break
            sleep 0.1
        done
        timeout 60 "$program" -F -d "$client" -x "$gid" "$@" 127.0.0.1 2>&1 | awk '/^ *[0-9]+ +[0-9]+ +[0-9.]+/' >"$TMPDIR/result"
        if [ -s "$TMPDIR/result" ]; then
            wait "$server_process"
            cat "$TMPDIR/result"
            return
        fi
        kill "$server_process" 2>/dev/null
        wait "$server_process" 2>/dev/null
        note "$program gave no result on attempt $attempt" >&2
    done
}

# ipv4_gid_index DEVICE: its first RoCE v2 GID that holds an IPv4 address.
ipv4_gid_index() {
    local port=/sys/class/infiniband/$1/ports/1 index
    for index in $(seq 0 15); do
        grep -q '0000:0000:0000:0000:0000:ffff' "$port/gids/$index" 2>/dev/null &&
            grep -q 'RoCE v2' "$port/gid_attrs/types/$index" 2>/dev/null && echo "$index" && return
    done
    echo 1
}
