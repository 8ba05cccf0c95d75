# The unmodified NCCL, started by srun, choosing by our prices.
# shellcheck shell=bash disable=SC2154,SC2015 # $out and the like are the suite's; die ends the case

case_nccl_chooses_by_the_profile_and_alike_on_all_ranks() {
  [ -n "${NCCL_DRYRUN:-}" ] || skip "${NCCL_DRYRUN_WHY:-no NCCL that runs without a GPU}"
  [ -z "${SLURM_CHROOT:-}" ] || skip "NCCL_DRYRUN is not inside the chroot"
  local program=$NCCL_DRYRUN
  if [ "${program%/*}" = "$BUILD/nccl-dryrun" ]; then
    # Where the job's user can read it, wherever the build folder is.
    cp -r "${program%/*}" "$work/dryrun" && chmod -R a+rX "$work/dryrun" || die "cannot copy ${program%/*}"
    program=$work/dryrun/${program##*/}
  fi
  mkdir -p "$home/meet"
  chown 20001 "$home/meet"
  # The profile that was measured between namespaces is very unlike what NCCL assumes.
  LIMIT=400 run srun -N2 -n8 --ntasks-per-node=4 --gpus-per-node=4 --rdma-tune \
    env NCCL_SOCKET_IFNAME=eth0 NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,TUNING NCCL_DEBUG_FILE="$home/nccl.%h.%p" \
    "$program" --launched --timeout 300 --rendezvous "$home/meet" --shape hgx-4gpu-2nic --net ib --coll ar --sizes 64K,1M,16M
  ended 0
  python3 - "$out" >"$work/nccl.txt" 2>&1 <<'PY' || die "$(cat "$work/nccl.txt")"
import json, sys
ranks = [json.loads(line) for line in open(sys.argv[1]) if line.startswith("{")]
assert len(ranks) == 8, f"{len(ranks)} ranks reported"
assert all(r["status"] == "ok" for r in ranks), [(r["rank"], r["status"], r.get("error")) for r in ranks]
choices = {json.dumps([(c.get("bytes"), c.get("algo"), c.get("proto")) for c in r["collectives"]]) for r in ranks}
assert len(choices) == 1, f"ranks differ: {choices}"
print(choices.pop())
PY
  grep -hq 'TUNER/rdma-tune' "$home"/nccl.* || die "NCCL's log has nothing of the tuner's"
}
