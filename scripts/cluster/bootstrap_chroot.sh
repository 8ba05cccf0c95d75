#!/bin/bash
# bootstrap_chroot.sh SUITE DIR: a Debian SUITE (trixie, sid) with Slurm and what building the plugin
# needs in DIR, for CL_ROOT of cluster.sh. Again: only what is missing. MIRROR names another mirror.
set -euo pipefail
[ $# = 2 ] || { sed -n '2,3s/^# //p' "$0" >&2; exit 2; }
suite=$1 dir=$2
mirror=${MIRROR:-$(awk '/^URIs:/ { print $2; exit }' /etc/apt/sources.list.d/*.sources 2>/dev/null || true)}
begin=$SECONDS
if [ ! -e "$dir/.bootstrapped" ]; then
  debootstrap --variant=minbase --include=ca-certificates "$suite" "$dir" "${mirror:-http://deb.debian.org/debian}"
  # No daemon starts while packages are unpacked.
  printf '#!/bin/sh\nexit 101\n' >"$dir/usr/sbin/policy-rc.d"
  chmod 755 "$dir/usr/sbin/policy-rc.d"
  touch "$dir/.bootstrapped"
fi
cp /etc/resolv.conf "$dir/etc/resolv.conf" 2>/dev/null || true
export DEBIAN_FRONTEND=noninteractive
# A mirror that is a snapshot has release files past their date.
chroot "$dir" apt-get -q -o Acquire::Check-Valid-Until=false update
chroot "$dir" apt-get -q -y --no-install-recommends install \
  slurmctld slurmd slurm-client munge libslurm-dev g++ make pkgconf libinih-dev iproute2 procps util-linux
echo "$dir: $(chroot "$dir" /usr/sbin/slurmd -V), after $((SECONDS - begin)) s"
