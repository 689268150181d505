"""What both forms of the backend have in common: posting operations of a group, and its end.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
from contextlib import nullcontext
from datetime import timedelta
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from .. import _dtrain
from .._communicator import Communicator
from .._errors import StateError
from .._parameters import operation
from .._ways import BLOCK, START
from ._errors import DtrainError, translated
from ._job import Job
from ._tensors import all_of
from ._torch import OLD, UNSET, Tensor, torch
from ._work import Work

profiling: Any = torch.autograd._profiler_enabled
Finish = Optional[Callable[[], Any]]
Factor = Optional[float]


def only(tensors: Any, name: str) -> Any:
    """The tensor of a list of one. Longer lists are those of processes with several GPUs."""
    if isinstance(tensors, Tensor):
        return tensors
    if len(tensors) != 1:
        raise ValueError(f"{name}: dtrain takes one tensor, not {len(tensors)}: each process has one device, the CPU")
    return tensors[0]


class Group:
    """Posts operations on the communicator of a group."""

    _name = ""

    def _open(self, job: Job, comm: Communicator, timeout: timedelta) -> None:
        job.enter()
        self._job: Optional[Job] = job
        self._comm = comm
        self._handle = comm._handle
        self._context = job.context._handle
        self._marks: Dict[str, str] = {}
        self._timeout = timeout
        self._completions = job.completions
        self._params: Dict[Tuple[Any, Factor, bool], Any] = {}
        self._done = Work("an operation that has ended", (), [], None, job.completions)
        self._sequence = 0  # of calls
        self._kept: Dict[int, Work] = {}
        self._together: Optional[List[Work]] = None  # the works since start_coalescing()

    @property
    def communicator(self) -> Communicator:
        """The dtrain.Communicator under this group, for what torch.distributed has no function for. Its calls and
        those of the group have one order, the same on all ranks."""
        return self._comm

    def _params_of(self, timeout: Any, factor: Factor, waiting: bool) -> Any:
        key = (timeout, factor, waiting)
        params = self._params.get(key)
        if params is None:
            limit = self._timeout if timeout is None or timeout == UNSET or not timeout else timeout
            settings: Dict[str, Any] = {"timeout": limit, "prescale": factor}
            if waiting:
                params = operation({**settings, "flags": _dtrain.DTRAIN_OP_AWAITED})
            else:
                params = operation(settings, self._completions.queue)
            self._params[key] = params
        return params

    def _start(self, function: Any, arguments: Sequence[Any], timeout: Any = None, factor: Factor = None) -> Any:
        """A request."""
        try:
            request = function(self._handle, *arguments, self._params_of(timeout, factor, False), START)
        except Exception as error:
            raise self._explained(error) from error
        self._completions.posted()
        return request

    def _run(self, what: str, function: Any, arguments: Sequence[Any], timeout: Any = None, factor: Factor = None) -> Any:
        """Runs an operation to its end."""
        try:
            return function(self._handle, *arguments, self._params_of(timeout, factor, True), BLOCK)
        except Exception as error:
            raise self._explained(error, what) from error

    def _mark(self, what: str) -> None:
        """Gives the library's timeline torch's name of a call, and of its group; the library's record follows."""
        mark = self._marks.get(what)
        if mark is None:
            mark = self._marks[what] = f"torch: {what}, group {self._name}"
        try:
            _dtrain.dtrain_timeline_mark(self._context, mark)
        except Exception as error:
            raise self._explained(error) from error

    def _recorded(self, what: str) -> Any:
        """In `with`: a call for the timeline, and for torch's profiler."""
        self._mark(what)
        return torch.autograd.profiler.record_function(f"dtrain:{what}") if profiling() else nullcontext()

    def _post(self, what: str, function: Any, arguments: Sequence[Any], tensors: Any, finish: Finish = None,
              opts: Any = None, factor: Factor = None) -> Work:
        """One operation, whose outcome is `tensors`."""
        self._mark(what)
        if not profiling():
            return self._post_one(what, function, arguments, tensors, finish, opts, factor)
        with torch.autograd.profiler.record_function(f"dtrain:{what}"):
            return self._post_one(what, function, arguments, tensors, finish, opts, factor)

    def _post_one(self, what: str, function: Any, arguments: Sequence[Any], tensors: Any, finish: Finish,
                  opts: Any, factor: Factor) -> Work:
        """A caller that waits at once (torch tells since 2.7) needs no request."""
        self._sequence += 1
        timeout = getattr(opts, "timeout", None)
        if self._together is not None or getattr(opts, "asyncOp", True):
            arrays = [one for one in arguments if isinstance(one, Tensor)]
            return self._made(Work(what, (self._start(function, arguments, timeout, factor),), tensors, finish,
                                   self._completions, arrays))
        self._run(what, function, arguments, timeout, factor)
        if finish is not None:
            finish()
        return self._done

    def _post_all(self, what: str, calls: Sequence[Tuple[Any, Sequence[Any]]], tensors: Any, finish: Finish = None,
                  opts: Any = None, factor: Factor = None) -> Work:
        """Several operations as one work."""
        with self._recorded(what):
            return self._post_several(what, calls, tensors, finish, opts, factor)

    def _post_several(self, what: str, calls: Sequence[Tuple[Any, Sequence[Any]]], tensors: Any, finish: Finish,
                      opts: Any, factor: Factor) -> Work:
        self._sequence += 1
        timeout = getattr(opts, "timeout", None)
        requests = tuple(self._start(function, arguments, timeout, factor) for function, arguments in calls)
        arrays = [one for _, arguments in calls for one in arguments if isinstance(one, Tensor)]
        return self._made(Work(what, requests, tensors, finish, self._completions, arrays))

    def _ended(self, what: str, tensors: Any) -> Work:
        """The work of what was done at once."""
        return self._made(Work(what, (), tensors, None, self._completions))

    def _made(self, work: Work) -> Work:
        if OLD:
            work.keep(self._kept)
        if self._together is not None:
            self._together.append(work)
        return work

    def start_coalescing(self, *_: Any) -> None:
        """Operations run as before, but what end_coalescing() returns stands for all of them."""
        self._together = []

    def end_coalescing(self, *_: Any) -> Work:
        works, self._together = self._together or [], None
        return Work("coalesced operations", tuple(request for work in works for request in work.requests), [],
                    all_of(*(work.wait for work in works)), self._completions)

    supports_coalescing = True
    _start_coalescing, _end_coalescing = start_coalescing, end_coalescing

    def _set_sequence_number_for_group(self) -> None:
        self._sequence = 0

    def _get_sequence_number_for_group(self) -> int:
        return self._sequence

    def _explained(self, error: Exception, what: str = "") -> Exception:
        job = self._job
        if job is None or isinstance(error, StateError):
            if job is not None and not job.here:
                return DtrainError("dtrain: this process was forked from one of the group (by a DataLoader with workers?) "
                                   "and is none of its ranks; it must not use the group")
            return DtrainError(f"dtrain: the process group has been destroyed ({error})")
        return translated(error, what)

    def abort(self) -> None:
        """Ends the operations of the group on all ranks, with an error. Never waits."""
        if self._job is not None and self._job.here and not self._comm.closed:
            self._comm.abort(f"rank {self._comm.rank} called abort() of its process group")

    def shutdown(self) -> None:
        """Leaves the group. Its operations in flight end with an error."""
        job, self._job = self._job, None
        if job is None or not job.here:
            return
        if self._comm is not job.world:
            self._comm.close()
        job.leave()

    def __del__(self) -> None:
        if getattr(self, "_job", None) is not None:
            self.shutdown()


def flattened(lists: Sequence[Sequence[Any]]) -> List[Any]:
    return [tensor for tensors in lists for tensor in tensors]
