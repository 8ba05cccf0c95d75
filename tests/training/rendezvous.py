#!/usr/bin/env python3
"""What train_ddp.py makes of Slurm's variables, with and without Slurm's tools."""

import os

import train_ddp

LISTS = {
    "gpu01": "gpu01",
    "gpu[03-06,11],login1": "gpu03",
    "rack[2,4]n[07-09]": "rack2n07",
    "a,b[1-2]": "a",
    "node-7.cluster[1-3]": "node-7.cluster1",
}
path = os.environ["PATH"]
for tools in ("without", "with"):
    os.environ["PATH"] = path if tools == "with" else "/nonexistent"
    for text, host in LISTS.items():
        assert train_ddp.first_host(text) == host, (tools, text, train_ddp.first_host(text))

ports = {train_ddp.slurm_port(job, step) for job in range(1, 200) for step in range(4)}
assert len(ports) == 199 * 4 and min(ports) > 1024 and max(ports) < 32768


def seen(**variables):
    for name in list(os.environ):
        if name.startswith(("SLURM_", "MASTER_", "OMPI_")) or name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
            del os.environ[name]
    os.environ.update(variables)
    return train_ddp.rendezvous() + (os.environ["MASTER_ADDR"],)


slurm = {"SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "8", "SLURM_LOCALID": "1", "SLURM_JOB_ID": "77",
         "SLURM_STEP_ID": "0", "SLURM_STEP_NODELIST": "gpu[03-04]", "SLURM_JOB_NODELIST": "gpu[01-04]"}
assert seen(**slurm) == (5, 8, 1, "gpu03")
assert seen(**slurm, MASTER_ADDR="10.0.0.1") == (5, 8, 1, "10.0.0.1")
assert seen(**slurm, RANK="2", WORLD_SIZE="4", LOCAL_RANK="2", MASTER_ADDR="gpu09") == (2, 4, 2, "gpu09")
assert seen() == (0, 1, 0, "127.0.0.1")
# The batch script itself is one task, whatever the job's size.
assert seen(SLURM_PROCID="0", SLURM_JOB_NODELIST="gpu[01-04]", SLURM_JOB_ID="3") == (0, 1, 0, "127.0.0.1")
