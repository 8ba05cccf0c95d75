#!/bin/bash
# node.sh NODE: becomes the first process of one node. Started by cluster.sh inside the node's new
# namespaces; makes the node's own view of the file system, says so, and stays.
set -euo pipefail
here=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
# shellcheck source=scripts/cluster/settings.sh
. "$here/settings.sh"
node=$1
root=${ROOT%/} # empty for /

hostname "$node"
mount --make-rprivate /
ip link set lo up

if [ -n "$root" ]; then
  mount --bind "$root" "$root"
  mkdir -p "$root/proc" "$root/sys" "$root/dev" "$root$BASE"
  chmod 1777 "$root/tmp"
  mount -t proc proc "$root/proc"
  mount --rbind /sys "$root/sys"
  mount --bind "$BASE" "$root$BASE"
fi

# A /dev of its own: the pretended GPUs live here, and nothing that a node does as root can touch this
# machine's devices. The GPUs have NVIDIA's device numbers: a device cgroup tells them apart by those.
dev=$(mktemp -d "$STATE/dev/$node.XXXX")
mount -t tmpfs -o mode=755,size=1m dev "$dev"
while read -r name major minor; do mknod -m 666 "$dev/$name" c "$major" "$minor"; done <<'NODES'
null 1 3
zero 1 5
full 1 7
random 1 8
urandom 1 9
tty 5 0
NODES
mkdir "$dev/shm" "$dev/pts"
mount -t tmpfs -o mode=1777 shm "$dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$dev/pts"
ln -s pts/ptmx "$dev/ptmx"
ln -s /proc/self/fd "$dev/fd"
for link in 0:stdin 1:stdout 2:stderr; do ln -s "/proc/self/fd/${link%:*}" "$dev/${link#*:}"; done
if [ "$node" != head ]; then
  for ((gpu = 0; gpu < GPUS; gpu++)); do mknod -m 666 "$dev/nvidia$gpu" c 195 "$gpu"; done
fi
mount --move "$dev" "$root/dev"
rmdir "$dev"

mount -t tmpfs -o mode=755 tmpfs "$root/run"
mkdir -p "$root/run/munge" "$root/run/lock"
mount --bind "$STATE/munge" "$root/run/munge"
mkdir -p "$root/etc/slurm"
mount --bind "$STATE/etc" "$root/etc/slurm"
for file in passwd group hosts; do
  [ -e "$root/etc/$file" ] || : >"$root/etc/$file"
  mount --bind "$STATE/etc.$file" "$root/etc/$file"
done

if [ "$CGROUP" = 1 ]; then
  # This process's cgroups as the roots of the hierarchies, which the new cgroup namespace makes them.
  umount -l "$root/sys/fs/cgroup" 2>/dev/null || true
  mount -t tmpfs -o mode=755 cgroup "$root/sys/fs/cgroup"
  for controller in $CONTROLLERS; do
    mkdir "$root/sys/fs/cgroup/$controller"
    mount -t cgroup -o "$controller" cgroup "$root/sys/fs/cgroup/$controller"
  done
fi

[ -z "$HOOK" ] || "$HOOK" "$node"

: >"$STATE/pid/$node.ready"
# The first process of a PID namespace collects orphans, which bash does.
stay='trap "exit 0" TERM; while :; do sleep 3600 & wait $!; done'
if [ -n "$root" ]; then exec chroot "$root" /bin/bash -c "$stay"; else exec /bin/bash -c "$stay"; fi
