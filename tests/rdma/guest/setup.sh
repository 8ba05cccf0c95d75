#!/bin/bash
# setup.sh WORK: what the guest needs, made from Debian packages. Called by guest.sh, which caches.
# Leaves in WORK: vmlinux, initramfs, lib/modules (the kernel's), fakeids.ko, ibparent.ko.
# The running machine's /boot and /lib/modules are not touched: the packages are only unpacked.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
work=$1

packages=(qemu-system-x86 ibverbs-utils ibverbs-providers perftest rdma-core iproute2 iputils-ping
    ethtool nftables hwloc-nox pciutils busybox-static kmod cpio xz-utils make gcc-12 python3 binutils
    slurmctld slurmd slurm-client munge)
missing=()
for package in "${packages[@]}"; do
    # hwloc's two packages provide the same programs; either will do.
    [ "$package" = hwloc-nox ] && command -v lstopo-no-graphics >/dev/null && continue
    dpkg-query -W -f='${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
export DEBIAN_FRONTEND=noninteractive
quiet=(-qq -o DPkg::Lock::Timeout=300)
if [ ${#missing[@]} -gt 0 ]; then
    apt-get "${quiet[@]}" install -y --no-install-recommends "${missing[@]}" >/dev/null ||
        { apt-get "${quiet[@]}" update && apt-get "${quiet[@]}" install -y --no-install-recommends "${missing[@]}" >/dev/null; }
fi

# linux-image-amd64 depends on the current kernel of this Debian, such as linux-image-6.1.0-49-amd64.
version=$(apt-cache depends linux-image-amd64 2>/dev/null | awk '/Depends:/ {sub("linux-image-", "", $2); print $2; exit}')
if [ -z "$version" ]; then
    apt-get "${quiet[@]}" update
    version=$(apt-cache depends linux-image-amd64 | awk '/Depends:/ {sub("linux-image-", "", $2); print $2; exit}')
fi
abi=${version%-amd64}
series=${abi%%.0-*}

scratch=$(mktemp -d "$work/scratch.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
download() {
    (cd "$scratch" && apt-get "${quiet[@]}" -o APT::Sandbox::User=root download \
        "linux-image-$version" "linux-headers-$version" "linux-headers-$abi-common" "linux-kbuild-$series" 2>"$scratch/apt.log")
}
# The package list may be older than the archive: then refresh it once.
download || { apt-get "${quiet[@]}" update && download; } || { cat "$scratch/apt.log" >&2; exit 1; }
dpkg-deb -x "$scratch"/linux-image-*.deb "$scratch/image"
for package in "$scratch"/linux-{headers,kbuild}*.deb; do dpkg-deb -x "$package" "$scratch/headers"; done

python3 "$here/extract_vmlinux.py" "$scratch/image/boot/vmlinuz-$version" "$work/vmlinux"
rm -rf "${work:?}/lib"
mv "$scratch/image/lib" "$work/lib"
# Most of 400 MB are drivers of hardware that the guest does not have.
(cd "$work/lib/modules/$version/kernel" && rm -rf sound drivers/{gpu,media,iio,usb,scsi,hwmon,staging,ata,mmc,mtd,hid,input,isdn,comedi,target,bluetooth} \
    drivers/net/{wireless,ethernet,usb,wwan,can} fs/{btrfs,xfs,ocfs2,f2fs,gfs2,jfs,reiserfs,ceph,nfs,nfsd,smbfs_common,cifs})
depmod -b "$work" "$version"
"$here/initramfs.sh" "$work" "$version" "$work/initramfs"

# The headers' Makefile names its place below /; here it lies elsewhere.
sources=$scratch/headers/usr/src
sed -i "s#/usr/src/linux-headers#$sources/linux-headers#" "$sources/linux-headers-$version/Makefile"
for module in fakeids ibparent; do
    cp -r "$here/modules/$module" "$scratch/"
    make -s -C "$sources/linux-headers-$version" M="$scratch/$module" modules >"$scratch/make.log" 2>&1 ||
        { cat "$scratch/make.log" >&2; exit 1; }
    cp "$scratch/$module/$module.ko" "$work/"
done
