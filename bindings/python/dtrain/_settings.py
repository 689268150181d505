"""Types of the settings of tables. Their names are those of dtrain_table_params_t, which documents
them.

SPDX-License-Identifier: Apache-2.0
"""
from typing import Any, Callable, Iterable, Sequence, TypedDict, Union

from ._constants import (Compression, Consistency, DType, Initial, MeanOver, NotFinite, Op,
                         Placement, Rule, Schedule, Steps, TableMemory, Topology)

# A name ("sum", "adagrad", "bfloat16"; upper or lower case), or the constant.
DTypeLike = Union[DType, int, str, Any]  #: or a dtype of NumPy or torch
OpLike = Union[Op, int, str]
RuleLike = Union[Rule, int, str]
ConsistencyLike = Union[Consistency, int, str]
InitialLike = Union[Initial, int, str]
PlacementLike = Union[Placement, int, str]
NotFiniteLike = Union[NotFinite, int, str]
StepsLike = Union[Steps, int, str]
MeanOverLike = Union[MeanOver, int, str]
ScheduleLike = Union[Schedule, int, str]
TableMemoryLike = Union[TableMemory, int, str]
CompressionLike = Union[Compression, int, str]
TopologyLike = Union[Topology, int, str]
StreamLike = Any  #: a handle, torch.cuda.Stream, or an object with __cuda_stream__; None: no stream
PlaceFunction = Callable[[int, int, int], int]  #: (first, count, servers) -> server


class RuleSettings(TypedDict, total=False):
    rule: RuleLike
    learning_rate: float
    momentum: float
    beta1: float
    beta2: float
    epsilon: float
    rho: float
    clip_value: float
    clip_norm: float
    weight_decay: float
    l1: float
    l2: float
    trust: float
    ftrl_beta: float
    accumulator: float


class Segment(RuleSettings, total=False):
    """Columns [first, first + count) of each row, updated by a separate rule."""
    first: int
    count: int


class ConsistencySettings(TypedDict, total=False):
    consistency: ConsistencyLike
    staleness: int
    quorum: int
    reproducible: Union[bool, int]


class TableSettings(RuleSettings, ConsistencySettings, total=False):
    length: int
    dim: int
    aggregate: OpLike
    initial: float
    row_length: int
    compensation: float
    distribution: InitialLike
    spread: float
    seed: int
    max_bytes: int
    function: str
    segments: Iterable[Segment]
    storage_dtype: DTypeLike
    wire_dtype: DTypeLike
    not_finite: NotFiniteLike
    steps: StepsLike
    mean_over: MeanOverLike
    schedule: ScheduleLike
    warmup_steps: int
    decay_steps: int
    decay: float
    memory: TableMemoryLike
    placement: PlacementLike
    virtual_nodes: int
    placement_block: int
    key_count: int
    split_bytes: int
    weights: Sequence[int]
    place: PlaceFunction
