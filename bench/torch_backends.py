#!/usr/bin/env python3
"""torch.distributed over dtrain next to gloo, in turns, in one job: synchronous all-reduces by size, and images per
second of a small convolutional network under DistributedDataParallel, and without it (alone). Medians of all rounds.
usage: torch_backends.py [--ranks N] [--rounds N] [--json FILE]; `./dev bench-torch` runs it

SPDX-License-Identifier: Apache-2.0
"""
import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from multiprocessing import get_context

import torch
import torch.distributed as dist

import dtrain.torch  # noqa: F401  pylint: disable=unused-import

SIZES = {"64 B": (64, 2000), "4 KiB": (4096, 2000), "1 MiB": (1 << 20, 500), "16 MiB": (1 << 24, 20)}
BACKENDS = ("dtrain", "gloo")
BATCH, STEPS = 32, 12
CPU = "CPU per step (ms)"  # of one rank: what a busy machine does not change much
COLUMNS = (*BACKENDS, "library", "posted", "alone")


def network():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Conv2d(3, 32, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
                               torch.nn.Conv2d(32, 64, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
                               torch.nn.Flatten(), torch.nn.Linear(4096, 180), torch.nn.ReLU(), torch.nn.Linear(180, 10))


def time_allreduce(group, size, count):
    """Microseconds of one call."""
    tensor = torch.zeros(size // 4)
    for _ in range(max(count // 10, 2)):
        dist.all_reduce(tensor, group=group)
    dist.barrier()
    begun = time.perf_counter()
    for _ in range(count):
        dist.all_reduce(tensor, group=group)
    return (time.perf_counter() - begun) / count * 1e6


def time_library(count, size, call):
    """The same by dtrain.Communicator, without torch.distributed."""
    world, tensor = dist.group.WORLD.communicator, torch.zeros(size // 4)
    for _ in range(max(count // 10, 2)):
        call(world, tensor)
    dist.barrier()
    begun = time.perf_counter()
    for _ in range(count):
        call(world, tensor)
    return (time.perf_counter() - begun) / count * 1e6


# Blocking calls, and such as torch.distributed makes them: posted, then waited for.
LIBRARY = {"library": lambda world, tensor: world.allreduce(tensor),
           "posted": lambda world, tensor: world.start.allreduce(tensor).wait()}


def time_training(model, group):
    """Images per second of all ranks, and milliseconds of this rank's processor for each step."""
    images, labels = torch.randn(BATCH, 3, 32, 32), torch.randint(0, 10, (BATCH,))
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    dist.barrier()
    begun, used = time.perf_counter(), time.process_time()
    for _ in range(STEPS):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
    used = time.process_time() - used
    return BATCH * STEPS * dist.get_world_size(group) / (time.perf_counter() - begun), used / STEPS * 1e3


def measure(rank, size, path, rounds, pipe):
    torch.set_num_threads(1)
    dist.init_process_group("dtrain", store=dist.FileStore(path, size), rank=rank, world_size=size)
    groups = {"dtrain": dist.group.WORLD, "gloo": dist.new_group(backend="gloo")}
    models = {name: torch.nn.parallel.DistributedDataParallel(network(), process_group=group)
              for name, group in groups.items()}
    models["alone"] = network()
    found = {}
    for _ in range(rounds):
        for what, (length, count) in SIZES.items():
            for name, group in groups.items():
                found.setdefault(f"{what}, {name}", []).append(time_allreduce(group, length, count))
            for name, call in LIBRARY.items():
                found.setdefault(f"{what}, {name}", []).append(time_library(count, length, call))
        for name, model in models.items():
            images, used = time_training(model, groups.get(name))
            found.setdefault(f"images/s, {name}", []).append(images)
            found.setdefault(f"{CPU}, {name}", []).append(used)
    if rank == 0:
        pipe.send(found)
    dist.barrier()
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", help="file for all figures")
    wanted = parser.parse_args()
    context = get_context("fork")
    receiver, sender = context.Pipe(False)
    with tempfile.TemporaryDirectory() as folder:
        ranks = [context.Process(target=measure, args=(rank, wanted.ranks, os.path.join(folder, "store"), wanted.rounds,
                                                       sender)) for rank in range(wanted.ranks)]
        for rank in ranks:
            rank.start()
        sender.close()
        try:
            found = receiver.recv()
        except EOFError:
            sys.exit("rank 0 has failed")
        for rank in ranks:
            rank.join()
    print(f"torch {torch.__version__}, {wanted.ranks} ranks, medians of {wanted.rounds} rounds; load at the end "
          f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(" " * 28 + "".join(f"{name:>12}" for name in COLUMNS))
    for what in [*SIZES, "images/s", CPU]:
        row = "".join(f"{statistics.median(found[f'{what}, {name}']):12.1f}" if f"{what}, {name}" in found else " " * 12
                      for name in COLUMNS).rstrip()
        print(f"{'all-reduce ' + what + ' (us)' if what in SIZES else 'DDP, ' + what:28}{row}")
    if wanted.json:
        with open(wanted.json, "w", encoding="utf-8") as file:
            json.dump(found, file)


if __name__ == "__main__":
    main()
