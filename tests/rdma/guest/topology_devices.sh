#!/bin/bash
# Prints, a word a line, QEMU's arguments for a machine with two NUMA nodes and four PCIe switches:
#   NUMA 0: host bridge 20, switches 0 and 1     NUMA 1: host bridge 60, switches 2 and 3
# Each switch has two downstream ports: a virtio NIC of 100 Gbit/s (becomes the HCA) and an ivshmem
# function (becomes the GPU). On the root complex: the management network's NIC (1 Gbit/s) and a
# spare one. All NICs are plugged into one hub.
set -euo pipefail
say() { printf '%s\n' "$@"; }

for node in 0 1; do
    say -object "memory-backend-ram,id=ram$node,size=768M"
    say -numa "node,nodeid=$node,cpus=$((node * 2))-$((node * 2 + 1)),memdev=ram$node"
    say -device "pxb-pcie,id=bridge$node,bus_nr=$((32 + 64 * node)),bus=pcie.0,numa_node=$node"
done
say -numa dist,src=0,dst=1,val=20
for switch in 0 1 2 3; do
    say -device "pcie-root-port,id=root$switch,bus=bridge$((switch / 2)),chassis=$((switch + 1)),slot=$switch"
    say -device "x3130-upstream,id=up$switch,bus=root$switch"
    for port in 0 1; do
        say -device "xio3130-downstream,id=down$switch$port,bus=up$switch,chassis=$((10 + switch * 2 + port)),slot=$port"
    done
    say -netdev "hubport,hubid=1,id=net$switch"
    say -device "virtio-net-pci,netdev=net$switch,mac=52:54:00:00:00:0$switch,bus=down${switch}0,speed=100000,duplex=full,romfile="
    say -object "memory-backend-ram,id=gpu$switch,size=16M"
    say -device "ivshmem-plain,memdev=gpu$switch,bus=down${switch}1"
done
say -netdev hubport,hubid=1,id=management
say -device virtio-net-pci,netdev=management,mac=52:54:00:00:00:0e,bus=pcie.0,speed=1000,duplex=full,romfile=
say -netdev hubport,hubid=1,id=spare
say -device virtio-net-pci,netdev=spare,mac=52:54:00:00:00:0f,bus=pcie.0,speed=100000,duplex=full,romfile=
