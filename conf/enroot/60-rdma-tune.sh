#!/usr/bin/env bash
# Goes to /etc/enroot/hooks.d/60-rdma-tune.sh, mode 755. Images bring NCCL settings of their own (an HCA list,
# a tuner, a topology file), made for another machine, and pyxis lets the image's values win over the job's.
# In a step that rdma-tune prepares, this takes out of the container's environment what the image sets of
# the names below. What the user gives with --container-env or `enroot start --env` stays: only lines that
# are the image's own, letter for letter, go.
set -euo pipefail

compgen -e | grep -q '^SLURM_RDMA_TUNE_' || exit 0
[ -f "${ENROOT_ENVIRON:-}" ] || exit 0
image=${ENROOT_ROOTFS:-}/etc/environment
[ -f "$image" ] || exit 0

names="NCCL_IB_HCA NCCL_IB_GID_INDEX NCCL_NET_GDR_LEVEL NCCL_DMABUF_ENABLE NCCL_CROSS_NIC NCCL_TUNER_PLUGIN
NCCL_TUNER_CONFIG_FILE NCCL_TOPO_FILE NCCL_ALGO NCCL_PROTO NCCL_SOCKET_IFNAME UCX_NET_DEVICES"
kept=$(mktemp "${ENROOT_ENVIRON}.XXXXXX")
trap 'rm -f "$kept"' EXIT
while IFS= read -r line || [ -n "$line" ]; do
    name=${line%%=*}
    case " ${names//$'\n'/ } " in
    *" $name "*) grep -qxF -- "$line" "$image" && continue ;;
    esac
    printf '%s\n' "$line"
done <"$ENROOT_ENVIRON" >"$kept"
cat "$kept" >"$ENROOT_ENVIRON"
