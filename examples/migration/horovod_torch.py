#!/usr/bin/env python3
"""Handwritten digits with Horovod's API. Each rank has its own samples, and as many batches as these make.

    dtrain-run -n 2 -- python3 examples/migration/horovod_torch.py

SPDX-License-Identifier: Apache-2.0
"""
import sys

import torch
from torch import nn

import dtrain.horovod.torch as hvd  # was: import horovod.torch as hvd
from digits_data import load

EPOCHS, BATCH, RATE = 20, 32, 0.05


def tensors(pattern, shard=0, shards=1):
    images, labels = load(pattern, shard, shards)
    return torch.tensor(images, dtype=torch.float32).view(-1, 1, 8, 8) / 16, torch.tensor(labels)


hvd.init()
torch.set_num_threads(1)
torch.manual_seed(hvd.rank())
images, labels = tensors("train-*.tfrecord", hvd.rank(), hvd.size())
if hvd.rank() == 0:
    images, labels = images[:-2 * BATCH], labels[:-2 * BATCH]  # two batches fewer than the others

model = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(256, 64),
                      nn.Tanh(), nn.Linear(64, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=0.9)
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
hvd.broadcast_optimizer_state(optimizer, root_rank=0)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())

for epoch in range(EPOCHS):
    for batch in torch.randperm(len(labels)).split(BATCH):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images[batch]), labels[batch]).backward()
        optimizer.step()
    last = hvd.join()  # ranks that have no batch left wait here, and contribute zeros
    hvd.broadcast_parameters(model.state_dict(), root_rank=last)  # that rank has made every step

images, labels = tensors("test.tfrecord", hvd.rank(), hvd.size())
right = (model(images).argmax(1) == labels).float().sum()
counts = hvd.allreduce(torch.stack([right, torch.tensor(float(len(labels)))]), name="accuracy", op=hvd.Sum)
accuracy = (counts[0] / counts[1]).item()
if hvd.rank() == 0:
    print(f"{hvd.size()} ranks, {100 * accuracy:.1f} % of the test set")
hvd.shutdown()
if accuracy < 0.95:
    sys.exit("that is less than 95 %")
