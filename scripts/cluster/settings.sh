# Sourced by the cluster's scripts: what the CL_ variables and their defaults come to.
# shellcheck shell=bash disable=SC2034
NAME=${CL_NAME:-dev}
BASE=${CL_BASE:-/tmp/rdma-tune-cluster}
ROOT=${CL_ROOT:-/}
NET=${CL_NET:-10.77.0}
GPUS=${CL_GPUS:-8}
CPUS=${CL_CPUS:-16}
CGROUP=${CL_CGROUP:-0}
TASKPLUGIN=${CL_TASKPLUGIN:-task/none}
PROCTRACK=${CL_PROCTRACK:-proctrack/linuxproc}
PLUGSTACK=${CL_PLUGSTACK:-}
EXTRA=${CL_EXTRA:-}
HOOK=${CL_HOOK:-}
DEBUG=${CL_DEBUG:-info}
# The controllers that Slurm's cgroup v1 plugin looks for.
CONTROLLERS="freezer memory devices cpuset cpu cpuacct"
STATE=$BASE/$NAME
USER_NAME=jobuser
USER_ID=20001
USER_HOME=$STATE/home/$USER_NAME
node_names() { seq -f 'gpu%02g' 1 "$1"; }
