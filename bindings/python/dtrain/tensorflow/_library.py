"""libdtrain_tensorflow.so: the ops, and the registry where they find communicators, queues and tables by name.

SPDX-License-Identifier: Apache-2.0
"""
import ctypes
import os
import threading
from typing import Any, Dict

from .. import _dtrain
from .._communicator import Communicator
from .._errors import BusyError, Error, UnsupportedError
from .._gradients import Gradients
from .._handle import Child
from .._table import Table
from ._tensorflow import tf

NAME = "libdtrain_tensorflow.so"
KINDS = {Communicator: 1, Gradients: 2, Table: 3}


def find() -> str:
    """Where the library is: in the package (wheel, build tree), beside libdtrain.so (a prefix of its own), else where
    the loader looks."""
    folders = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        folders += {os.path.dirname(line.split(maxsplit=5)[5].strip()) for line in maps if "/libdtrain.so." in line}
    return next((path for path in (os.path.join(folder, NAME) for folder in folders) if os.path.exists(path)), NAME)


def load() -> Any:
    """(ops, functions) of the library."""
    path = find()
    try:
        ops = tf.load_op_library(path)
    except tf.errors.NotFoundError as error:
        raise ImportError(f"dtrain.tensorflow needs {NAME}, which is in the wheel and in Debian's package "
                          f"dtrain-tensorflow-plugin: {error}") from error
    functions = ctypes.CDLL(path)
    functions.dtrain_tensorflow_problem.restype = ctypes.c_char_p
    functions.dtrain_tensorflow_put.argtypes = [ctypes.c_char_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_uint32,
                                                ctypes.c_uint64]
    functions.dtrain_tensorflow_drop.argtypes = [ctypes.c_char_p]
    problem = functions.dtrain_tensorflow_problem().decode()
    if problem:
        raise ImportError(f"dtrain.tensorflow: {NAME}: {problem}")
    return ops, functions


ops, _functions = load()


class Registered(Child):
    """An object that ops find by name, until it is closed."""

    def __init__(self, thing: Any, name: str) -> None:
        dtype, width = (thing.dtype, thing.width) if isinstance(thing, Table) else (0, 0)
        status = _functions.dtrain_tensorflow_put(name.encode(), KINDS[type(thing)],
                                                  _dtrain.handle_address(thing._handle), dtype, width)
        if status != 0:
            raise error_of(status, f"{name!r} is the name of another object that ops of TensorFlow use")
        super().__init__(thing._context, name, thing)
        self.name = name
        _registered[id(thing)] = self

    def _destroy(self) -> None:
        status = _functions.dtrain_tensorflow_drop(self.name.encode())
        if status != 0:
            raise error_of(status, f"an op of TensorFlow is using {self.name!r}; wait for it first")
        _registered.pop(id(self._maker), None)


_registered: Dict[int, Registered] = {}
_count = 0
_lock = threading.Lock()


def error_of(status: int, text: str) -> Error:
    return BusyError(text) if status == BusyError.status else UnsupportedError(f"{text} (status {status})")


def name_of(thing: Any, name: str = "") -> str:
    """The name by which ops find a communicator, gradient queue or table; registers it at its first use. The same
    on all ranks where they do this in the same order, though nothing depends on it."""
    global _count
    if type(thing) not in KINDS:
        raise TypeError(f"a Communicator, Gradients or Table of dtrain is needed, not {type(thing).__name__}")
    with _lock:
        known = registered(thing)
        if known is not None:
            return str(known.name)
        if not name:
            _count += 1
            name = f"{getattr(thing, 'name', type(thing).__name__.lower())}#{_count}"
        return Registered(thing, name).name


def registered(thing: Any) -> Any:
    """The registration of an object, or None."""
    known = _registered.get(id(thing))
    return known if known is not None and known._maker is thing else None
