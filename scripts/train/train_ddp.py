#!/usr/bin/env python3
"""Trains a small image classifier with DistributedDataParallel, one process a GPU (or a CPU core).

Runs under srun (SLURM_* variables), torchrun (RANK, WORLD_SIZE, MASTER_ADDR), mpirun inside an
allocation (OMPI_COMM_WORLD_*), or alone. NCCL carries the gradients where there are GPUs, gloo where
there are none. The data set is made on the spot, the same on every rank. Rank 0 prints the mean loss
of every epoch; the exit status is 1 when the loss did not fall.
"""

import argparse
import datetime
import os
import re
import socket
import subprocess
import sys
import time
import zlib

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

SIZE = 16  # pixels along an edge
CLASSES = ("horizontal bar", "vertical bar", "falling diagonal", "rising diagonal", "frame", "blob")


def make_dataset(count, seed):
    """Returns `count` noisy pictures of six shapes at random places, and their class numbers."""
    random = torch.Generator().manual_seed(seed)
    labels = torch.randint(len(CLASSES), (count,), generator=random)
    place = torch.randint(3, SIZE - 3, (count, 2), generator=random)
    row = torch.arange(SIZE).view(1, SIZE, 1)
    column = torch.arange(SIZE).view(1, 1, SIZE)
    y, x = place[:, 0].view(-1, 1, 1), place[:, 1].view(-1, 1, 1)
    from_y, from_x = (row - y).abs(), (column - x).abs()
    shapes = torch.stack([
        (from_y <= 0).expand(count, SIZE, SIZE),
        (from_x <= 0).expand(count, SIZE, SIZE),
        (row - y) == (column - x),
        (row - y) == (x - column),
        torch.maximum(from_y, from_x) == 2,
        (from_y + from_x) <= 2,
    ], dim=1).float()
    pictures = shapes[torch.arange(count), labels].unsqueeze(1)
    noise = 0.5 * torch.randn(pictures.shape, generator=random)
    return TensorDataset(pictures + noise, labels)


def make_model():
    return nn.Sequential(
        nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveMaxPool2d(2),
        nn.Flatten(), nn.Linear(128, len(CLASSES)))


def first_host(node_list):
    """The first host of a Slurm node list such as "gpu[03-06,11],login1"."""
    try:
        names = subprocess.run(["scontrol", "show", "hostnames", node_list], check=True, text=True,
                               stdin=subprocess.DEVNULL, capture_output=True, timeout=20)
        return names.stdout.split()[0]
    except (OSError, subprocess.SubprocessError, IndexError):
        # A container seldom has Slurm's tools; a first host needs only the first of each bracket.
        return re.sub(r"\[(\w+)[^\]]*\]", r"\1", re.match(r"(?:[^,\[]|\[[^\]]*\])+", node_list)[0])


def slurm_port(job, step):
    """A port that two steps side by side do not share, below the range of ephemeral ports."""
    return 12000 + (int(job) * 16 + int(step)) % 20000


def rendezvous():
    """Sets what init_process_group reads from the environment; returns rank, world size, local rank."""
    env = os.environ
    if "RANK" in env and "WORLD_SIZE" in env:  # torchrun, or set by hand
        names = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
    elif "OMPI_COMM_WORLD_RANK" in env:
        names = ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK")
    elif "SLURM_PROCID" in env and int(env.get("SLURM_STEP_NUM_TASKS", 1)) > 1:
        names = ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID")
    else:
        names = ()
    rank, world, local = (int(env.get(name, 0)) for name in names) if names else (0, 1, 0)
    if "MASTER_ADDR" not in env:
        nodes = env.get("SLURM_STEP_NODELIST") if names[:1] == ("SLURM_PROCID",) else None
        nodes = nodes or env.get("SLURM_JOB_NODELIST") or env.get("SLURM_STEP_NODELIST")
        env["MASTER_ADDR"] = first_host(nodes) if nodes and world > 1 else "127.0.0.1"
    if "MASTER_PORT" not in env:
        env["MASTER_PORT"] = str(slurm_port(env.get("SLURM_JOB_ID", os.getppid()),
                                            env.get("SLURM_STEP_ID", 0)))
    env["RANK"], env["WORLD_SIZE"], env["LOCAL_RANK"] = str(rank), str(world), str(local)
    return rank, world, local


