#!/bin/bash
# slurm.sh BUILD: `srun --rdma-tune` on two nodes with two rails each. Runs inside the guest (see
# guest.sh).
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=lib.sh
. "$here/lib.sh"
# shellcheck source=nodes.sh
. "$here/nodes.sh"
# shellcheck source=slurm_nodes.sh
. "$here/slurm_nodes.sh"
build=$1
take_program

make_fabric 2 2
for node in 1 2; do make_node $node 0 1; done
start_slurm "$build" "n1 n2" 2 0 || { not_ok "slurm starts" "no idle nodes"; finish; exit; }

task='echo "$SLURM_PROCID $(hostname) hca=$NCCL_IB_HCA ucx=$UCX_NET_DEVICES profile=$RDMA_TUNE_PROFILE"'
begin=$(date +%s%N)
timeout 400 srun -N2 -n2 --rdma-tune=verbose bash -c "$task" >"$OUT/tasks" 2>"$OUT/srun"
status=$?
note "srun --rdma-tune took $((($(date +%s%N) - begin) / 1000000)) ms"
sed 's/^/# /' "$OUT/srun" | head -40
of() { sed -n "s/^$1 .* $2=\([^ ]*\).*/\1/p" "$OUT/tasks"; }

check "the job runs" "[ $status = 0 ] && [ \$(wc -l <\$OUT/tasks) = 2 ]" "status $status: $(tail -c 300 "$OUT/srun")"
profile=$(of 0 profile)
check "it has a profile measured over RoCE" '[[ $profile == *net=roce* ]]' "$profile"
check "on both rails" '[[ $profile == *rails=2* ]]' "$profile"
check "every rank has the same profile" '[ -n "$profile" ] && [ "$(of 1 profile)" = "$profile" ]' "$(of 1 profile)"
check "node n1 uses its own HCAs" '[ "$(of 0 hca)" = "=rxe1_0:1,rxe1_1:1" ]' "$(of 0 hca)"
check "node n2 uses its own HCAs" '[ "$(of 1 hca)" = "=rxe2_0:1,rxe2_1:1" ]' "$(of 1 hca)"
check "UCX is told the rank's own HCA" '[[ $(of 0 ucx) == *rxe1_* && $(of 1 ucx) == *rxe2_* ]]' "$(of 0 ucx) $(of 1 ucx)"

# --- the agent of a node dies: the job starts all the same ---
killer() { agents n2 | xargs -r kill -9; }
# Measuring takes a second or two; the kill may come when it is over.
told=0 late=0
for _ in 1 2 3 4; do
    when_measuring n2 killer &
    watcher=$!
    timeout 400 srun -N2 -n2 --rdma-tune=refresh,verbose bash -c "$task" >"$OUT/tasks" 2>"$OUT/srun"
    status=$?
    wait $watcher
    if [ $status != 0 ] || [ "$(wc -l <"$OUT/tasks")" != 2 ]; then break; fi
    if grep -qw n2 "$OUT/srun"; then told=1; break; fi
    [[ $(of 0 profile) == *complete=1* ]] || break
    late=$((late + 1))
done
check "with a killed agent the job runs" "[ $status = 0 ] && [ \$(wc -l <\$OUT/tasks) = 2 ]" "status $status: $(tail -c 300 "$OUT/srun")"
if [ $late = 4 ]; then
    skip "and is told why" "the agent was done before it could be killed, four times"
else
    check "and is told why" "[ $told = 1 ]" "$(tail -c 300 "$OUT/srun")"
fi
check "no node is drained" '[ "$(idle_nodes)" = 2 ]' "$(sinfo -N -h | tr '\n' ';')"
finish
