#!/bin/bash
# topology.sh BUILD: a live machine with two NUMA nodes, four PCIe switches with a GPU and an HCA
# each, a management HCA and one whose port is down. Runs inside the guest (guest.sh run --topology).
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=lib.sh
. "$here/lib.sh"
# shellcheck source=nodes.sh
. "$here/nodes.sh"
# shellcheck source=slurm_nodes.sh
. "$here/slurm_nodes.sh"
build=$1
take_program
modprobe -a virtio_net rdma_rxe

# --- make GPUs and HCAs of the stand-ins ---
# Functions by what QEMU made them of: ivshmem becomes a GPU, a NIC's hardware address says which.
gpus=() nics=()
for function in /sys/bus/pci/devices/*; do
    [ "$(cat "$function/vendor")$(cat "$function/device")" = 0x1af40x1110 ] && gpus+=("$(basename "$function")")
done
nic_function() {  # by the last byte of its hardware address
    local net
    for net in /sys/class/net/*; do
        grep -q "52:54:00:00:00:$1" "$net/address" && basename "$(readlink -f "$net/device/..")"
    done
}
for last in 00 01 02 03; do nics+=("$(nic_function $last)"); done
downstream() { basename "$(dirname "$(readlink -f "/sys/bus/pci/devices/$1")")"; }

# What doctor must find. The downstream port above the first GPU gets an ACS capability (QEMU's has
# none) that redirects: behind the AER capability at 0x100, at 0x150, with request and completion
# redirect and upstream forwarding enabled. The second NIC looks like a x16 card at 16 GT/s whose
# link came up with x1.
port=$(downstream "${gpus[0]}")
words=("$port=102:1502" "$port=150:000d" "$port=152:0001" "$port=154:005f" "$port=156:001d")
capability=$(setpci -s "${nics[1]}" CAP_EXP+0c.w 2>/dev/null)
if [ -n "$capability" ]; then
    offset=$(lspci -s "${nics[1]}" -vv | sed -n 's/.*\[\([0-9a-f]*\)[^]]*\] Express.*/\1/p' | head -1)
    words+=("${nics[1]}=$(printf %x $((0x$offset + 0x0c))):0104")
    above=$(downstream "${nics[1]}")
    offset=$(lspci -s "$above" -vv | sed -n 's/.*\[\([0-9a-f]*\)[^]]*\] Express.*/\1/p' | head -1)
    words+=("$above=$(printf %x $((0x$offset + 0x0c))):0104")
fi
ids=()
for gpu in "${gpus[@]}"; do ids+=("$gpu=10de:2330:030200"); done
joined() { local IFS=,; echo "$*"; }
insmod "$MODULES/fakeids.ko" ids="$(joined "${ids[@]}")" words="$(joined "${words[@]}")" || note "$(dmesg | tail -3)"

mount -t tmpfs tmpfs /proc/driver
mkdir -p /proc/driver/nvidia/gpus
echo "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.90.07  Release Build" >/proc/driver/nvidia/version
index=0
for gpu in "${gpus[@]}"; do
    mkdir "/proc/driver/nvidia/gpus/$gpu"
    printf 'Model: \t\t NVIDIA H100\nGPU UUID: \t GPU-00000000-0000-0000-0000-00000000000%s\nBus Location: \t %s\nDevice Minor: \t %s\n' \
        $index "$gpu" $index >"/proc/driver/nvidia/gpus/$gpu/information"
    mknod -m 666 /dev/nvidia$index c 195 $index
    index=$((index + 1))
done

