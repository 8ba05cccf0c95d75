# shellcheck shell=bash disable=SC2154 # the image, the installation and the checks are run.sh's
# Sourced by run.sh: `srun --rdma-tune` with its tasks in the image, on a cluster of two nodes.
build_plugin() {
  # shellcheck disable=SC2046 # several flags
  "${CC:-cc}" -shared -fPIC -O1 -Wall -Wextra $(pkg-config --cflags slurm 2>/dev/null) -o "$opt/lib/slurm/test_container.so" \
    "$here/container_plugin.c"
}
mkdir -p "$opt/lib/slurm" "$CL_BASE"
check "a plugin that does as pyxis does is built" build_plugin

"$top/scripts/demo/topology.sh" mlx5_0 mlx5_1 mlx5_2 mlx5_3 >"$work/node.xml"
printf 'topology = *=%s\n' "$work/node.xml" >"$work/site.conf"
chown 0:0 "$work/site.conf"
chmod 644 "$work/site.conf"
# stack MOUNT...: pyxis' stand-in and the plugin, in the order in which a site's files would sort
stack() {
  unmounted
  local mount line="required $opt/lib/slurm/test_container.so root=$root"
  for mount in "$@"; do line+=" mount=$mount"; done
  { echo "$line"; echo "optional $opt/lib/slurm/spank_rdma_tune.so config=$work/site.conf"; } >"$work/plugstack.conf"
  [ ! -e "$CL_BASE" ] || find "$CL_BASE" -name plugstack.conf -exec cp "$work/plugstack.conf" {} \;
}
# What a task shows: its environment, then the tuner's choices. The image has /bin/sh.
cat >"$root/task.sh" <<'TASK'
#!/bin/sh
env | grep -E '^(NCCL_|UCX_|CUDA_|RDMA_TUNE_)' | cut -c1-60 | while read -r line; do echo "$SLURM_PROCID $line"; done
/nccl_loader 5 2 4 2>&1 | while read -r line; do echo "$SLURM_PROCID choice $line"; done
TASK
chmod 755 "$root/task.sh"
step() { # SRUN-OPTION...: output in $work/out and $work/err, status in $status; OWN_TUNER: the user's
  timeout -k 5 90 "$cluster" user head env RT_CONTAINER=1 ${OWN_TUNER:+"RDMA_TUNE_TUNER=$OWN_TUNER"} srun -N2 --ntasks-per-node=2 --gpus-per-node=2 "$@" /task.sh \
    >"$work/out" 2>"$work/err" </dev/null
  status=$?
}
of() { grep -E "^$1 $2" "$work/out" | sed "s/^$1 //"; }
both() { cat "$work/out" "$work/err"; }

stack /dev /proc "$tuner" "$opt/bin/rdma-tune-task"
export CL_PLUGSTACK=$work/plugstack.conf
if ! "$cluster" up 2 >"$work/up.log" 2>&1; then
  fail "a cluster of two nodes starts" "$(tail -n 20 "$work/up.log")"
  finish
fi

step --rdma-tune
contains "a step in containers runs" "$status $(both)" "^0 "
for rank in 0 1 2 3; do
  contains "rank $rank has its tuner, loaded in the image" "$(of $rank 'choice tuner')" '^choice tuner v5 loaded$'
done
contains "all ranks choose alike" "$(for rank in 0 1 2 3; do of $rank choice | md5sum; done | sort -u | wc -l)" '^1$'
contains "every rank of a node has the same HCAs" "$(for rank in 0 1 2 3; do of $rank NCCL_IB_HCA=; done | sort -u)" \
  '^NCCL_IB_HCA==mlx5_0:1,mlx5_1:1'
contains "and its own HCA" "$(of 0 UCX_NET_DEVICES=) $(of 1 UCX_NET_DEVICES=)" 'mlx5_0:1 .*mlx5_1:1'
contains "nothing is said to be untuned" "$(grep -cE 'untuned|not bound' "$work/err")" '^0$'

echo 'NCCL_TUNER_PLUGIN=/opt/vendor.so' >"$root/etc/environment"
step --rdma-tune=verbose
contains "what the image sets is left, since nobody can tell it from the user's" "$(of 0 NCCL_TUNER_PLUGIN=)" '=/opt/vendor.so$'
contains "and that is said" "$(cat "$work/err")" 'left NCCL_TUNER_PLUGIN=/opt/vendor.so'
rm "$root/etc/environment"

stack /dev /proc
step --rdma-tune
contains "without the mounts the step runs all the same" "$status $(both)" "^0 "
contains "untuned" "$(for rank in 0 1 2 3; do of $rank choice; done | sort -u)" '^choice no tuner$'
contains "with one line for each node, and no more" \
  "$(grep -cE 'rdma-tune: gpu01: not bound' "$work/err") $(grep -cE 'rdma-tune: gpu02: not bound' "$work/err") $(grep -ciE 'untuned|no tuner' "$work/err")" '^1 1 0$'
contains "that says what is missing" "$(cat "$work/err")" "rdma-tune: gpu01: not bound: .*/bin/rdma-tune is not there for the task; in a container, mount "
contains "nothing half-applied" "$(grep -cE '^[0-9] (NCCL_|UCX_|RDMA_TUNE_PROFILE)' "$work/out")" '^0$'

stack /dev /proc "$opt/bin/rdma-tune-task"
step --rdma-tune
contains "with the program but without the tuner: bound" "$(of 0 NCCL_IB_HCA=)" '^NCCL_IB_HCA=='
contains "and untuned" "$(of 0 choice)" '^choice no tuner$'
contains "in one line" "$(grep -E 'rdma-tune: .*libnccl-tuner' "$work/err" | sed 's/.*gpu0[12]//' | sort -u | wc -l)" '^1$'

contains "which warns of nodes that differ" "$(cat "$work/err")" 'may hang: have it on all nodes or none'
step --rdma-tune=strict
contains "strict: no task starts without its tuner" "$status $(grep -c choice "$work/out")" '^[1-9][0-9]* 0$'
contains "and that is the reason" "$(cat "$work/err")" 'strict, so gpu01 starts no task: .*libnccl-tuner-rdmatune.so is not there for the task'

mkdir -p "$opt/own"
cp "$tuner" "$opt/own/tuner.so"
stack /dev /proc "$opt/own/tuner.so" "$opt/bin/rdma-tune-task"
OWN_TUNER=$opt/own/tuner.so step --rdma-tune=strict
contains "strict: the user's own tuner will do where the site's is not there" "$status $(of 0 'choice tuner')" '^0 choice tuner v5 loaded$'

stack /dev /proc "$tuner"
step --rdma-tune
contains "with the tuner but without the program: tuned alike" \
  "$(for rank in 0 1 2 3; do of $rank choice | md5sum; done | sort -u | wc -l) $(of 0 'choice tuner')" '^1 choice tuner v5 loaded$'
contains "and unbound" "$(grep -cE '^[0-9] (NCCL_IB_HCA|UCX_)' "$work/out")" '^0$'

stack /dev /proc
step --rdma-tune=strict
contains "strict: without the mounts no task starts" "$status $(grep -c choice "$work/out")" '^[1-9][0-9]* 0$'
contains "and no node is drained" "$("$cluster" exec head sinfo -h -N -o %t | sort -u | tr '\n' ' ')" '^idle $|^alloc idle $|^comp idle $'
