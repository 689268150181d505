"""Converts keyword arguments to parameter structs of the C API.

SPDX-License-Identifier: Apache-2.0
"""
from typing import Any, Dict, Mapping

from . import _dtrain
from ._constants import (Consistency, DType, Initial, MeanOver, NotFinite, Op, Placement, Rule,
                         Schedule, Steps, TableMemory)
from ._durations import nanoseconds
from ._errors import InvalidError
from ._names import find

DURATIONS = {"timeout": "timeout_ns", "every": "every_ns", "cycle": "cycle_ns",
             "stall_warn": "stall_warn_ns", "stall_fail": "stall_fail_ns"}
ENUMERATIONS: Dict[str, Any] = {
    "rule": Rule, "consistency": Consistency, "aggregate": Op, "dtype": DType,
    "storage_dtype": DType, "wire_dtype": DType, "distribution": Initial, "placement": Placement,
    "not_finite": NotFinite, "steps": Steps, "mean_over": MeanOver, "schedule": Schedule,
    "memory": TableMemory}
#: The bits of numbers that have a default: with its bit a number counts even if it is 0.
GIVEN = {name: getattr(_dtrain, "DTRAIN_GIVEN_" + name.upper()) for name in (
    "learning_rate", "momentum", "beta1", "beta2", "epsilon", "rho", "trust", "ftrl_beta",
    "compensation", "accumulator")}
#: For other numbers 0 means the default in the C API; in Python None does, so 0 is refused.
POSITIVE = frozenset((
    "weight", "size", "bucket_bytes", "block", "rows", "ratio", "shards", "max_record", "max_bytes",
    "min_size", "max_size", "virtual_nodes", "placement_block", "key_count", "split_bytes"))
FACTORS = {"prescale": 1.0, "postscale": 1.0}


def fill(params: Any, settings: Mapping[str, Any]) -> Any:
    """Sets fields of params by name, durations without their "_ns". Only None means the default."""
    for name, value in settings.items():
        if value is None:
            continue
        if name in DURATIONS:
            name, value = DURATIONS[name], nanoseconds(value, name)
        elif name in ENUMERATIONS:
            value = find(ENUMERATIONS[name], value, name)
        elif name in GIVEN:
            params.given |= GIVEN[name]
        elif name == "stream":
            params.stream_type = _dtrain.DTRAIN_STREAM_CUDA
        setattr(params, name, value)
        if name in POSITIVE:
            check_positive(getattr(params, name), name)
    return params


def check_positive(value: Any, name: str) -> None:
    if value == 0:
        raise InvalidError(f"{name}: 0; it must be more than 0, or None")


def check_names(settings: Mapping[str, Any], allowed: Mapping[str, Any], where: str = "") -> None:
    for name in settings:
        if name not in allowed:
            raise TypeError(f"there is no parameter {name!r}{where}")


def operation(settings: Mapping[str, Any], queue: Any = None, tag: int = 0) -> Any:
    """Makes dtrain_op_params_t; None if there is nothing to set."""
    if not settings and queue is None:
        return None
    params = _dtrain.dtrain_op_params_t()
    if any(settings.get(name) is not None for name in FACTORS):
        fill(params, FACTORS)
        params.flags = _dtrain.DTRAIN_OP_FACTORS
    fill(params, {**settings, "flags": params.flags | settings.get("flags", 0)})
    if queue is not None:
        params.cq = queue
        params.user_tag = tag
    return params
