"""The ways to run an operation: blocking, with a request, or prepared for many starts; each with or
without parameters. Classes of operations define each operation once and call _run().

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
from asyncio import _get_running_loop
from functools import partial
from typing import Any, Mapping

from . import _dtrain, _streams
from ._handle import Uncopied
from ._parameters import operation
from ._request import Request

BLOCK, START, PREPARE = 0, 1, 2
AWAITED = operation({"flags": _dtrain.DTRAIN_OP_AWAITED})  #: blocks in a wait that Ctrl-C can end


def runner(handle: Any, params: Any = AWAITED) -> Any:
    """_run() for blocking calls: (function, *arguments) -> function(handle, *arguments, params,
    BLOCK)."""
    return partial(_dtrain.call_operation, handle, params, BLOCK)


class Way(Uncopied):
    """Runs operations of the object `owner` with these parameters of dtrain_op_params_t."""

    def __init__(self, owner: Any, settings: Mapping[str, Any]) -> None:
        self._owner = owner
        self._settings = settings
        self._params = operation(settings)
        self._stream = settings.get("stream")


class Blocking(Way):
    def __init__(self, owner: Any, settings: Mapping[str, Any]) -> None:
        super().__init__(owner, {**settings, "flags": _dtrain.DTRAIN_OP_AWAITED})
        self._run = runner(owner._handle, self._params)
        if self._stream is not None:
            self._run = partial(_streams.on, self._stream, self._run)


class Started(Way):
    def _run(self, function: Any, *arguments: Any) -> Request:
        if self._stream is not None and _streams.calling.stream != self._stream:
            return _streams.on(self._stream, self._run, function, *arguments)
        handle = self._owner._handle
        loop = _get_running_loop()
        if loop is None or handle is None:
            return Request(function(handle, *arguments, self._params, START))
        reactor = self._owner._context._reactor(loop)
        tag = reactor.next_tag()
        params = operation(self._settings, reactor.queue, tag)
        return reactor.watch(tag, function(handle, *arguments, params, START))


class Prepared(Way):
    def __init__(self, owner: Any, settings: Mapping[str, Any]) -> None:
        super().__init__(owner, {**settings, "flags": _dtrain.DTRAIN_OP_PERSISTENT})

    def _run(self, function: Any, *arguments: Any) -> Request:
        if self._stream is not None and _streams.calling.stream != self._stream:
            return _streams.on(self._stream, self._run, function, *arguments)
        return Request(function(self._owner._handle, *arguments, self._params, PREPARE))
