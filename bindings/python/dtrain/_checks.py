"""Converts arguments for the extension; errors name the parameter.

SPDX-License-Identifier: Apache-2.0
"""
import os
from array import array as Numbers
from typing import Any, Mapping, Union

Path = Union[str, "os.PathLike[str]"]


def kind(value: Any) -> str:
    return type(value).__name__


def numbers(values: Any, name: str) -> Any:
    """Converts a list of counts, displacements or keys to 64-bit integers; arrays stay as they
    are."""
    if not isinstance(values, (list, tuple, range)):
        return values
    try:
        return Numbers("Q", values)
    except (OverflowError, TypeError):  # negative keys keep their bits
        return pack("q", values, name)


def pack(code: str, values: Any, name: str) -> "Numbers[Any]":
    """Makes an array.array with this type code."""
    try:
        return Numbers(code, values)
    except TypeError:
        raise TypeError(f"{name}: a list of numbers is needed, not {kind(values)} like this: "
                        f"{values!r:.60}") from None
    except OverflowError:
        raise ValueError(f"{name}: a number is too large, or below 0") from None


def path_text(path: Any, name: str = "path") -> str:
    try:
        text = os.fspath(path)
    except TypeError:
        raise TypeError(f"{name}: a path is needed, not {kind(path)}") from None
    return os.fsdecode(text)


def check_callable(value: Any, name: str) -> None:
    if value is not None and not callable(value):
        raise TypeError(f"{name}: a function is needed, not {kind(value)}")


def check_mapping(value: Any, name: str) -> None:
    if not isinstance(value, Mapping):
        raise TypeError(f"{name}: a mapping is needed, not {kind(value)}")


def check_kind(value: Any, wanted: type, name: str) -> Any:
    if not isinstance(value, wanted):
        raise TypeError(f"{name}: a {wanted.__name__} is needed, not {kind(value)}")
    return value


def items(values: Any, name: str) -> Any:
    """Makes a list of an iterable."""
    try:
        return list(values)
    except TypeError:
        raise TypeError(f"{name}: a list is needed, not {kind(values)}") from None
