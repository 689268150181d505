"""Handles: numbers for operations in flight.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
import threading
from typing import Any, Dict, List

from ..common.exceptions import HorovodInternalError
from ..common.process_sets import ProcessSet, engine_of

Calls = Any  #: a call, or a list of them

_calls: Dict[int, Calls] = {}
_lock = threading.Lock()
_last = 0


def start(call: Any, process_set: ProcessSet) -> int:
    """Submits one operation."""
    engine_of(process_set).submit(call)
    return keep(call)


def run(call: Any, process_set: ProcessSet) -> Any:
    """Submits one operation and waits for it."""
    call.awaited = True
    engine_of(process_set).submit(call)
    return outcome(call)


def start_group(calls: List[Any], process_set: ProcessSet) -> int:
    """Submits several, for one handle."""
    engine = engine_of(process_set)
    for call in calls:
        engine.submit(call)
    return keep(calls)


def keep(calls: Calls) -> int:
    global _last
    with _lock:
        _last += 1
        _calls[_last] = calls
        return _last


def poll(handle: int) -> bool:
    """Whether the operation has ended: then synchronize() does not block."""
    try:
        calls = _calls[handle]
    except KeyError:
        raise ValueError(f"poll: there is no operation with handle {handle}, or it has been synchronized") from None
    return all(call.ended() for call in (calls if isinstance(calls, list) else [calls]))


def synchronize(handle: int) -> Any:
    """Waits for the operation, and returns its result: a tensor, or several. Raises its error. None: the handle is not
    known, or was synchronized before."""
    calls = _calls.get(handle)
    if calls is None:
        return None
    try:
        outputs = outcome(calls)
    except Exception:
        _calls.pop(handle, None)
        raise
    _calls.pop(handle, None)  # Ctrl-C has only ended the wait
    return outputs


def outcome(calls: Calls) -> Any:
    if not isinstance(calls, list):
        calls.wait()
        return calls.output
    errors: List[HorovodInternalError] = []
    for call in calls:  # all of them, so that none is in flight when the buffers are gone
        try:
            call.wait()
        except HorovodInternalError as error:
            errors.append(error)
    if errors:
        raise errors[0]
    return tuple(call.output for call in calls)


def forget() -> None:
    """Of a job that has ended."""
    _calls.clear()
