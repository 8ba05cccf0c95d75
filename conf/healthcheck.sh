#!/bin/sh
# Slurm health check: drains a node on which GPUDirect RDMA cannot work, and gives it back when it can.
# In slurm.conf:
#   HealthCheckProgram=/etc/slurm/rdma-tune-healthcheck.sh
#   HealthCheckInterval=600
#   HealthCheckNodeState=IDLE
# slurmd runs it as root and kills it after 60 seconds. It only logs the exit status: draining is up to
# this script. Nodes drained by anybody else are left alone.
#
# Codes (docs/gpudirect.md) that take a node out of service; the others are only logged.
DRAIN_FOR=${DRAIN_FOR:-"acs-redirect driver-missing driver-nouveau iommu-translating memlock-low peermem-missing peermem-unregistered verbs-missing"}
RDMA_TUNE=${RDMA_TUNE:-rdma-tune}
SCONTROL=${SCONTROL:-scontrol}
node=${SLURMD_NODENAME:-$(hostname -s)}

if ! line=$(timeout 50 "$RDMA_TUNE" doctor --health 2>/dev/null) && [ -z "$line" ]; then
    # A program that is missing or hangs says nothing about the node's hardware.
    logger -t rdma-tune "health check could not run" 2>/dev/null
    exit 0
fi

# The node's own words: "State=IDLE+DRAIN ..." and "Reason=rdma-tune: ... [root@...]".
now=$("$SCONTROL" --oneliner show node "$node" 2>/dev/null)
state=${now#* State=}
state=${state%% *}
reason=${now#* Reason=}
ours=no
case $reason in rdma-tune:*) ours=yes ;; esac
drained=no
case $state in *DRAIN*) drained=yes ;; esac

found=
codes=${line#rdma-tune: }
codes=" ${codes%%: *} "
for code in $DRAIN_FOR; do
    case $codes in *" $code "*) found="$found $code" ;; esac
done

if [ -n "$found" ]; then
    [ "$drained" = yes ] && exit 1
    "$SCONTROL" update NodeName="$node" State=DRAIN Reason="rdma-tune:$found"
    exit 1
fi
if [ "$drained" = yes ] && [ "$ours" = yes ]; then
    "$SCONTROL" update NodeName="$node" State=RESUME
fi
exit 0
