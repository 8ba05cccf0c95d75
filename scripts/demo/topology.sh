#!/bin/bash
# Prints the topology that one of the demo's nodes pretends to have, in NCCL's XML format: two sockets,
# four PCIe switches, below each a GPU and an HCA. The HCAs' names are given from the first switch to
# the last; on real nodes, too, they follow the order in which drivers found the cards, not the slots.
#   scripts/demo/topology.sh mlx5_0 mlx5_1 mlx5_2 mlx5_3
# The sockets' cores are the two halves of this machine's (at most 32 are looked at).
set -euo pipefail
[ $# -eq 4 ] || { sed -n '2,7p' "$0" >&2; exit 2; }
cores=$(nproc)
[ "$cores" -le 32 ] || cores=32
half=$(((cores + 1) / 2))
first=$(((1 << half) - 1))
second=$(((1 << cores) - 1 - first))
[ $second -ne 0 ] || second=$first

# switch BUS GPU-NUMBER HCA-NAME
switch() {
  local bus=$((0x$1))
  printf '    <pci busid="0000:%02x:00.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">\n' $bus
  printf '      <pci busid="0000:%02x:00.0" class="0x030200" vendor="0x10de" device="0x2330" link_speed="32.0 GT/s PCIe" link_width="16">\n' $((bus + 1))
  printf '        <gpu dev="%d" sm="90" rank="%d" gdr="1"/>\n      </pci>\n' "$2" "$2"
  printf '      <pci busid="0000:%02x:00.0" class="0x020700" vendor="0x15b3" device="0x1021" link_speed="32.0 GT/s PCIe" link_width="16">\n' $((bus + 2))
  printf '        <nic>\n          <net name="%s" dev="%d" speed="400000" port="1" guid="0x%x" maxconn="131072" gdr="1"/>\n' "$3" "$2" $((0xd3e0 + bus))
  printf '        </nic>\n      </pci>\n    </pci>\n'
}
echo '<system version="1">'
printf '  <cpu numaid="0" affinity="%08x" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">\n' $first
switch 19 0 "$1"
switch 3b 1 "$2"
echo '  </cpu>'
printf '  <cpu numaid="1" affinity="%08x" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">\n' $second
switch 9b 2 "$3"
switch bb 3 "$4"
echo '  </cpu>'
echo '</system>'
