"""Constants of the C API, read from the extension module.

SPDX-License-Identifier: Apache-2.0
"""
import enum

from . import _dtrain


class DType(enum.IntEnum):
    """Types of elements."""
    F32 = _dtrain.DTRAIN_F32
    F64 = _dtrain.DTRAIN_F64
    F16 = _dtrain.DTRAIN_F16
    BF16 = _dtrain.DTRAIN_BF16
    I8 = _dtrain.DTRAIN_I8
    U8 = _dtrain.DTRAIN_U8
    I16 = _dtrain.DTRAIN_I16
    U16 = _dtrain.DTRAIN_U16
    I32 = _dtrain.DTRAIN_I32
    U32 = _dtrain.DTRAIN_U32
    I64 = _dtrain.DTRAIN_I64
    U64 = _dtrain.DTRAIN_U64


class Op(enum.IntEnum):
    """Operations of reductions. AVG of integers is exact, rounded toward zero; B* are bitwise, for
    integers; ADASUM (all-reduce of floating types) averages gradients that agree and adds
    orthogonal ones."""
    SUM = _dtrain.DTRAIN_SUM
    AVG = _dtrain.DTRAIN_AVG
    PROD = _dtrain.DTRAIN_PROD
    MIN = _dtrain.DTRAIN_MIN
    MAX = _dtrain.DTRAIN_MAX
    BAND = _dtrain.DTRAIN_BAND
    BOR = _dtrain.DTRAIN_BOR
    BXOR = _dtrain.DTRAIN_BXOR
    ADASUM = _dtrain.DTRAIN_ADASUM


F32, F64, F16, BF16 = DType.F32, DType.F64, DType.F16, DType.BF16
I8, U8, I16, U16 = DType.I8, DType.U8, DType.I16, DType.U16
I32, U32, I64, U64 = DType.I32, DType.U32, DType.I64, DType.U64
SUM, AVG, PROD, MIN, MAX = Op.SUM, Op.AVG, Op.PROD, Op.MIN, Op.MAX
BAND, BOR, BXOR, ADASUM = Op.BAND, Op.BOR, Op.BXOR, Op.ADASUM
ITEM_BYTES = {F32: 4, F64: 8, F16: 2, BF16: 2, I8: 1, U8: 1, I16: 2, U16: 2, I32: 4, U32: 4, I64: 8,
              U64: 8}
ANY_RANK: int = _dtrain.DTRAIN_ANY_RANK


class Rule(enum.IntEnum):
    """Update rules: what a push does to a table's values."""
    # from dtrain.h, by ./dev generate
    ADD = _dtrain.DTRAIN_RULE_ADD
    ASSIGN = _dtrain.DTRAIN_RULE_ASSIGN
    SGD = _dtrain.DTRAIN_RULE_SGD
    MOMENTUM = _dtrain.DTRAIN_RULE_MOMENTUM
    ADAGRAD = _dtrain.DTRAIN_RULE_ADAGRAD
    ADAM = _dtrain.DTRAIN_RULE_ADAM
    MEAN = _dtrain.DTRAIN_RULE_MEAN
    MIN = _dtrain.DTRAIN_RULE_MIN
    MAX = _dtrain.DTRAIN_RULE_MAX
    NESTEROV = _dtrain.DTRAIN_RULE_NESTEROV
    ADAGRAD_ROWS = _dtrain.DTRAIN_RULE_ADAGRAD_ROWS
    RMSPROP = _dtrain.DTRAIN_RULE_RMSPROP
    ADADELTA = _dtrain.DTRAIN_RULE_ADADELTA
    ADAMW = _dtrain.DTRAIN_RULE_ADAMW
    AMSGRAD = _dtrain.DTRAIN_RULE_AMSGRAD
    FTRL = _dtrain.DTRAIN_RULE_FTRL
    LARS = _dtrain.DTRAIN_RULE_LARS
    LAMB = _dtrain.DTRAIN_RULE_LAMB
    DC_SGD = _dtrain.DTRAIN_RULE_DC_SGD
    FUNCTION = _dtrain.DTRAIN_RULE_FUNCTION
    # the end of what is generated


