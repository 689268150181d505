"""All-reduce and a parameter server in one library, for Python.

    with dtrain.Context() as context:
        world = context.world            # the job that the environment names
        world.allreduce(gradient, op=dtrain.AVG)

dtrain-run, torchrun, or another launcher that sets the ranks starts the processes.
SPDX-License-Identifier: Apache-2.0
"""
from ._constants import (ADASUM, ANY_RANK, AVG, BAND, BF16, BOR, BXOR, F16, F32, F64, I8, I16, I32,
                         I64, MAX, MIN, PROD, SUM, U8, U16, U32, U64, Compression, Consistency, DType,
                         Initial, MeanOver, NotFinite, Op, Placement, Rule, Schedule, Steps,
                         TableMemory, Topology)
from ._arrays import typed
from ._errors import (AbortedError, AuthError, BusyError, CanceledError, ConfigError, CorruptError,
                      DeviceError, Error, FencedError, InternalError, InvalidError, IoError,
                      LimitError, MismatchError, NoMemoryError, NotFoundError, PeerError,
                      StateError, TimeoutError, TransportError, TruncatedError, UnsupportedError,
                      VersionError)
from ._request import Request, Result
from ._table import (State, Table, newest_checkpoint, restore_checkpoint, save_checkpoint,
                     wait_checkpoint)
from ._memory import DeviceMemory, Memory, Registration
from ._norms import clip_by_global_norm
from ._gradients import Gradients
from ._compressor import Compressor
from ._graph import Graph
from ._records import RecordReader, RecordWriter
from ._server import Server, server_weights
from ._communicator import Communicator
from ._context import Context, describe_join, describe_options, role, version

__version__ = version()
__all__ = [
    "ADASUM", "ANY_RANK", "AVG", "AbortedError", "AuthError", "BAND", "BF16", "BOR", "BXOR", "BusyError",
    "CanceledError", "Communicator", "Compression", "Compressor", "ConfigError", "Consistency",
    "Context", "CorruptError", "DType", "DeviceError", "DeviceMemory", "Error", "F16", "F32", "F64", "FencedError",
    "Gradients", "Graph", "I16", "I32", "I64", "I8", "Initial", "InternalError", "InvalidError",
    "IoError", "LimitError", "MAX", "MIN", "MeanOver", "Memory", "MismatchError", "NoMemoryError",
    "NotFinite", "NotFoundError", "Op", "PROD", "PeerError", "Placement", "RecordReader", "RecordWriter",
    "Registration", "Request", "Result", "Rule", "SUM", "Schedule", "Server", "State", "StateError",
    "Steps", "Table", "TableMemory", "TimeoutError", "Topology", "TransportError", "TruncatedError", "U16", "U32",
    "U64", "U8", "UnsupportedError", "VersionError", "clip_by_global_norm", "describe_join",
    "describe_options", "newest_checkpoint", "restore_checkpoint", "role", "save_checkpoint",
    "server_weights", "typed", "version", "wait_checkpoint"]
