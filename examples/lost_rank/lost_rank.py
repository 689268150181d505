"""The last rank of a job dies half-way, and the others go on without it: README.md tells how.

SPDX-License-Identifier: Apache-2.0
"""
import os
import signal
from array import array

import dtrain

STEPS, STEPS_OF_THE_LAST_RANK, LENGTH = 100, 50, 1000


class Model:
    """What is trained, and how many steps of it are done."""

    def __init__(self):
        self.step = 0
        self.weights = array("f", [0] * LENGTH)

    def train(self, world, share):
        """The share stands for the gradient of this rank's data: computed anew when a step is done
        again. The model changes only once the sum is complete."""
        gradient = array("f", [share] * LENGTH)
        world.allreduce(gradient)
        self.weights = array("f", map(sum, zip(self.weights, gradient)))
        self.step += 1

    def agree(self, world):
        """One rank may have done a step that failed on another: all take the model of the one that
        came furthest. Before the first step all begin alike by this."""
        furthest = array("q", [self.step * world.size + world.rank])
        world.allreduce(furthest, op=dtrain.MAX)
        step, root = divmod(furthest[0], world.size)
        taken = array("f", self.weights)  # this may fail, too, and leave anything in its array
        world.broadcast(taken, root=root)
        self.step, self.weights = step, taken


with dtrain.Context() as context:
    world, model, agreed = context.world, Model(), False
    own_rank, last = world.rank, world.size - 1
    while model.step < STEPS:
        if own_rank == last and model.step == STEPS_OF_THE_LAST_RANK:
            os.kill(os.getpid(), signal.SIGKILL)
        # quoted: when a rank dies
        try:
            if not agreed:
                model.agree(world)  # on the step to go on from
            agreed = True
            model.train(world, own_rank + 1)
        except (dtrain.PeerError, dtrain.AbortedError, dtrain.TimeoutError) as error:
            smaller = world.shrink()  # all who are left call it
            if smaller.size == world.size:  # nobody is lost
                raise
            for rank in world.failed:
                print(f"rank {rank} is lost: {error}")
            world.close()
            world, agreed = smaller, False
        # quoted so far
    print(f"rank {world.rank} of {world.size}: {model.step} steps, weight {model.weights[-1]:.1f}")
