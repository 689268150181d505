"""Norms of arrays on this worker.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
from typing import Any, Iterable

from . import _dtrain
from ._checks import items, kind
from ._collectives import Array


def clip_by_global_norm(arrays: Iterable[Array], max_norm: float) -> float:
    """Scales arrays of f32, f64, f16 and bf16, such as the gradients of all tables, in place, so
    that their common L2 norm is at most max_norm; returns the norm before that. If an array has a
    NaN or an infinity, raises an InvalidError and changes nothing."""
    if is_array(arrays):
        raise TypeError(f"arrays: a list of arrays is needed, not {kind(arrays)}")
    return _dtrain.dtrain_clip_by_global_norm(items(arrays, "arrays"), max_norm)


def is_array(value: Any) -> bool:
    """Whether value is an array: as a list of arrays it would be taken row by row."""
    if any(hasattr(value, name) for name in (
            "__dlpack__", "__array_interface__", "__cuda_array_interface__")):
        return True
    try:
        memoryview(value).release()
    except TypeError:
        return False
    return True
