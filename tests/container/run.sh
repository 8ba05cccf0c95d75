#!/bin/bash
# Containers. A bare root with an old C library (Debian 11's glibc 2.31, nothing else in it) plays the
# image: the tuner loads there as NCCL loads it and chooses as on this machine, tasks are prepared there, and
# without the mount a step runs untuned and says so in one line. Then the samples of conf/ for enroot and
# Kubernetes, and the health check.
set -uo pipefail
here=$(dirname "$(readlink -f "$0")")
top=$(cd "$here/../.." && pwd)
export BUILD=${BUILD:-$top/build}
# shellcheck source=tests/tools/checks.sh
. "$here/../tools/checks.sh"
unset MAKEFLAGS MAKELEVEL
work=$(mktemp -d /tmp/rdma-tune-container.XXXXXX)
chmod 755 "$work"
cluster=$top/scripts/cluster/cluster.sh
export CL_NAME=ct$$ CL_BASE=$work/cluster CL_NET=10.$((128 + $$ / 256 % 64)).$(($$ % 256)) CL_GPUS=2
clean_up() {
  [ ! -d "$CL_BASE" ] || "$cluster" down >/dev/null 2>&1
  rm -rf --one-file-system -- "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

# ---- samples: these need neither root nor packages ----------------------------------------------
# shellcheck source=tests/container/samples.sh
. "$here/samples.sh"

# ---- the image ----------------------------------------------------------------------------------
if [ "$(id -u)" != 0 ]; then
  skip "tasks in a container" "needs root, for namespaces"
  finish
fi
cache=$BUILD/cache/old-root
if ! why=$("$here/old_root.sh" "$cache" 2>&1); then
  skip "tasks in a container with an old C library" "its packages cannot be fetched: ${why##*$'\n'}"
  finish
fi
opt=$work/opt
root=$work/root
cp -a "$cache/root" "$root"
make --no-print-directory -C "$top" -s -o all install BUILD="$BUILD" PREFIX="$opt" >"$work/install.log" 2>&1 ||
  { fail "make install" "$(cat "$work/install.log")"; finish; }
tuner=$opt/lib/libnccl-tuner-rdmatune.so

# The loader is linked against the image's own C library, piece by piece: the compiler would find ours.
sdk=$cache/sdk/usr/lib/x86_64-linux-gnu
libc=$cache/sdk/lib/x86_64-linux-gnu
build_loader() {
  "${CC:-cc}" --sysroot="$cache/sdk" -std=c11 -D_GNU_SOURCE -Wall -Wextra -O1 -fno-pie -c -o "$work/loader.o" \
    "$here/nccl_loader.c" &&
    "${CC:-cc}" -nostdlib -no-pie -Wl,-dynamic-linker,/lib64/ld-linux-x86-64.so.2 -o "$root/nccl_loader" \
      "$sdk/crt1.o" "$sdk/crti.o" "$work/loader.o" "$libc/libdl.so.2" "$libc/libc.so.6" \
      "$sdk/libc_nonshared.a" "$sdk/crtn.o"
}
check "a program for the image is built" build_loader
echo "the image: $(chroot "$root" /lib/x86_64-linux-gnu/libc.so.6 2>/dev/null | sed -n 1p); this machine: $(getconf GNU_LIBC_VERSION)"

# A mount namespace of its own with the image as root, and the paths given mounted into it.
inside() { # MOUNTS CMD...
  local mounts=$1
  shift
  # shellcheck disable=SC2016 # expanded by the inner shell
  unshare -m --propagation private -- /bin/sh -c '
    root=$1 mounts=$2
    shift 2
    for path in $mounts; do
      mkdir -p "$root${path%/*}" && { [ -e "$root$path" ] || : >"$root$path"; } && mount --bind "$path" "$root$path" || exit 99
    done
    exec chroot "$root" "$@"' sh "$root" "$mounts" "$@"
}

# ---- the tuner, as NCCL loads it ----------------------------------------------------------------
profile=$("$BUILD/bin/rdma-tune" profile make --nodes 2 --rails 2 --alpha 30 --beta 5 2>"$work/profile.err")
[ -n "$profile" ] || fail "a profile is made" "$(cat "$work/profile.err")"
for interface in 3 4 5 6; do
  chosen=$(inside "$tuner" /bin/env "NCCL_TUNER_PLUGIN=$tuner" "RDMA_TUNE_PROFILE=$profile" /nccl_loader $interface 2 8 2>&1)
  ours=$(NCCL_TUNER_PLUGIN=$tuner RDMA_TUNE_PROFILE=$profile "$root/nccl_loader" $interface 2 8 2>&1)
  contains "the tuner loads with the old C library, interface $interface" "$chosen" "^tuner v$interface loaded$"
  if [ "$chosen" = "$ours" ]; then pass "it chooses there what it chooses here, interface $interface"
  else fail "it chooses there what it chooses here, interface $interface" "$(diff <(echo "$ours") <(echo "$chosen"))"; fi
done
contains "another profile gives another choice (the comparison can fail)" "$(
  other=$("$BUILD/bin/rdma-tune" profile make --nodes 2 --rails 2 --alpha 300 --beta 5)
  [ "$(RDMA_TUNE_PROFILE=$other NCCL_TUNER_PLUGIN=$tuner "$root/nccl_loader" 5 2 8 2>&1)" = "$ours" ] || echo differs)" differs
contains "without a profile it loads and stands aside" \
  "$(inside "$tuner" /bin/env "NCCL_TUNER_PLUGIN=$tuner" /nccl_loader 5 2 8 2>&1)" "^tuner v5 loaded$"
# The empty files that were mounted over are the image's no more.
unmounted() { rm -rf --one-file-system -- "${root:?}$work"; }
unmounted
contains "without the mount NCCL could not load it" \
  "$(inside "" /bin/env "NCCL_TUNER_PLUGIN=$tuner" /nccl_loader 5 2 8 2>&1)" "^tuner not loaded: .*No such file"
refuse "the full program does not run there" inside "$opt/bin/rdma-tune" "$opt/bin/rdma-tune" --version
contains "the one for tasks does" "$(inside "$opt/bin/rdma-tune-task" "$opt/bin/rdma-tune-task" --version 2>&1)" "^rdma-tune [0-9]"
no_libraries() { ! readelf -l "$opt/bin/rdma-tune-task" | grep -q INTERP; }
check "and needs no library at all" no_libraries

# ---- steps under Slurm --------------------------------------------------------------------------
for tool in slurmctld slurmd sinfo; do
  command -v $tool >/dev/null && continue
  skip "steps in a container under Slurm" "$tool is not installed"
  finish
done
# shellcheck source=tests/container/steps.sh
. "$here/steps.sh"
finish
