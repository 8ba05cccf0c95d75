# shellcheck shell=bash disable=SC2154 # top, work and the checks are run.sh's
# Sourced by run.sh: the samples in conf/ that a site or a user copies.

# ---- Kubernetes ---------------------------------------------------------------------------------
valid_manifest() {
  python3 - "$1" <<'PYTHON'
import sys, yaml
documents = list(yaml.safe_load_all(open(sys.argv[1])))
job = [d for d in documents if d["kind"] == "Job"][0]
pod = job["spec"]["template"]["spec"]
container = pod["containers"][0]
limits = container["resources"]["limits"]
assert any(name.endswith("/gpu") for name in limits), limits
assert any(name.startswith("rdma/") for name in limits), limits
assert "IPC_LOCK" in container["securityContext"]["capabilities"]["add"]
command = container["command"]
at = command.index("rdma-tune")
assert command[at:at + 3] == ["rdma-tune", "exec", "--"], command
# Names that the parts of the manifest know each other by.
service = [d for d in documents if d["kind"] == "Service"][0]
assert pod["subdomain"] == service["metadata"]["name"]
assert service["spec"]["selector"] == {"job-name": job["metadata"]["name"]}
mounted = {m["name"] for m in container["volumeMounts"]}
assert mounted <= {v["name"] for v in pod["volumes"]}
for entry in container["env"]:
    if "valueFrom" in entry:
        key = entry["valueFrom"]["configMapKeyRef"]
        maps = {d["metadata"]["name"]: d["data"] for d in documents if d["kind"] == "ConfigMap"}
        assert key["key"] in maps[key["name"]]
PYTHON
}
if python3 -c 'import yaml' 2>/dev/null; then
  for manifest in "$top"/conf/kubernetes/*.yaml; do
    check "$(basename "$manifest") is sound" valid_manifest "$manifest"
  done
else
  skip "the Kubernetes manifests are sound" "python3-yaml is not installed"
fi

# ---- enroot's hook ------------------------------------------------------------------------------
hook() { # VARIABLE...: runs it on a pretended container
  env -i PATH=/usr/bin:/bin ENROOT_ROOTFS="$work/image" ENROOT_ENVIRON="$work/environ" "$@" \
    bash "$top/conf/enroot/60-rdma-tune.sh"
}
mkdir -p "$work/image/etc"
printf '%s\n' PATH=/opt/bin 'NCCL_IB_HCA=mlx5_9' NCCL_VERSION=2.28.9 'NCCL_TUNER_PLUGIN=/opt/vendor.so' \
  NCCL_SOCKET_IFNAME=eth9 >"$work/image/etc/environment"
container_environment() {
  cat "$work/image/etc/environment"
  printf '%s\n' 'NCCL_SOCKET_IFNAME=ib0' 'HOME=/home/user' 'TRICKY=NCCL_IB_HCA=mlx5_9'
}
container_environment >"$work/environ"
check "enroot's hook runs in a step that is prepared" hook SLURM_RDMA_TUNE_PROFILE=x
contains "it takes out what the image sets, and nothing else" "$(tr '\n' ' ' <"$work/environ")" \
  '^PATH=/opt/bin NCCL_VERSION=2\.28\.9 NCCL_SOCKET_IFNAME=ib0 HOME=/home/user TRICKY=NCCL_IB_HCA=mlx5_9 $'
container_environment >"$work/environ"
check "it runs in any other step" hook SLURM_JOB_ID=1
if diff <(container_environment) "$work/environ" >/dev/null; then pass "and leaves that alone"
else fail "and leaves that alone" "$(cat "$work/environ")"; fi

# ---- Slurm's health check -----------------------------------------------------------------------
mkdir -p "$work/health"
# shellcheck disable=SC2016 # expanded by the stand-ins
printf '#!/bin/sh\ncat "%s/line"\nexit $(cat "%s/status")\n' "$work/health" "$work/health" >"$work/health/rdma-tune"
# shellcheck disable=SC2016
printf '#!/bin/sh\necho "$*" >>"%s/calls"\n[ "$1" = update ] || cat "%s/node"\n' "$work/health" "$work/health" \
  >"$work/health/scontrol"
chmod +x "$work"/health/{rdma-tune,scontrol}
health() { # LINE STATUS NODE
  printf '%s' "$1" >"$work/health/line"
  echo "$2" >"$work/health/status"
  echo "$3" >"$work/health/node"
  : >"$work/health/calls"
  SLURMD_NODENAME=n1 RDMA_TUNE=$work/health/rdma-tune SCONTROL=$work/health/scontrol \
    sh "$top/conf/healthcheck.sh" >/dev/null 2>&1
  echo "$?: $(grep update "$work/health/calls")"
}
idle='NodeName=n1 State=IDLE ThreadsPerCore=1 Comment=not_DRAINED'
bad='rdma-tune: acs-redirect link-narrow: Switch port 0000:02:01.0 sends ...'
contains "a node with an error is drained, with the code as reason" "$(health "$bad" 1 "$idle")" \
  '^1: update NodeName=n1 State=DRAIN Reason=rdma-tune: acs-redirect$'
contains "but not twice" "$(health "$bad" 1 'NodeName=n1 State=IDLE+DRAIN Reason=broken fan [root@x]')" '^1: $'
contains "a healthy node is left alone" "$(health 'rdma-tune: healthy (warnings: 1)' 0 "$idle")" '^0: $'
contains "a node that it drained comes back" \
  "$(health 'rdma-tune: healthy (warnings: 0)' 0 'NodeName=n1 State=IDLE+DRAIN Reason=rdma-tune: acs-redirect [root@x]')" \
  '^0: update NodeName=n1 State=RESUME$'
contains "a node that somebody else drained does not" \
  "$(health 'rdma-tune: healthy (warnings: 0)' 0 'NodeName=n1 State=IDLE+DRAIN Reason=broken fan [root@x]')" '^0: $'
contains "an error that the site does not drain for is no reason" \
  "$(health 'rdma-tune: amd-kernel-config: Linux ...' 1 "$idle")" '^0: $'
contains "a program that says nothing drains nothing" "$(health '' 127 "$idle")" '^0: $'
