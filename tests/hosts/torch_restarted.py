"""A rank of a job that torchrun starts again after a failure. In the first attempt rank 1 is killed between two
all-reduces. "file": the attempts meet at one store, which is a file of the program, and in the second one the last rank is
killed before it joins.
usage: torch_restarted.py env|file; environment: FOLDER

SPDX-License-Identifier: Apache-2.0
"""
import datetime
import os
import pathlib
import signal
import sys

import torch
import torch.distributed as dist

import dtrain.torch  # noqa: F401  pylint: disable=unused-import

FOLDER = pathlib.Path(os.environ["FOLDER"])
STEP, JOIN = FOLDER / "killed-at-a-step", FOLDER / "killed-before-it-joined"
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def die(marker):
    """Once."""
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)


LIMIT = datetime.timedelta(seconds=100)
if sys.argv[1] == "env":
    dist.init_process_group("dtrain", timeout=LIMIT)
else:
    if rank == size - 1 and STEP.exists():
        die(JOIN)
    dist.init_process_group("dtrain", store=dist.FileStore(str(FOLDER / "store"), size), rank=rank, world_size=size,
                            timeout=LIMIT)
pair = dist.new_group([0, 1])
for step in range(5):
    if rank == 1 and step == 3:
        die(STEP)
    tensor = torch.tensor([step + 1.0])
    dist.all_reduce(tensor)
    assert tensor.item() == size * (step + 1), tensor
    if rank < 2:
        dist.barrier(group=pair)
assert STEP.exists() and (sys.argv[1] == "env" or JOIN.exists())
print("this attempt is good", flush=True)
dist.destroy_process_group()
