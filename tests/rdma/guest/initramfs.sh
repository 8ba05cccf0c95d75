#!/bin/bash
# initramfs.sh WORK VERSION OUT: an initramfs that mounts the host's root file system over 9p, with
# a writable layer in memory on top, and starts the script that the kernel's command line names as
# init_script=PATH.
set -euo pipefail
work=$1 version=$2 out=$3
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree"/{bin,modules,proc,sys,dev,lower,upper,root}
cp "$(command -v busybox)" "$tree/bin/busybox"

# Modules in the order in which they must be loaded.
: >"$tree/modules/order"
for module in virtio_pci 9pnet_virtio 9p overlay; do
    modprobe -S "$version" -d "$work" --show-depends "$module" | awk '$1 == "insmod" {print $2}'
done | awk '!seen[$0]++' | while read -r file; do
    name=$(basename "$file" .xz)
    case $file in
        *.xz) xz -dc "$file" >"$tree/modules/$name" ;;
        *) cp "$file" "$tree/modules/$name" ;;
    esac
    echo "$name" >>"$tree/modules/order"
done

cat >"$tree/init" <<'INIT'
#!/bin/busybox sh
b=/bin/busybox
$b mount -t proc proc /proc
$b mount -t sysfs sys /sys
$b mount -t devtmpfs dev /dev
while read -r module; do $b insmod "/modules/$module" || echo "initramfs: cannot load $module"; done </modules/order
$b mount -t 9p -o ro,version=9p2000.L,trans=virtio,msize=512000,cache=loose hostroot /lower || echo "initramfs: no host file system"
$b mount -t tmpfs -o mode=755 tmpfs /upper
$b mkdir -p /upper/data /upper/work
$b mount -t overlay -o lowerdir=/lower,upperdir=/upper/data,workdir=/upper/work overlay /root || echo "initramfs: no overlay"
for directory in proc sys dev; do $b mount --move /$directory /root/$directory; done
exec $b switch_root /root /bin/bash "$($b sed -n 's/.*init_script=\([^ ]*\).*/\1/p' /root/proc/cmdline)"
INIT
chmod +x "$tree/init"
(cd "$tree" && find . | cpio -o -H newc --quiet | gzip -1) >"$out"