# The names are shuffled on purpose: nothing may follow from them.
names=(mlx5_2 mlx5_0 mlx5_3 mlx5_1)
interfaces=()
make_hca() {  # hardware address's last byte, RDMA name, IP address or empty, up or down
    local net
    net=$(basename "$(dirname "$(grep -l "52:54:00:00:00:$1" /sys/class/net/*/address)")")
    [ -z "$3" ] || ip addr add "$3" dev "$net"
    ip link set "$net" up
    rdma link add "$2" type rxe netdev "$net"
    ip link set "$net" "$4"
    interfaces+=("$net")
}
for switch in 0 1 2 3; do make_hca 0$switch "${names[$switch]}" 10.8.0.$((switch + 1))/24 up; done
make_hca 0e mlx5_mgmt 192.168.7.1/24 up
make_hca 0f mlx5_spare "" down
insmod "$MODULES/ibparent.ko" netdevs="$(joined "${interfaces[@]}")"
sleep 1
note "GPUs ${gpus[*]}; NICs ${nics[*]}; ACS planted on $port; narrow link planted on ${nics[1]} ($capability)"

# --- topo and plan from the live /sys ---
"$program" topo >"$OUT/topo" 2>&1
sed 's/^/# /' "$OUT/topo" | head -40
"$program" plan --tasks 4 --json >"$OUT/plan.json" 2>"$OUT/plan.err"
plan() { python3 -c 'import json, sys
p = json.load(open(sys.argv[1]))
print(eval(sys.argv[2], {"p": p}))' "$OUT/plan.json" "$1" 2>&1; }
check "four GPUs and six HCAs are seen" '[ "$(grep -c "NVIDIA\|nvidia\|GPU [0-9]" "$OUT/topo")" -ge 4 ] && [ "$(grep -c "mlx5_" "$OUT/topo")" -ge 6 ]' "$(cat "$OUT/topo")"
for rank in 0 1 2 3; do
    check "rank $rank has the pair of its switch" \
        '[ "$(plan "(p[\"ranks\"][$rank][\"gpus\"][0][\"pci\"], p[\"ranks\"][$rank][\"hcas\"], p[\"ranks\"][$rank][\"distance\"])")" = "('"'\${gpus[$rank]}', ['\${names[$rank]}'], 'PIX'"')" ]' \
        "$(plan "p['ranks'][$rank]")"
done
check "the management HCA is excluded with a reason" '[[ $(plan "[(e[\"hca\"], e[\"reason\"]) for e in p[\"excluded\"]]") == *mlx5_mgmt* ]]' "$(plan 'p["excluded"]')"
check "the HCA that is down is excluded with a reason" '[[ $(plan "[(e[\"hca\"], e[\"reason\"]) for e in p[\"excluded\"]]") == *mlx5_spare* ]]' "$(plan 'p["excluded"]')"
note "excluded: $(plan '[(e["hca"], e["reason"]) for e in p["excluded"]]')"
check "the cores of rank 0 and rank 3 are those of their NUMA nodes" \
    '[[ $(plan "p[\"ranks\"][0][\"cpus\"]") == [01]* && $(plan "p[\"ranks\"][3][\"cpus\"]") == [23]* ]]' "$(plan '[r["cpus"] for r in p["ranks"]]')"

# --- doctor reports what was planted ---
prlimit --memlock=65536:65536 "$program" doctor --json >"$OUT/doctor.json" 2>"$OUT/doctor.err"
finding() { python3 -c 'import json, sys
for f in json.load(open(sys.argv[1]))["findings"]:
    if f["code"] == sys.argv[2]: print(f["what"])' "$OUT/doctor.json" "$1" 2>&1; }
codes=$(python3 -c 'import json, sys; print(*sorted({f["code"] for f in json.load(open(sys.argv[1]))["findings"]}))' "$OUT/doctor.json" 2>&1)
note "doctor found: $codes"
check "doctor names the port whose ACS redirects" '[[ $(finding acs-redirect) == *$port* ]]' "$(finding acs-redirect); found: $codes"
check "doctor tells the lock limit" '[[ $(finding memlock-low) == *64* ]]' "found: $codes"
check "doctor misses the module" '[ -n "$(finding peermem-missing)" ]' "found: $codes"
check "doctor sees the narrow link" '[[ $(finding link-narrow) == *${names[1]}:*16* ]]' "$(finding link-narrow); found: $codes"

# --- measured rails are the plan's ---
# Two agents on this machine, each with all four HCAs; `env` starts them as ssh would.
timeout 150 "$program" measure --hosts one,two --launch 'env NODE={host}' --budget 60 --json >"$OUT/result.json" 2>"$OUT/said"
check "the measured rails are the four of the plan" "[ \"\$(result '(r[\"transport\"], r[\"rails\"])')\" = \"('RoCE', 4)\" ]" "$(heard)"

# --- srun ---
start_slurm "$build" "n1" 4 4 || { not_ok "slurm starts" "no idle node"; finish; exit; }
timeout 150 srun -N1 -n4 --gres=gpu:4 --rdma-tune=verbose bash -c \
    'echo "$SLURM_LOCALID visible=$CUDA_VISIBLE_DEVICES ucx=$UCX_NET_DEVICES hca=$NCCL_IB_HCA cpus=$(taskset -pc $$ | sed "s/.*: //")"' \
    >"$OUT/tasks" 2>"$OUT/srun"
sed 's/^/# /' "$OUT/srun" | head -40
check "srun runs four ranks" '[ "$(wc -l <"$OUT/tasks")" = 4 ]' "$(tail -c 300 "$OUT/srun")"
for rank in 0 1 2 3; do
    check "srun binds rank $rank to the HCA of its switch" '[[ "$(grep "^$rank " "$OUT/tasks")" == *ucx=${names[$rank]}:1* ]]' "$(grep "^$rank " "$OUT/tasks")"
done
check "srun's ranks share one list without the two others" \
    '[ "$(sed "s/.*hca=\([^ ]*\).*/\1/" "$OUT/tasks" | sort -u | wc -l)" = 1 ] && ! grep -qE "mgmt|spare" "$OUT/tasks"' "$(cat "$OUT/tasks")"
finish
