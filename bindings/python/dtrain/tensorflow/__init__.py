"""dtrain for TensorFlow and Keras:

    import dtrain.tensorflow as dt
    dt.init()                                                  # the job of TF_CONFIG, dtrain-run, torchrun, mpirun ...
    model.compile(optimizer=dt.DistributedOptimizer(keras.optimizers.Adam()), loss=...)
    model.fit(dt.shard(dataset), callbacks=[dt.BroadcastVariables()])

Collectives and tables of the parameter server are ops of TensorFlow: they run in tf.function and Keras' fit(), and have
gradients (docs/TENSORFLOW.md).

SPDX-License-Identifier: Apache-2.0
"""
from ._operations import allgather, allreduce, alltoall, barrier, broadcast, reducescatter, submit
from ._world import init, initialized, rank, serve, shutdown, size
from . import _gradients  # registers them
from . import _keras  # has compile() of models wrapped
from . import tables
from .callbacks import AverageMetrics, BroadcastVariables
from .data import records, shard
from .embedding import Embedding
from .mirrored import MirroredStrategy
from .optimizer import DistributedOptimizer
from .server_optimizer import ServerOptimizer
from .session import Hook, StopAtStep, TrainingSession
from .strategy import MultiWorkerMirroredStrategy
from .tape import DistributedGradientTape
from .variables import broadcast_variables

__all__ = ["AverageMetrics", "BroadcastVariables", "DistributedGradientTape", "DistributedOptimizer", "Embedding",
           "Hook", "MirroredStrategy", "MultiWorkerMirroredStrategy", "ServerOptimizer", "StopAtStep", "TrainingSession", "allgather",
           "allreduce", "alltoall", "barrier", "broadcast", "broadcast_variables", "init", "initialized", "rank",
           "records", "reducescatter", "serve", "shard", "shutdown", "size", "submit", "tables"]
