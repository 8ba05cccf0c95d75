#!/bin/bash
# The guest's first process after the initramfs: finish the mounts, run the command that guest.sh
# left in /out, save its status, power off.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C TERM=dumb
modules=$(sed -n 's/.*\bmodules=\([^ ]*\).*/\1/p' /proc/cmdline)

export OUT=/run/out MODULES=$modules
mount -t tmpfs tmpfs /run
mkdir -p "$OUT" /run/lock /run/tmp /dev/shm /dev/pts
mount -t 9p -o cache=none,version=9p2000.L,trans=virtio,msize=512000 out "$OUT"
mount -t tmpfs tmpfs /dev/shm
mount -t devpts devpts /dev/pts
mount -t cgroup2 cgroup2 /sys/fs/cgroup
ln -sfn /proc/self/fd /dev/fd
mkdir -p /lib/modules
ln -sfn "$modules/lib/modules/$(uname -r)" "/lib/modules/$(uname -r)"
# /tmp stays the host's (programs may have been built there), so scratch files go elsewhere.
export TMPDIR=/run/tmp

hostname guest
ip link set lo up
setsid bash -c "$(cat "$OUT/command")" >"$OUT/log" 2>&1 </dev/null
echo $? >"$OUT/status"
sync
echo o >/proc/sysrq-trigger
read -r -t 10 </dev/zero
