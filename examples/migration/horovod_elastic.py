#!/usr/bin/env python3
"""Handwritten digits with Horovod's elastic API: workers may be lost, and others may come.

    dtrain-run --elastic 2:4 -n 2 -- python3 examples/migration/horovod_elastic.py [--lose BATCH]

SPDX-License-Identifier: Apache-2.0
"""
import argparse
import os
import signal
import sys

import torch
from torch import nn

import dtrain.horovod.torch as hvd  # was: import horovod.torch as hvd
from digits_data import load

EPOCHS, BATCH, RATE, COMMIT_EVERY = 16, 32, 0.05, 5

parser = argparse.ArgumentParser()
parser.add_argument("--lose", type=int, metavar="BATCH", help="rank 1 of the first workers dies in this batch")
wanted = parser.parse_args()


class Digits(torch.utils.data.Dataset):
    def __init__(self, pattern):
        images, labels = load(pattern)
        self.images = torch.tensor(images, dtype=torch.float32).view(-1, 1, 8, 8) / 16
        self.labels = torch.tensor(labels)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.images[index], self.labels[index]


hvd.init()
torch.set_num_threads(1)
first = "new" not in os.environ.get("DTRAIN_RANK", "")
model = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 10))
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=RATE, momentum=0.9),
                                     named_parameters=model.named_parameters())
data = Digits("train-*.tfrecord")
sampler = hvd.elastic.ElasticSampler(data)
loader = torch.utils.data.DataLoader(data, batch_size=BATCH, sampler=sampler)


@hvd.elastic.run
def train(state):
    while state.epoch < EPOCHS:
        for images, labels in loader:  # what this epoch has left
            if first and state.batch == wanted.lose and hvd.rank() == 1 and hvd.size() > 1:
                os.kill(os.getpid(), signal.SIGKILL)
            state.optimizer.zero_grad()
            nn.functional.cross_entropy(state.model(images), labels).backward()
            state.optimizer.step()
            sampler.record_batch(state.batch, BATCH)
            state.batch += 1
            if state.batch % COMMIT_EVERY == 0:
                state.commit()
        state.epoch += 1
        sampler.set_epoch(state.epoch)
        state.commit()


state = hvd.elastic.TorchState(model=model, optimizer=optimizer, sampler=sampler, epoch=0, batch=0)
state.register_reset_callbacks([lambda: print(f"goes on with {hvd.size()} workers at batch {state.batch}", flush=True)])
train(state)

test = Digits("test.tfrecord")
accuracy = (model(test.images).argmax(1) == test.labels).float().mean().item()
if hvd.rank() == 0:
    print(f"{hvd.size()} ranks, {100 * accuracy:.1f} % of the test set")
if accuracy < 0.95:
    sys.exit("that is less than 95 %")