class Compression(enum.IntEnum):
    """How an all-reduce is compressed (docs/COMPRESSION.md)."""
    # from dtrain.h, by ./dev generate
    F16 = _dtrain.DTRAIN_COMPRESS_F16
    BF16 = _dtrain.DTRAIN_COMPRESS_BF16
    INT8 = _dtrain.DTRAIN_COMPRESS_INT8
    TOPK = _dtrain.DTRAIN_COMPRESS_TOPK
    ONEBIT = _dtrain.DTRAIN_COMPRESS_ONEBIT
    POWERSGD = _dtrain.DTRAIN_COMPRESS_POWERSGD
    # the end of what is generated


class Topology(enum.IntEnum):
    """Which ranks average with which (docs/DECENTRALIZED.md)."""
    RING = _dtrain.DTRAIN_GRAPH_RING
    GRID = _dtrain.DTRAIN_GRAPH_GRID
    EXPONENTIAL = _dtrain.DTRAIN_GRAPH_EXPONENTIAL
    FULL = _dtrain.DTRAIN_GRAPH_FULL
    CUSTOM = _dtrain.DTRAIN_GRAPH_CUSTOM


class Consistency(enum.IntEnum):
    """When pushes are applied, and what pulls see."""
    ASYNC = _dtrain.DTRAIN_ASYNC
    BSP = _dtrain.DTRAIN_BSP
    SSP = _dtrain.DTRAIN_SSP
    QUORUM = _dtrain.DTRAIN_QUORUM


class Initial(enum.IntEnum):
    """What a row of a sparse table holds before its first push."""
    CONSTANT = _dtrain.DTRAIN_INITIAL_CONSTANT
    UNIFORM = _dtrain.DTRAIN_INITIAL_UNIFORM
    NORMAL = _dtrain.DTRAIN_INITIAL_NORMAL


class NotFinite(enum.IntEnum):
    """How a push that contains a NaN or an infinity is treated."""
    TAKE = _dtrain.DTRAIN_NOT_FINITE_TAKE
    REFUSE = _dtrain.DTRAIN_NOT_FINITE_REFUSE
    DROP = _dtrain.DTRAIN_NOT_FINITE_DROP


class Steps(enum.IntEnum):
    """The count of updates that rules use: one per element or row, or one for the table, as in the
    optimizers of torch and Keras."""
    OWN = _dtrain.DTRAIN_STEPS_OWN
    TABLE = _dtrain.DTRAIN_STEPS_TABLE


class MeanOver(enum.IntEnum):
    """The workers that the mean of aggregate="avg" counts: all of them, or for each row those that
    have pushed it."""
    WORKERS = _dtrain.DTRAIN_MEAN_WORKERS
    PUSHERS = _dtrain.DTRAIN_MEAN_PUSHERS


class TableMemory(enum.IntEnum):
    """Where servers keep a table: in their host memory, or in that of a GPU."""
    HOST = _dtrain.DTRAIN_MEM_HOST
    CUDA = _dtrain.DTRAIN_MEM_CUDA


class Schedule(enum.IntEnum):
    """The learning rate as a function of the update's number, after the warmup."""
    CONSTANT = _dtrain.DTRAIN_SCHEDULE_CONSTANT
    LINEAR = _dtrain.DTRAIN_SCHEDULE_LINEAR
    COSINE = _dtrain.DTRAIN_SCHEDULE_COSINE
    EXPONENTIAL = _dtrain.DTRAIN_SCHEDULE_EXPONENTIAL
    STAIRCASE = _dtrain.DTRAIN_SCHEDULE_STAIRCASE
    INVERSE_SQRT = _dtrain.DTRAIN_SCHEDULE_INVERSE_SQRT


class Placement(enum.IntEnum):
    """Which servers hold the parts of a table."""
    RANGE = _dtrain.DTRAIN_PLACE_RANGE
    HASH = _dtrain.DTRAIN_PLACE_HASH
    CONSISTENT = _dtrain.DTRAIN_PLACE_CONSISTENT
    ROUND_ROBIN = _dtrain.DTRAIN_PLACE_ROUND_ROBIN
    GREEDY = _dtrain.DTRAIN_PLACE_GREEDY
    USER = _dtrain.DTRAIN_PLACE_USER
