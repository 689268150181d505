"""A rank of a job that torchrun starts again after a failure. In the first attempt rank 1 is killed between two
all-reduces. If there are two more, rank 2 is killed in the second one before it joins, and all attempts meet at one
store, which is a file of the program.
usage: torch_restarted.py LAST (the number of the attempt that succeeds); environment: FOLDER

SPDX-License-Identifier: Apache-2.0
"""
import os
import signal
import sys

import torch
import torch.distributed as dist

import dtrain.torch  # noqa: F401  pylint: disable=unused-import

LAST = int(sys.argv[1])
attempt, rank, size = (int(os.environ[name]) for name in ("TORCHELASTIC_RESTART_COUNT", "RANK", "WORLD_SIZE"))


def die():
    os.kill(os.getpid(), signal.SIGKILL)


if LAST == 1:
    dist.init_process_group("dtrain")
else:
    if attempt == 1 and rank == 2:
        die()
    dist.init_process_group("dtrain", store=dist.FileStore(os.path.join(os.environ["FOLDER"], "store"), size),
                            rank=rank, world_size=size)
pair = dist.new_group([0, 1])
for step in range(5):
    if (attempt, rank, step) == (0, 1, 3):
        die()
    tensor = torch.tensor([float(attempt)])
    dist.all_reduce(tensor)
    assert tensor.item() == size * attempt, tensor
    if rank < 2:
        dist.barrier(group=pair)
assert attempt == LAST, attempt
print(f"attempt {attempt} is good", flush=True)
dist.destroy_process_group()
