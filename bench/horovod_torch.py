#!/usr/bin/env python3
"""Horovod's API for torch: operations by name, and steps of a small network with DistributedOptimizer. The same program
measures Horovod itself, where that is installed. Medians of all rounds, in microseconds.
usage: dtrain-run -n 2 -- horovod_torch.py [--module horovod.torch] [--rounds N] [--json FILE]

SPDX-License-Identifier: Apache-2.0
"""
import argparse
import importlib
import json
import statistics
import time

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--module", default="dtrain.horovod.torch")
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--json", metavar="FILE")
wanted = parser.parse_args()
hvd = importlib.import_module(wanted.module)


def network():
    torch.manual_seed(1)
    layers = [nn.Flatten(), nn.Linear(64, 128), nn.ReLU()]
    for _ in range(20):
        layers += [nn.Linear(128, 128), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(128, 10))


class Program:
    def __init__(self):
        self.small, self.large = torch.ones(16), torch.ones(1 << 18)
        self.many = [torch.ones(4096) for _ in range(100)]
        self.model = network()
        self.optimizer = hvd.DistributedOptimizer(torch.optim.SGD(self.model.parameters(), lr=1e-4),
                                                  named_parameters=self.model.named_parameters())
        self.images, self.labels = torch.randn(16, 64), torch.randint(0, 10, (16,))

    def reduce_many(self):
        for handle in [hvd.allreduce_async_(one, name=f"many {i}", op=hvd.Sum) for i, one in enumerate(self.many)]:
            hvd.synchronize(handle)

    def step(self):
        self.optimizer.zero_grad()
        nn.functional.cross_entropy(self.model(self.images), self.labels).backward()
        self.optimizer.step()


program = None
#: (what, how often in a round, a call)
CASES = (
    ("allreduce_ of 64 B, named", 200, lambda: hvd.allreduce_(program.small, name="small", op=hvd.Sum)),
    ("allreduce_ of 64 B, without a name", 200, lambda: hvd.allreduce_(program.small, op=hvd.Sum)),
    ("allreduce_ of 1 MiB, named", 50, lambda: hvd.allreduce_(program.large, name="large", op=hvd.Sum)),
    ("100 allreduce_async_ of 16 KiB, and synchronize", 20, lambda: program.reduce_many()),
    ("allgather of 64 B, named", 100, lambda: hvd.allgather(program.small, name="gather")),
    ("broadcast_ of 64 B, named", 100, lambda: hvd.broadcast_(program.small, 0, name="broadcast")),
    ("a step of 44 tensors with DistributedOptimizer", 20, lambda: program.step()),
)


def microseconds(call, count):
    for _ in range(max(count // 10, 2)):
        call()
    hvd.allreduce(torch.ones(1))
    begun = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - begun) / count * 1e6


hvd.init()
torch.set_num_threads(1)
program = Program()
rounds = [[microseconds(call, count) for _, count, call in CASES] for _ in range(wanted.rounds)]
found = {what: round(statistics.median(times), 1) for (what, _, _), times in zip(CASES, zip(*rounds))}
if hvd.rank() == 0:
    for what, value in found.items():
        print(f"{what:50} {value:10.1f} us")
    if wanted.json:
        with open(wanted.json, "w", encoding="utf-8") as file:
            json.dump({"module": wanted.module, "ranks": hvd.size(), "microseconds": found}, file, indent=1)
hvd.shutdown()
