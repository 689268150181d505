"""Parameters of the C API from keywords.

SPDX-License-Identifier: Apache-2.0
"""
from typing import Any, Dict, Mapping

from . import _dtrain
from ._constants import Consistency, DType, Initial, Op, Placement, Rule
from ._durations import nanoseconds
from ._names import find

DURATIONS = {"timeout": "timeout_ns", "every": "every_ns", "cycle": "cycle_ns",
             "stall_warn": "stall_warn_ns", "stall_fail": "stall_fail_ns"}
ENUMERATIONS: Dict[str, Any] = {
    "rule": Rule, "consistency": Consistency, "aggregate": Op, "dtype": DType,
    "storage_dtype": DType, "wire_dtype": DType, "distribution": Initial, "placement": Placement}


def fill(params: Any, settings: Mapping[str, Any]) -> Any:
    """Settings by the names of the struct's fields, durations without their "_ns". None means the
    default."""
    for name, value in settings.items():
        if value is None:
            continue
        if name in DURATIONS:
            name, value = DURATIONS[name], nanoseconds(value, name)
        elif name in ENUMERATIONS:
            value = find(ENUMERATIONS[name], value, name)
        setattr(params, name, value)
    return params


def check_names(settings: Mapping[str, Any], allowed: Mapping[str, Any], where: str = "") -> None:
    for name in settings:
        if name not in allowed:
            raise TypeError(f"there is no parameter {name!r}{where}")


def operation(settings: Mapping[str, Any], queue: Any = None, tag: int = 0) -> Any:
    """dtrain_op_params_t; None where it would say nothing."""
    if not settings and queue is None:
        return None
    params = fill(_dtrain.dtrain_op_params_t(), settings)
    if queue is not None:
        params.cq = queue
        params.user_tag = tag
    return params
