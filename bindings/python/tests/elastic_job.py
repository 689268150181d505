"""A job whose processes come and go, for tests of launchers: it takes steps until a file is there.

SPDX-License-Identifier: Apache-2.0
"""
import os
import time
from array import array

import dtrain

GOES_ON, REFORMS, ENDS = range(3)


def train(folder, pause=0.002):
    """Steps until the folder has the file "end". Returns the steps, whether their sum is right, the size at the end, and
    how the last generation came to be."""
    with dtrain.Context() as context:
        world = context.world
        state = array("q", [0, 0])  # steps done, the sum of what they have brought
        world.broadcast(state)  # newcomers begin with it; the others call it after each reform
        say(world)
        while True:
            try:
                what = array("i", [ENDS if os.path.exists(f"{folder}/end") else REFORMS if world.newcomers else GOES_ON])
                world.allreduce(what, op="max")
                if what[0] == ENDS:
                    break
                brought = array("q", [state[0]])
                world.allreduce(brought, op="max")
                state = array("q", [state[0] + 1, state[1] + brought[0]])
                if what[0] == GOES_ON:
                    time.sleep(pause)
                    continue
            except dtrain.PeerError as error:
                print("lost:", error)
            last, world = world, world.reform(min_size=1)
            last.close()
            world.broadcast(state)  # who has done less or more than rank 0 follows it
            say(world)
        steps = state[0]
        return {"steps": steps, "right": state[1] == steps * (steps - 1) // 2, "size": world.size, "changes": world.changes}


def say(world):
    print(f"rank {world.rank} of {world.size} in generation {world.changes.get('generation', 0)}")


def fail():
    raise ZeroDivisionError("a planted fault")


def fail_as_a_newcomer(folder):
    if os.environ["DTRAIN_RANK"] == "new" or os.path.exists(f"{folder}/fail"):
        fail()
    return train(folder)
