# shellcheck shell=bash
# Sourced by run.sh: `rdma-tune profile` and `rdma-tune explain`.
rt=$BUILD/bin/rdma-tune
status_of() { "$@" >/dev/null 2>&1; echo $?; }

if [ ! -x "$rt" ]; then
  fail "rdma-tune is built" "no $rt"
else
  text=$("$rt" profile make --nodes 4 --rails 8 --alpha 1.9 --beta 24.3 --worst-alpha 2.5 --rule "algorithm=ring bytes=1M-")
  contains "profile make prints a profile" "$text" '^rt1;nodes=4;.*;rails=8;rail=24300;nominal=25000;ra=1900;raw=2500;rb=194400;.*rules=\*:1048576-\*:0-\*:ring:\*;crc=[0-9a-f]{8}$'
  shown=$("$rt" profile show "$text")
  contains "profile show gives latencies their unit" "$shown" 'alpha 1\.90 us \(worst edge 2\.50 us\)'
  contains "profile show gives bandwidths their unit" "$shown" 'beta 194\.40 GB/s per node'
  contains "profile show spells the rules out" "$shown" 'rules +any collective, 1M bytes and more.*: ring'
  contains "profile show reads standard input" "$("$rt" profile show --json - <<<"$text")" '"alpha_us": 1\.9'
  contains "profile show reads the environment" "$(RDMA_TUNE_PROFILE=$text "$rt" profile show </dev/null)" 'rails +8 per node'
  contains "a neutral profile says so" "$("$rt" profile show "$("$rt" profile make --nodes 2 --neutral)")" '^neutral'
  contains "a damaged profile is named as such" "$("$rt" profile show "${text/ra=1900/ra=1901}" 2>&1)" 'checksum does not match'
  damaged=$(status_of "$rt" profile show "${text/ra=1900/ra=1901}")
  nothing=$(status_of "$rt" profile make --nodes 4)
  typo=$(status_of "$rt" profile make --nodes 4 --alpha 2 --rule algorithm=rin)
  usage=$(status_of "$rt" profile make --nodes none)
  if [ "$damaged $nothing $typo $usage" = "1 1 1 2" ]; then pass "exit status 1 for failures, 2 for wrong usage"
  else fail "exit status 1 for failures, 2 for wrong usage" "$damaged $nothing $typo $usage"; fi

  table=$("$rt" explain --nodes 4 --gpus-per-node 8 --alpha 100 --beta 25 --nominal 50)
  contains "explain says what was measured and what NCCL assumes" "$table" '32 ranks on 4 nodes, 8 rails: ring 100\.00 us and 200\.0 GB/s.*NCCL assumes 1\.00 us and 384\.0 GB/s'
  contains "explain shows costs and choices by size" "$table" '^allreduce +64K +tree/ll +[0-9.]+ us +ring/ll +[0-9.]+ us +tree/ll +\(NCCL alone: tree/ll\)'
  contains "explain marks what changes" "$table" '\(NCCL alone: ring/.*\) \*$'
  contains "explain says where they cross" "$table" '^allreduce: .*\(NCCL alone: ring from .* on\)$'
  check "explain's JSON is JSON" bash -c "'$rt' explain --profile '$text' --coll allgather --json | python3 -m json.tool"
  contains "explain without a network says what to give" "$(env -u RDMA_TUNE_PROFILE -u SLURM_RDMA_TUNE_PROFILE "$rt" explain 2>&1)" 'expected --profile'
fi

# ---- measure --collectives: truth to hold the prices against ---------------------------------------
measured=$("$BUILD/bin/rdma-tune" measure --local 2 --collectives --sizes 8,4096 --budget 30 2>&1 >/dev/null)
for bytes in 8 4096; do
  contains "measure --collectives tells an allreduce of $bytes bytes by ring and by tree" "$measured" \
    "allreduce of $bytes bytes: ring [0-9]*[1-9][0-9.]* us, tree [0-9]*[1-9][0-9.]* us"
done
