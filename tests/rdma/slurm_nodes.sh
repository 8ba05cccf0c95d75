# shellcheck shell=bash disable=SC2154 # $program is the suite's
# A Slurm of its own inside the guest; sourced by suites after lib.sh and nodes.sh. SLURM_AT NODE
# says how a node is entered (empty: the guest itself).

# start_slurm BUILD "NODE..." CPUS GPUS [plugstack argument...]: slurmctld here and one slurmd per
# node, all on this machine's loopback; the plugin from BUILD. With GPUS > 0 each node has the
# device files /dev/nvidia0 and on.
start_slurm() {
    local build=$1 nodes=$2 cpus=$3 gpus=$4 node port=17000 host
    shift 4
    host=$(hostname)
    echo "127.0.0.1 localhost $host ${nodes}" >/etc/hosts
    mkdir -p /run/munge /var/log/munge /var/lib/munge /run/slurm /var/spool/slurmctld /etc/slurm /etc/munge \
        /sys/fs/cgroup/system.slice
    head -c 128 /dev/urandom >/etc/munge/munge.key
    chown -R munge: /run/munge /var/log/munge /var/lib/munge /etc/munge
    chmod 400 /etc/munge/munge.key
    setpriv --reuid munge --regid munge --clear-groups munged --force

    {
        cat <<CONF
ClusterName=guest
SlurmctldHost=$host
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CryptoType=crypto/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
MessageTimeout=60
SlurmctldPidFile=/run/slurm/ctld.pid
SlurmdPidFile=/run/slurm/d-%n.pid
SlurmdSpoolDir=/run/slurm/spool-%n
StateSaveLocation=/run/slurm/state
SlurmctldLogFile=/run/slurm/ctld.log
SlurmdLogFile=/run/slurm/d-%n.log
PlugStackConfig=/etc/slurm/plugstack.conf
CONF
        [ "$gpus" = 0 ] || echo "GresTypes=gpu"
        for node in $nodes; do
            port=$((port + 1))
            echo "NodeName=$node NodeHostname=$host NodeAddr=127.0.0.1 Port=$port CPUs=$cpus RealMemory=300$([ "$gpus" = 0 ] || echo " Gres=gpu:$gpus")"
        done
        echo "PartitionName=p Nodes=ALL Default=YES State=UP"
    } >/etc/slurm/slurm.conf
    printf 'CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n' >/etc/slurm/cgroup.conf
    printf 'IgnoreSystemd=yes\n' >>/etc/slurm/cgroup.conf
    [ "$gpus" = 0 ] || echo "Name=gpu File=/dev/nvidia[0-$((gpus - 1))]" >/etc/slurm/gres.conf
    # Everything is slow here, so no limit of the site may be what ends a step.
    mkdir -p /etc/rdma-tune
    printf '%s\n' 'budget = 60' 'node_timeout = 120' 'task_timeout = 120' >/etc/rdma-tune/rdma-tune.conf
    echo "optional $build/lib/spank_rdma_tune.so program=$program tuner=$build/lib/libnccl-tuner-rdmatune.so $*" >/etc/slurm/plugstack.conf

    slurmctld
    for node in $nodes; do
        if [ -e "$NODES_STATE/$node" ]; then
            enter "$node" slurmd -N "$node"
        else
            slurmd -N "$node"
        fi
    done
    local try wanted
    wanted=$(wc -w <<<"$nodes")
    for try in $(seq 120); do
        [ "$(sinfo -h -N -o %T 2>/dev/null | grep -c '^idle$')" = "$wanted" ] && return 0
        sleep 0.5
    done
    note "Slurm's nodes are not idle after $try tries: $(sinfo -h -N -o '%N %T %E' 2>&1 | tr '\n' ';') $(tail -n 3 /run/slurm/d-*.log)"
    return 1
}
idle_nodes() { sinfo -h -N -o %T | grep -c '^idle$'; }
