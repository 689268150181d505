"""The program loads CUDA after it has made its context and its communicator.

SPDX-License-Identifier: Apache-2.0
"""
from array import array

import dtrain


def refused(world, x, text):
    try:
        world.allreduce(x)
    except dtrain.UnsupportedError as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"taken: {x}")


class Claim:
    """Says that it is on a GPU."""

    def __init__(self, stream):
        self.__cuda_array_interface__ = {"version": 3, "shape": (4,), "typestr": "<f4", "data": (1 << 40, False),
                                         "stream": stream}


with dtrain.Context() as context, dtrain.Context(accelerators="none") as without:
    world, alone = context.world, without.join(size=1, rank=0)
    world.allreduce(array("f", [1]))
    refused(world, Claim(None), "the program has not loaded libcuda.so.1")
    refused(world, Claim(1), "this process has not loaded libcuda.so.1")
    import gpu_arrays  # loads it
    for make in (gpu_arrays.Interface, gpu_arrays.Exporter):
        x = make(array("f", [1, 2]))
        world.using(postscale=2.0).allreduce(x)
        assert list(x.values()) == [2, 4], x.values()
        refused(alone, x, 'the option accelerators is "none"')
    assert context.describe()["accelerators"][0]["used"]
