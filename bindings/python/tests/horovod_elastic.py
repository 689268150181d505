"""Elastic training with Horovod's API, for test_horovod_elastic.py: a linear model, on samples that each step draws.

Arguments: a folder; what happens: a line of "kill RANK BATCH", "grow", or nothing. What each rank sees is written to
the folder.
SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import pathlib
import signal
import sys
import time

import torch

import dtrain.horovod.torch as hvd

BATCHES, COMMIT_EVERY = 30, 5

folder = pathlib.Path(sys.argv[1])
events = []


def tell(what, **more):
    events.append({"what": what, "rank": hvd.rank(), "size": hvd.size(), **more})
    (folder / f"{os.getpid()}.json").write_text(json.dumps(events), encoding="ascii")


def once(name):
    """True for the first process that asks."""
    try:
        os.close(os.open(folder / name, os.O_CREAT | os.O_EXCL))
        return True
    except FileExistsError:
        return False


hvd.init()
torch.set_num_threads(1)
torch.manual_seed(hvd.rank())
model = torch.nn.Linear(3, 1)
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9),
                                     named_parameters=model.named_parameters())
sampler = hvd.elastic.ElasticSampler(range(1000), shuffle=False)


@hvd.elastic.run
def train(state):
    tell("enters", batch=state.batch, done=sampler.processed_num, seen=[round(x, 6) for x in state.history],
         weights=model.weight.tolist())
    what, rank, batch = (*sys.argv[2:], "", "", "")[:3]
    while state.batch < BATCHES or (what == "grow" and hvd.size() < 3):
        if what == "kill" and state.batch == int(batch) and hvd.rank() == int(rank) and once("killed"):
            os.kill(os.getpid(), signal.SIGKILL)
        optimizer.zero_grad()
        x = torch.randn(4, 3, generator=torch.Generator().manual_seed(state.batch))
        loss = ((model(x) - x.sum(1, keepdim=True)) ** 2).mean()
        loss.backward()
        optimizer.step()
        sampler.record_batch(state.batch, 2)
        state.batch += 1
        state.history = state.history + [float(hvd.allreduce(loss.detach(), name="loss"))]
        time.sleep(0.01)
        if state.batch % COMMIT_EVERY == 0:
            state.commit()
    return state.history


state = hvd.elastic.TorchState(model=model, optimizer=optimizer, sampler=sampler, batch=0, history=[])
state.register_reset_callbacks([lambda: tell("reset", batch=state.batch)])
history = train(state)
tell("ends", history=[round(x, 6) for x in history], weights=model.weight.tolist(), done=sampler.processed_num)
