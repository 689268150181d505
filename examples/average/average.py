# SPDX-License-Identifier: Apache-2.0
import dtrain
import numpy

with dtrain.Context() as context:
    world = context.world  # who am I: the environment
    gradient = numpy.array([1, world.rank], "f4")
    world.allreduce(gradient, op="avg")  # in place
    print(f"rank {world.rank} of {world.size}: {gradient[1]:g}")
