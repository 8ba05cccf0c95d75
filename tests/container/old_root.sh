#!/bin/bash
# old_root.sh DIR: the bare root of an old container in DIR/root, from Debian 11 (glibc 2.31): the C library,
# a static busybox as /bin/sh, and, in DIR/sdk, what compiling against that C library takes. Nothing of this
# machine's apt is touched: sources, lists and cache are DIR's own. Does nothing when it is all there.
# Exit status 77: the packages cannot be fetched here.
set -euo pipefail
dir=$(mkdir -p "$1" && cd "$1" && pwd)
suite=bullseye
[ ! -f "$dir/complete" ] || exit 0
[ "$(dpkg --print-architecture)" = amd64 ] || { echo "only made for amd64" >&2; exit 77; }

# The mirror that this machine uses already.
# shellcheck disable=SC2016 # the format's words are apt's
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 2>/dev/null | grep -m1 '/debian$' || true)
[ -n "$mirror" ] || mirror=$(grep -rhoE 'https?://[^ ]*/debian( |$)' /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null |
  head -n1 | tr -d ' ' || true)
[ -n "$mirror" ] || { echo "no Debian mirror in apt's sources" >&2; exit 77; }
mkdir -p "$dir"/lists/partial "$dir"/cache/archives/partial "$dir"/debs "$dir"/root "$dir"/sdk
: >"$dir/status"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >"$dir/sources.list"
apt=(apt-get -qq -o "Dir::Etc::SourceList=$dir/sources.list" -o Dir::Etc::SourceParts=/dev/null
  -o "Dir::State::Lists=$dir/lists" -o "Dir::Cache=$dir/cache"
  -o "Dir::State::status=$dir/status" -o Dir::Etc::Preferences=/dev/null -o Dir::Etc::PreferencesParts=/dev/null
  -o APT::Sandbox::User=root -o Acquire::Retries=2)
packages=(libc6 libc6-dev linux-libc-dev libcrypt-dev libgcc-s1 busybox-static)
fetch() {
  timeout 120 "${apt[@]}" update && cd "$dir/debs" && timeout 120 "${apt[@]}" download "${packages[@]}"
}
(fetch) >"$dir/fetch.log" 2>&1 || { tail -n 3 "$dir/fetch.log" >&2; exit 77; }

for package in libc6 busybox-static; do dpkg-deb -x "$dir"/debs/"$package"_*.deb "$dir/root"; done
for deb in "$dir"/debs/*.deb; do dpkg-deb -x "$deb" "$dir/sdk"; done
# Debian 11 still has /lib beside /usr/lib; the packages make both.
mkdir -p "$dir"/root/{bin,dev,etc,proc,sys,tmp,usr/local/lib,usr/local/bin,work}
chmod 1777 "$dir/root/tmp"
for applet in sh cat env ls true readlink; do ln -sf busybox "$dir/root/bin/$applet"; done
rm -rf "$dir/lists" "$dir/cache" "$dir/debs" "$dir/status"
touch "$dir/complete"
