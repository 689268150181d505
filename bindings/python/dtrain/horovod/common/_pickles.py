"""Objects as bytes, for broadcast_object() and allgather_object() of all frameworks.

SPDX-License-Identifier: Apache-2.0
"""
import importlib
import io
import pickle
from typing import Any


def pickler() -> Any:
    """cloudpickle, as in Horovod, where it is installed: it takes functions and classes of the program, too."""
    try:
        return importlib.import_module("cloudpickle")
    except ImportError:
        return pickle


def dumped(value: Any) -> bytes:
    held = io.BytesIO()
    pickler().dump(value, held)
    return held.getvalue()


def loaded(data: Any) -> Any:
    return pickle.loads(bytes(data))
