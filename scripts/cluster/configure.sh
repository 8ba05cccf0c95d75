#!/bin/bash
# configure.sh COUNT: writes what the cluster's COUNT nodes read: slurm.conf and its kin, passwd, group
# and hosts. Called by cluster.sh with its CL_ variables.
set -euo pipefail
here=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
# shellcheck source=scripts/cluster/settings.sh
. "$here/settings.sh"
count=$1

# The daemons' users have other numbers in a chroot than here.
owner() { awk -F: -v name="$1" '$1 == name { print $3 ":" $4 }' "$ROOT/etc/passwd"; }
for name in munge slurm; do
  [ -n "$(owner $name)" ] || { echo "cluster.sh: no user '$name' in $ROOT/etc/passwd: install slurmctld, slurmd and munge" >&2; exit 1; }
done

mkdir -p "$STATE"/{etc,log,pid,spool,ctld,munge,dev} "$USER_HOME"
chmod 755 "$STATE" "$STATE"/{etc,spool,home}
chmod 777 "$STATE/log" # slurmctld and slurmd write here as different users
chown "$USER_ID:$USER_ID" "$USER_HOME"
[ -s "$STATE/munge.key" ] || (umask 077 && head -c 1024 /dev/urandom >"$STATE/munge.key")
chown "$(owner munge)" "$STATE/munge" "$STATE/munge.key"
chmod 711 "$STATE/munge"
chmod 400 "$STATE/munge.key"
chown "$(owner slurm)" "$STATE/ctld"

{
  grep -v "^$USER_NAME:" "$ROOT/etc/passwd"
  echo "$USER_NAME:*:$USER_ID:$USER_ID::$USER_HOME:/bin/bash" # "*": Slurm refuses users without it
} >"$STATE/etc.passwd"
{
  grep -v "^$USER_NAME:" "$ROOT/etc/group"
  echo "$USER_NAME:x:$USER_ID:"
} >"$STATE/etc.group"
{
  echo "127.0.0.1 localhost"
  echo "$NET.254 head"
  index=0
  for node in $(node_names "$count"); do
    index=$((index + 1))
    echo "$NET.$index $node"
  done
} >"$STATE/etc.hosts"

# config_overrides: Slurm believes the pretended number of cores. bf_interval: heterogeneous jobs are
# started by the backfill scheduler only, which by default looks every 30 seconds.
cat >"$STATE/etc/slurm.conf" <<CONF
ClusterName=$NAME
SlurmctldHost=head($NET.254)
AuthType=auth/munge
CredType=cred/munge
SlurmUser=slurm
SlurmdUser=root
StateSaveLocation=$STATE/ctld
SlurmdSpoolDir=$STATE/spool/%n
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile=$STATE/log/slurmctld.log
SlurmdLogFile=$STATE/log/slurmd.%n.log
SlurmctldDebug=$DEBUG
SlurmdDebug=$DEBUG
ProctrackType=$PROCTRACK
TaskPlugin=$TASKPLUGIN
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,batch_sched_delay=0
MpiDefault=none
GresTypes=gpu
ReturnToService=2
SlurmdParameters=config_overrides
PropagateResourceLimitsExcept=MEMLOCK
PlugStackConfig=/etc/slurm/plugstack.conf
SlurmctldTimeout=30
SlurmdTimeout=60
InactiveLimit=0
KillWait=5
MessageTimeout=20
$EXTRA
CONF
index=0
for node in $(node_names "$count"); do
  index=$((index + 1))
  echo "NodeName=$node NodeAddr=$NET.$index Sockets=2 CoresPerSocket=$((CPUS / 2)) ThreadsPerCore=1" \
    "RealMemory=4000 Gres=gpu:$GPUS State=UNKNOWN"
done >>"$STATE/etc/slurm.conf"
echo "PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO" >>"$STATE/etc/slurm.conf"

printf 'AutoDetect=off\nName=gpu File=/dev/nvidia[0-%d]\n' $((GPUS - 1)) >"$STATE/etc/gres.conf"
# cgroup/v1 in both cases: with `autodetect` Slurm 22.05 does not start where there is no cgroup.
if [ "$CGROUP" = 1 ]; then
  printf '%s\n' CgroupPlugin=cgroup/v1 CgroupAutomount=no CgroupMountpoint=/sys/fs/cgroup \
    ConstrainCores=no ConstrainDevices=yes >"$STATE/etc/cgroup.conf"
else
  echo CgroupPlugin=cgroup/v1 >"$STATE/etc/cgroup.conf"
fi
# Newer releases do not know CgroupAutomount.
release=$(chroot "$ROOT" /usr/sbin/slurmctld -V | awk '{ print $2 }')
case $release in 22.* | 23.*) ;; *) sed -i /^CgroupAutomount/d "$STATE/etc/cgroup.conf" ;; esac
if [ -n "$PLUGSTACK" ]; then cp "$PLUGSTACK" "$STATE/etc/plugstack.conf"; else echo "# none" >"$STATE/etc/plugstack.conf"; fi
chmod 644 "$STATE"/etc/* "$STATE"/etc.*
