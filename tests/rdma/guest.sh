#!/bin/bash
# A QEMU guest with real RDMA verbs (soft-RoCE), for tests on a machine that has no HCA.
#
#   guest.sh setup                                  prepare kernel, initramfs, test modules (cached)
#   guest.sh run [options] SCRIPT [argument...]     boot, run SCRIPT inside as root, power off
#   guest.sh why                                    say why no guest can be booted here; silent when it can
#
# Options of run:
#   --memory SIZE    guest memory (default 1G)
#   --smp SPEC       QEMU's -smp (default 2)
#   --timeout S      seconds until the guest is ended from outside (default 150)
#   --keep DIR       keep what the script wrote to $OUT, and the console's log, in DIR
#   --topology       two NUMA nodes, four PCIe switches with NICs and stand-in GPUs
#                    (guest/topology_devices.sh says what is where)
#
# The script's output appears here as it runs; its exit status is ours (99: the guest ended
# without one). Inside, the host's root file system is readable under the same paths, so that
# programs built here run unchanged; what the guest writes stays in the guest's memory, except
# below $OUT. One guest runs at a time, because latency is asserted: others wait for the lock.
set -euo pipefail
shopt -s inherit_errexit

here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
work=${RDMA_TUNE_GUEST:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/rdma-tune/guest}

why_not() {
    [ "$(uname -m)" = x86_64 ] || { echo "the guest needs an x86_64 machine, this is $(uname -m)"; return; }
    [ -e "$work/ready" ] && return
    [ "$(id -u)" = 0 ] || { echo "setting up the guest needs root (it installs Debian packages)"; return; }
    command -v apt-get >/dev/null || echo "setting up the guest needs Debian's apt-get"
}

# The state of everything that setup makes its files from: when it changes, setup runs again.
recipe() { cat "$here"/guest/{setup.sh,initramfs.sh,extract_vmlinux.py} "$here"/guest/modules/*/*.c | sha256sum | cut -d' ' -f1; }

setup() {
    mkdir -p "$work"
    exec 8>"$work/setup.lock"
    flock 8
    if [ ! -e "$work/ready" ] || [ "$(cat "$work/ready")" != "$(recipe)" ]; then
        rm -f "$work/ready"
        "$here/guest/setup.sh" "$work"
        recipe >"$work/ready"
    fi
    exec 8>&-
}

run() {
    local memory=1G smp=2 timeout=150 keep='' topology='' cpu=max out guest follow status=99
    while :; do
        case ${1:-} in
            --memory) memory=$2; shift 2 ;;
            --smp) smp=$2; shift 2 ;;
            --timeout) timeout=$2; shift 2 ;;
            --keep) keep=$2; shift 2 ;;
            --topology) topology=1; shift ;;
            -*) echo "guest.sh: unknown option $1" >&2; return 2 ;;
            *) break ;;
        esac
    done
    [ $# -ge 1 ] || { echo "guest.sh run: no script given" >&2; return 2; }
    setup

    out=${keep:-$(mktemp -d)}
    mkdir -p "$out"
    rm -f "$out"/{status,log,command}
    touch "$out/log"
    printf '%q ' bash "$(readlink -f "$1")" "${@:2}" >"$out/command"

    local devices=()
    if [ -n "$topology" ]; then
        mapfile -t devices < <("$here/guest/topology_devices.sh")
        memory=1536M smp=4,sockets=2,cores=2
        cpu=max,-hypervisor  # a virtual machine's switches would not be believed
    fi
    share() {  # tag, path, options
        echo "-fsdev local,id=$1,path=$2,security_model=none,multidevs=remap$3"
        echo "-device virtio-9p-pci,fsdev=$1,mount_tag=$1,bus=pcie.0"
    }
    # shellcheck disable=SC2046  # the shares are words of the command line on purpose
    set -- $(share hostroot / ,readonly=on) $(share out "$out" "")

    exec 9>"$work/lock"
    flock 9
    # QEMU 7.2's emulation with several threads now and then crashes by itself, mostly while the kernel
    # boots. That says nothing about what is tested, so the guest is started anew.
    local attempt crashed
    for attempt in 1 2 3; do
        crashed=0
        boot "$@" || crashed=$?
        if [ -e "$out/status" ] || [ $crashed -lt 129 ] || [ $crashed = 137 ]; then break; fi
        echo "# guest.sh: QEMU ended by signal $((crashed - 128)) (attempt $attempt)"
        : >"$out/log"
    done
    exec 9>&-

    if [ -e "$out/status" ]; then
        status=$(cat "$out/status")
    else
        echo "guest.sh: the guest ended without a result within $timeout s; its console's last lines:" >&2
        { tail -5 "$out/qemu"; tail -15 "$out/console"; } >&2 || true
    fi
    [ -n "$keep" ] || rm -rf "$out"
    return "$status"
}

# boot SHARE...: QEMU until it ends, what the guest says shown as it comes; QEMU's status. Uses run's variables.
boot() {
    local ended=0
    # KVM is not asked for: it would not make soft-RoCE's figures comparable between machines.
    timeout --kill-after=5 "$timeout" qemu-system-x86_64 -accel tcg,thread=multi -cpu "$cpu" -M q35 \
        -m "$memory" -smp "$smp" -nodefaults -display none -serial "file:$out/console" -no-reboot \
        -kernel "$work/vmlinux" -initrd "$work/initramfs" \
        -append "console=ttyS0 quiet panic=-1 nokaslr mitigations=off random.trust_cpu=1 tsc=reliable modules=$work init_script=$here/guest/init.sh" \
        "$@" -object rng-builtin,id=r0 -device virtio-rng-pci,rng=r0,bus=pcie.0 \
        "${devices[@]}" </dev/null >"$out/qemu" 2>&1 9>&- &
    guest=$!
    tail -n +1 -s 0.2 -f "$out/log" 9>&- &
    follow=$!
    trap 'kill $guest $follow 2>/dev/null || true' EXIT
    wait "$guest" || ended=$?
    sleep 0.4  # let the follower print the last lines
    kill "$follow" 2>/dev/null || true
    wait "$follow" 2>/dev/null || true
    trap - EXIT
    return $ended
}

case ${1:-} in
    setup) setup ;;
    run) shift; run "$@" ;;
    why) why_not ;;
    *) sed -n '2,/^set /s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" | sed '$d'; exit 2 ;;
esac
