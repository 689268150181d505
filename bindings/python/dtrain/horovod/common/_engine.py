"""The operations of one process set: ranks submit them by name, in any order, and they run in one order on all ranks.

The gradient queue of the set says when all ranks have submitted a name, in the same order on all of them. For an
operation whose name and shape are known it reduces the tensor itself, together with others. For all other operations it
adds up a token, one number for each rank. Then the engine's thread compares what the ranks want and runs the operation.
SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
import hashlib
import threading
from array import array
from collections import Counter
from typing import Any, Callable, Counter as CounterOf, Dict, List, Mapping, Optional, Sequence, Tuple

from ... import _dtrain
from ..._communicator import Communicator
from ..._constants import Op
from ..._errors import BusyError, Error
from ..._parameters import operation
from ..._ways import AWAITED, START
from ._call import Call
from ._request import WORDS, Request, check, decode, encode, ranks_text
from .exceptions import HorovodInternalError, RefusedError

DEPTH = 1 << 14  #: of the completion queue
SLICE_NS = 100_000_000  #: of the thread's waits
LONGEST_NAME = 250  #: bytes; the gradient queue takes 255
MOST_KNOWN = 1 << 16  #: names of which the shape is remembered
ZEROS = (Op.SUM, Op.AVG)  #: ops for which a rank in join() has a neutral contribution
AGAIN = "\x1f"  #: ends the name of a tensor that is reduced after its token, because a rank has joined


class Engine:
    """All ranks of comm, which is its own, make one alike. ranks: how the program numbers the ranks of comm."""

    def __init__(self, comm: Communicator, ranks: Sequence[int], settings: Mapping[str, Any]) -> None:
        self.comm = comm
        self.ranks = list(ranks)
        self.queue = comm.gradients(**settings)
        self._cq = _dtrain.dtrain_cq_create(comm._context._handle, DEPTH)
        self._params = operation({}, self._cq)
        self.mark: Callable[[str], None] = nothing  #: of the timeline, called with the name of each operation
        self._counts: CounterOf[str] = Counter()  # of operations without a name, by kind
        self._joins = 0
        self._known: Dict[str, Request] = {}  # what all ranks have agreed on, equal on all ranks
        self._running: Dict[str, Call] = {}  # calls with tokens, by name
        self._tokens: Dict[int, Call] = {}  # those whose token is in flight, by the address of its request
        self._changed = threading.Condition()
        self._closing = False
        self._thread: Optional[threading.Thread] = None

    # ---- submitting ----

    def submit(self, call: Call) -> None:
        """Starts the call. Errors of this rank alone are raised, all others belong to the call."""
        request = call.request
        call.ranks = self.ranks
        with self._changed:
            call.name = self._full_name(request.kind, call.name)
            self.mark(call.name)
            if self._closing:
                raise HorovodInternalError(f"{call.name}: Horovod has been shut down")
            if call.name in self._running:
                raise duplicate(call.name)
            known = self._known.get(call.name)
            try:
                if known is not None and known == request and call.array is not None:
                    self._reduce(call)
                else:
                    self._negotiate(call)
            except BusyError:
                raise duplicate(call.name) from None
            except Error as error:
                raise call.unwell(error) from error

    def joined(self) -> None:
        """All ranks have joined. Those that did so early have missed operations without a name."""
        with self._changed:
            self._joins += 1
            self._counts.clear()

    def _full_name(self, kind: str, name: str) -> str:
        if not name:
            self._counts[kind] += 1
            after = f".{self._joins}" if self._joins else ""
            return f"{kind}.noname{after}.{self._counts[kind]}"
        full = f"{kind}.{name}"
        raw = full.encode()
        if len(raw) <= LONGEST_NAME and "\x00" not in full:
            return full
        return f"{raw[:100].decode(errors='ignore').replace(chr(0), ' ')}...{hashlib.sha1(raw).hexdigest()}"

    def _reduce(self, call: Call) -> None:
        call.direct = _dtrain.dtrain_gradients_submit(self.queue._handle, call.name, call.array, call.out, call.op,
                                                      AWAITED if call.awaited else None, START)

    def _negotiate(self, call: Call) -> None:
        call.presence = array("Q", bytes(8 * len(self.ranks)))
        call.presence[self.comm.rank] = 1
        call.token = _dtrain.dtrain_gradients_submit(self.queue._handle, call.name, call.presence, None, Op.SUM,
                                                     self._params, START)
        self._running[call.name] = call
        self._tokens[_dtrain.request_address(call.token)] = call
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="dtrain.horovod", daemon=True)
            self._thread.start()
        self._changed.notify()

    # ---- the thread ----

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._tokens and not self._closing:
                    self._changed.wait()
                if not self._tokens:
                    return
            for address in _dtrain.poll_requests(self._cq, SLICE_NS):
                with self._changed:
                    call = self._tokens.pop(address)
                self._end(call, self._carry_out(call))

    def _carry_out(self, call: Call) -> Optional[BaseException]:
        try:
            _dtrain.request_result(call.token)
            assert call.presence is not None
            missing = [rank for rank, there in zip(self.ranks, call.presence) if not there]
            if missing:
                self._without(call, missing)
            elif call.request.kind != "barrier":
                self._together(call)
        except (Error, RefusedError) as error:
            return error
        except BaseException as error:  # pylint: disable=broad-except
            self.comm.abort(f"{call.name}: {type(error).__name__} on this rank alone: {error}")
            return error
        return None

    def _end(self, call: Call, error: Optional[BaseException]) -> None:
        with self._changed:
            del self._running[call.name]
            request = call.request
            if error is None and call.given and call.array is not None and len(self._known) < MOST_KNOWN and (
                    call.presence is not None and all(call.presence)):
                self._known[call.name] = request
        call.end(error)

    def _together(self, call: Call) -> None:
        mine = encode(call.request)
        found = array("q", bytes(8 * WORDS * len(self.ranks)))
        self.comm.allgather(mine, found)
        requests = [decode(found, rank) for rank in range(len(self.ranks))]
        check(call.name, requests, self.ranks)
        call.run(self.comm, requests)

    def _without(self, call: Call, missing: List[int]) -> None:
        if call.array is None or call.request.kind != "allreduce" or call.op not in ZEROS:
            raise RefusedError(f"{call.name}: {ranks_text(missing)} called join(); until all have, only allreduce with "
                               "Sum and Average can run without them")
        self.queue.submit(call.name + AGAIN, call.array, call.out, call.op)

    # ---- the end ----

    def close(self) -> None:
        """Everything that has not begun on all ranks ends with an error, here and there."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        try:
            self.queue.close()
        except BusyError:  # the thread, or one in join(), waits for ranks that have not submitted a tensor
            self.comm.abort("this rank has called shutdown() during an operation")
            self._wait_for_thread()
            self.queue.close()
        self._wait_for_thread()
        _dtrain.dtrain_cq_destroy(self._cq)
        self.comm.close()

    def _wait_for_thread(self) -> None:
        if self._thread is not None:
            self._thread.join()


def nothing(_: str) -> None:
    """No timeline is written."""


def duplicate(name: str) -> RefusedError:
    return RefusedError(f"{name}: an operation with the same name is in flight on this rank; synchronize it first, or "
                        "give another name")


def groups_of(ranks: Sequence[Tuple[str, int]]) -> Dict[str, List[int]]:
    """The ranks of each host, from all (host, rank)."""
    found: Dict[str, List[int]] = {}
    for host, rank in ranks:
        found.setdefault(host, []).append(rank)
    return found