def choose_device(local_rank):
    """The rank's own GPU: device LOCAL_RANK where all are visible, the only one where one is."""
    if not torch.cuda.is_available():
        return torch.device("cpu")
    device = torch.device("cuda", local_rank % torch.cuda.device_count())
    torch.cuda.set_device(device)
    return device


def what_was_given(device):
    """One line on this rank: where it runs and what its environment says about GPU, HCA and tuner."""
    cores = ",".join(str(core) for core in sorted(os.sched_getaffinity(0)))
    told = " ".join(f"{name}={os.environ[name]}" for name in ("CUDA_VISIBLE_DEVICES", "UCX_NET_DEVICES")
                    if name in os.environ)
    profile = os.environ.get("RDMA_TUNE_PROFILE")
    tuned = f"profile {zlib.crc32(profile.encode()):08x}" if profile else "no profile"
    return f"{socket.gethostname()}, {device}, cores {cores}, {told or 'nothing set'}, {tuned}"


def train(arguments, rank, world, local):
    device = choose_device(local)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo",
                            timeout=datetime.timedelta(seconds=arguments.timeout))
    if arguments.show_ranks:
        lines = [None] * world
        dist.all_gather_object(lines, what_was_given(device))
        if rank == 0:
            for number, line in enumerate(lines):
                print(f"rank {number}: {line}", flush=True)

    torch.manual_seed(1)
    data = make_dataset(arguments.samples, seed=2)
    sampler = DistributedSampler(data, world, rank, seed=3)
    loader = DataLoader(data, batch_size=arguments.batch, sampler=sampler)
    model = DistributedDataParallel(make_model().to(device),
                                    device_ids=[device.index] if device.type == "cuda" else None)
    optimizer = torch.optim.Adam(model.parameters(), lr=arguments.rate)
    measure = nn.CrossEntropyLoss()

    losses = []
    for epoch in range(arguments.epochs):
        start = time.monotonic()
        sampler.set_epoch(epoch)
        totals = torch.zeros(3, device=device)  # loss, right answers, pictures
        for pictures, labels in loader:
            pictures, labels = pictures.to(device), labels.to(device)
            answers = model(pictures)
            loss = measure(answers, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            right = (answers.argmax(1) == labels).sum()
            totals += torch.stack([loss.detach() * len(labels), right, torch.tensor(len(labels), device=device)])
        dist.all_reduce(totals)
        losses.append((totals[0] / totals[2]).item())
        if rank == 0:
            print(f"epoch {epoch + 1}: loss {losses[-1]:.4f}, {100 * (totals[1] / totals[2]).item():.1f} % right, "
                  f"{time.monotonic() - start:.2f} s, {world} ranks on {device.type}", flush=True)
    dist.barrier()
    dist.destroy_process_group()
    return losses


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--samples", type=int, default=4096, help="pictures in the data set")
    parser.add_argument("--batch", type=int, default=32, help="pictures per step and rank")
    parser.add_argument("--rate", type=float, default=2e-3, help="Adam's learning rate")
    parser.add_argument("--timeout", type=float, default=120, help="seconds that a rank waits for the others")
    parser.add_argument("--show-ranks", action="store_true", help="print what each rank was given")
    arguments = parser.parse_args()
    if arguments.epochs < 2:
        parser.error("a loss can only fall over two epochs or more")
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", 1)))

    rank, world, local = rendezvous()
    losses = train(arguments, rank, world, local)
    fell = losses[-1] < 0.9 * losses[0]
    if rank == 0:
        word = "fell" if fell else "did not fall"
        print(f"the loss {word}: {losses[0]:.4f} -> {losses[-1]:.4f}", flush=True)
    return 0 if fell else 1


if __name__ == "__main__":
    sys.exit(main())
