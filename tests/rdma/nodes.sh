# shellcheck shell=bash disable=SC2034,SC2154 # variables that the suites and their functions share
# Several nodes inside one guest; sourced by suites after lib.sh.
#
# A node is a mount and a UTS namespace: it has its own host name, sees only its own HCAs in
# /sys/class/infiniband and can open only their devices. The network namespace is shared, because
# kernel 6.1's rxe carries nothing between network namespaces; so are the TCP ports.
# HCA R of node N is rxeN_R, on interface nNrR with address 10.(20+R).0.N; rail R's interfaces are
# plugged into the bridge swR.

# take_program: the program of $build as $program, in memory: the guest reads the machine's files slowly.
take_program() {
    program=/run/rdma-tune
    cp "$build/tests/rdma-tune.stripped" $program
}

# take_time SECONDS: for reading a node; everything is slow here.
take_time() {
    mkdir -p /etc/rdma-tune
    echo "node_timeout = $1" >/etc/rdma-tune/rdma-tune.conf
}

NODES_STATE=/run/nodes
mkdir -p "$NODES_STATE"

# make_fabric NODES RAILS
make_fabric() {
    local node rail
    modprobe -a rdma_rxe veth bridge sch_netem sch_prio cls_u32
    sysctl -qw net.ipv4.conf.all.accept_local=1 net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.all.arp_ignore=1
    sysctl -qw net.ipv4.conf.default.accept_local=1 net.ipv4.conf.default.rp_filter=0
    for ((rail = 0; rail < $2; rail++)); do
        ip link add "sw$rail" mtu 4200 type bridge
        ip link set "sw$rail" up
        for ((node = 1; node <= $1; node++)); do
            ip link add "n${node}r$rail" mtu 4200 type veth peer name "s${node}r$rail"
            ip link set "s${node}r$rail" mtu 4200 master "sw$rail" up
            ip link set "n${node}r$rail" up
            ip addr add "10.$((20 + rail)).0.$node/24" dev "n${node}r$rail"
            rdma link add "rxe${node}_$rail" type rxe netdev "n${node}r$rail"
        done
    done
    local try
    for try in $(seq 50); do
        [ "$(grep -lE ':ffff:0a' /sys/class/infiniband/rxe*/ports/1/gids/* 2>/dev/null | wc -l)" = $(($1 * $2)) ] && break
        sleep 0.1
    done
    [ "$try" -lt 50 ] || note "some HCA got no IPv4 GID"
    chmod 0666 /dev/infiniband/uverbs*
}

# make_node NUMBER RAIL...: node nNUMBER with these rails' HCAs.
make_node() {
    local name=n$1 number=$1
    shift
    unmake_node "$name"
    unshare --mount --uts --propagation private sleep infinity </dev/null >/dev/null 2>&1 &
    echo $! >"$NODES_STATE/$name"
    until nsenter -t "$(cat "$NODES_STATE/$name")" -m -u true 2>/dev/null; do sleep 0.05; done
    # shellcheck disable=SC2016  # expanded by the inner shell
    enter "$name" bash -ec '
        hostname "$1"
        number=$2
        shift 2
        mkdir -p /run/keep && mount -t tmpfs tmpfs /run/keep
        for rail in "$@"; do
            device=rxe${number}_$rail
            cp -P "/sys/class/infiniband/$device" /run/keep/
            for verbs in /sys/class/infiniband_verbs/uverbs*; do
                [ "$(cat "$verbs/ibdev")" = "$device" ] && cp -a "/dev/infiniband/$(basename "$verbs")" /run/keep/
            done
        done
        mount -t tmpfs -o mode=755 tmpfs /sys/class/infiniband
        mount -t tmpfs -o mode=755 tmpfs /dev/infiniband
        for device in /run/keep/rxe*; do
            [ -L "$device" ] && ln -s "/sys/class/infiniband/../../devices/virtual/infiniband/$(basename "$device")" /sys/class/infiniband/
        done
        cp -a /run/keep/uverbs* /dev/infiniband/ 2>/dev/null
        exit 0
    ' node "$name" "$number" "$@"
}

unmake_node() {
    [ -e "$NODES_STATE/$1" ] || return 0
    kill "$(cat "$NODES_STATE/$1")" 2>/dev/null
    rm -f "$NODES_STATE/$1"
}

# enter NODE COMMAND...
enter() { nsenter -t "$(cat "$NODES_STATE/$1")" -m -u -- "${@:2}"; }

# agents NODE: process ids of the measuring agents on it.
agents() {
    local wanted process
    wanted=$(readlink "/proc/$(cat "$NODES_STATE/$1")/ns/uts")
    for process in $(pgrep -f 'rdma-tune agent'); do
        [ "$(readlink "/proc/$process/ns/uts" 2>/dev/null)" = "$wanted" ] &&
            [ "$(cat "/proc/$process/comm")" = rdma-tune ] && echo "$process"
    done
}

# when_measuring NODE COMMAND...: runs the command once the agent of the node has opened its HCA.
when_measuring() {
    local node=$1 try process
    shift
    for try in $(seq 400); do
        for process in $(agents "$node"); do
            if find "/proc/$process/fd" -lname '*uverbs*' 2>/dev/null | grep -q .; then
                "$@"
                return
            fi
        done
        sleep 0.03
    done
    note "the agent of $node opened no HCA in $try tries"
}

# measure NODES OPTION...: our measurement between the nodes "n1,n2,...", started as over ssh. Its
# JSON is in $OUT/result.json, what it says in $OUT/said, its status in $status, the milliseconds it
# took in $took. LIMIT ends it from outside.
measure() {
    local nodes=$1 begin
    shift
    begin=$(date +%s%N)
    timeout "${LIMIT:-120}" "$program" measure --hosts "$nodes" --launch "$NODES_STATE/enter {host}" \
        --budget "$budget" --json "$@" >"$OUT/result.json" 2>"$OUT/said"
    status=$?
    took=$((($(date +%s%N) - begin) / 1000000))
}
cat >"$NODES_STATE/enter" <<'ENTER'
#!/bin/bash
# enter NODE COMMAND...; while /run/nodes/as_user exists: as an ordinary user who may lock 64 KiB.
as_user=()
[ ! -e /run/nodes/as_user ] ||
    as_user=(setpriv --reuid 1000 --regid 1000 --clear-groups --bounding-set -all prlimit --memlock=65536:65536)
exec nsenter -t "$(cat "/run/nodes/$1")" -m -u -- "${as_user[@]}" "${@:2}"
ENTER
chmod +x "$NODES_STATE/enter"

# result FILTER: of the JSON; by python3, since a guest shares the machine's programs.
result() { python3 -c 'import json, sys
r = json.load(open(sys.argv[1]))
print(eval(sys.argv[2], {"r": r}))' "$OUT/result.json" "$1"; }
# said PATTERN: in what the program told the user, as JSON or as lines.
said() { cat "$OUT/result.json" "$OUT/said" | grep -qiE -- "$1"; }
heard() { { tail -n 4 "$OUT/said"; result '(r["usable"], r.get("reason", ""), r["notes"], r["slow"])'; } 2>&1 | tr '\n' '|' | cut -c1-600; }
