"""A job whose processes come and go, for tests of launchers: it takes steps until a file is there.

SPDX-License-Identifier: Apache-2.0
"""
import os
import time
from array import array

import dtrain

GOES_ON, REFORMS, ENDS = range(3)


def say(world):
    print(f"rank {world.rank} of {world.size} in generation {world.changes.get('generation', 0)}")


def train(folder, tell=say, pause=0.002):
    """Steps until the folder has the file "end"; tell(world) is called for each generation. Returns the steps, whether
    their sum is right, the size at the end, and how the last generation came to be."""
    with dtrain.Context() as context:
        world, state, fresh = context.world, array("q", [0, 0]), True  # steps done, the sum of what they have brought
        while True:
            try:
                if fresh:
                    world.broadcast(state)  # newcomers begin here; others may have done a step more or less than rank 0
                    tell(world)
                what = array("i", [ENDS if os.path.exists(f"{folder}/end") else REFORMS if world.newcomers else GOES_ON])
                world.allreduce(what, op="max")
                if what[0] == ENDS:
                    break
                brought = array("q", [state[0]])
                world.allreduce(brought, op="max")
                state = array("q", [state[0] + 1, state[1] + brought[0]])
                fresh = what[0] == REFORMS
            except dtrain.PeerError as error:
                print("lost:", error)
                fresh = True
            if fresh:
                last, world = world, world.reform(min_size=1)
                last.close()
            time.sleep(pause)
        steps = state[0]
        return {"steps": steps, "right": state[1] == steps * (steps - 1) // 2, "size": world.size, "changes": world.changes}


def fail():
    raise ZeroDivisionError("a planted fault")


def fail_once(folder, rank):
    """As this rank, before it has joined; then it trains."""
    if os.environ["DTRAIN_RANK"] == str(rank) and not os.path.exists(f"{folder}/failed"):
        open(f"{folder}/failed", "w").close()
        fail()
    return train(folder)


def fail_as_a_newcomer(folder):
    if os.environ["DTRAIN_RANK"] == "new" or os.path.exists(f"{folder}/fail"):
        fail()
    return train(folder)
