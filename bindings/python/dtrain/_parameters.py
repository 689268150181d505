"""Parameters of the C API from keywords.

SPDX-License-Identifier: Apache-2.0
"""
from typing import Any, Optional

from . import _dtrain

FOREVER = -1


def nanoseconds(seconds: Optional[float]) -> int:
    """As the C API takes time-outs: None is the option's (0), infinity none at all (< 0)."""
    if seconds is None:
        return 0
    if seconds == float("inf"):
        return FOREVER
    if not seconds > 0:
        raise ValueError(f"a timeout of {seconds} s; it is more than 0, or None")
    return max(1, int(seconds * 1e9))


def fill(params: Any, settings: dict) -> Any:
    """Settings by the names of the struct's fields; timeout in seconds. None means the default."""
    for name, value in settings.items():
        if value is None:
            continue
        if name == "timeout":
            params.timeout_ns = nanoseconds(value)
        elif hasattr(type(params), name) and name not in ("struct_size", "this", "thisown"):
            setattr(params, name, value)
        else:
            raise TypeError(f"there is no parameter {name!r}")
    return params


def operation(settings: dict, queue: Any = None, tag: int = 0) -> Any:
    """dtrain_op_params_t; None where it would say nothing."""
    if not settings and queue is None:
        return None
    params = fill(_dtrain.dtrain_op_params_t(), settings)
    if queue is not None:
        params.cq = queue
        params.user_tag = tag
    return params
