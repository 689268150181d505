"""Where the processes of a data service and of a training find each other: a service that knows who serves, and its
clients. Both sides prove that they know a key, and messages are JSON, so a stranger can neither ask nor answer.

SPDX-License-Identifier: Apache-2.0
"""
import hashlib
import hmac
import json
import os
import socket
import struct
import threading
import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from ...launch._agent import listen, own_address
from .exceptions import HorovodInternalError

Addresses = Mapping[str, Sequence[Tuple[str, int]]]

MOST_BYTES = 1 << 16  #: of a message
MOST_CONNECTIONS = 4096  #: at a time
PATIENCE = 10.0  #: seconds for a connection, and for a message of a peer that is there
NONCE_BYTES, DIGEST_BYTES = 32, hashlib.sha256().digest_size
LENGTH = struct.Struct("!I")
KINDS = {kind.__name__: kind for kind in (IndexError, TimeoutError, ValueError)}


class Channel:
    """Messages over a connection, signed with the key and a number that the service drew for this connection."""

    def __init__(self, connection: socket.socket, key: bytes, nonce: bytes) -> None:
        self.connection, self._key, self._nonce = connection, key, nonce

    def _signature(self, side: bytes, body: bytes) -> bytes:
        return hmac.digest(self._key, side + self._nonce + body, "sha256")

    def send(self, side: bytes, message: Mapping[str, Any]) -> None:
        body = json.dumps(message).encode()
        self.connection.sendall(LENGTH.pack(len(body)) + self._signature(side, body) + body)

    def receive(self, side: bytes) -> Dict[str, Any]:
        length, = LENGTH.unpack(exactly(self.connection, LENGTH.size))
        if length > MOST_BYTES:
            raise ConnectionError(f"a message of {length} bytes; {MOST_BYTES} are the most")
        signature = exactly(self.connection, DIGEST_BYTES)
        body = exactly(self.connection, length)
        if not hmac.compare_digest(signature, self._signature(side, body)):
            raise ConnectionError("a message that is not signed with the key of the data service's configuration")
        found = json.loads(body)
        if not isinstance(found, dict):
            raise ConnectionError("a message that is no object")
        return found


def exactly(connection: socket.socket, length: int) -> bytes:
    found = bytearray()
    while len(found) < length:
        part = connection.recv(length - len(found))
        if not part:
            raise ConnectionError("the connection has ended")
        found += part
    return bytes(found)


class ComputeService:
    """Knows the dispatchers of a data service and their workers, from its creation until shutdown()."""

    def __init__(self, dispatchers: int, workers_per_dispatcher: int, key: bytes) -> None:
        for name, value in (("dispatchers", dispatchers), ("workers_per_dispatcher", workers_per_dispatcher)):
            if value <= 0:
                raise ValueError(f"{name}: {value}; at least 1 is needed")
        self._dispatchers: List[Optional[str]] = [None] * dispatchers
        self._workers: List[Set[int]] = [set() for _ in range(dispatchers)]
        self._workers_needed = workers_per_dispatcher
        self._key = key
        self._changed = threading.Condition()
        self._ended = False
        self._connections: Set[threading.Thread] = set()
        self._listener = listen("")
        threading.Thread(target=self._accept, name="dtrain.compute", daemon=True).start()

    def addresses(self) -> Addresses:
        """Where it listens: for other hosts, and for this one."""
        port = self._listener.getsockname()[1]
        return {"network": [(own_address(), port)], "loopback": [("127.0.0.1", port)]}

    def shutdown(self) -> None:
        """Tells the processes that wait for this, and ends."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()
            waiting = list(self._connections)
        self._listener.close()
        deadline = time.monotonic() + PATIENCE
        for thread in waiting:
            if thread is not threading.current_thread():
                thread.join(max(deadline - time.monotonic(), 0))

    # ---- connections ----

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                if self._ended:
                    return
                time.sleep(0.1)  # out of file descriptors, say
                continue
            with self._changed:
                if self._ended or len(self._connections) >= MOST_CONNECTIONS:
                    connection.close()
                    continue
                thread = threading.Thread(target=self._serve, args=(connection,), name="dtrain.compute", daemon=True)
                self._connections.add(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            try:
                connection.settimeout(PATIENCE)
                nonce = os.urandom(NONCE_BYTES)
                connection.sendall(nonce)
                channel = Channel(connection, self._key, nonce)
                channel.send(b"reply", self._answer(channel.receive(b"request")))
            except (OSError, ValueError, RecursionError):
                pass  # a stranger, or a process that has died: others need not know
        with self._changed:
            self._connections.discard(threading.current_thread())

    def _answer(self, request: Mapping[str, Any]) -> Dict[str, Any]:
        answers: Dict[str, Callable[..., Any]] = {
            "register_dispatcher": self._register_dispatcher, "wait_for_dispatcher": self._wait_for_dispatcher,
            "register_worker": self._register_worker, "wait_for_workers": self._wait_for_workers,
            "wait_for_shutdown": self._wait_for_shutdown, "shutdown": self._shutdown}
        try:
            with self._changed:
                return {"result": answers[request["what"]](*request["arguments"])}
        except tuple(KINDS.values()) as error:
            return {"error": type(error).__name__, "text": str(error)}
        except (KeyError, TypeError) as error:
            return {"error": "ValueError", "text": f"the request cannot be understood: {error!r}"}

    # ---- what clients ask, with the lock held ----

    def _check(self, dispatcher: int) -> None:
        if not 0 <= dispatcher < len(self._dispatchers):
            raise IndexError(f"dispatcher {dispatcher}: there are dispatchers 0 to {len(self._dispatchers) - 1}")

    def _wait(self, condition: Callable[[], bool], timeout: float, text: Callable[[], str]) -> None:
        self._changed.wait_for(lambda: condition() or self._ended, timeout)
        if not condition():
            after = "the data service was shut down" if self._ended else f"not within {timeout:g} s (timeout)"
            raise TimeoutError(f"{text()}: {after}")

    def _register_dispatcher(self, dispatcher: int, address: str) -> None:
        self._check(dispatcher)
        known = self._dispatchers[dispatcher]
        if known not in (None, address):
            raise ValueError(f"dispatcher {dispatcher} is at {known} already, and cannot be at {address}")
        self._dispatchers[dispatcher] = str(address)
        self._changed.notify_all()

    def _wait_for_dispatcher(self, dispatcher: int, timeout: float) -> Optional[str]:
        self._check(dispatcher)
        self._wait(lambda: self._dispatchers[dispatcher] is not None, timeout,
                   lambda: f"dispatcher {dispatcher} has not registered")
        return self._dispatchers[dispatcher]

    def _register_worker(self, dispatcher: int, worker: int) -> None:
        self._check(dispatcher)
        self._workers[dispatcher].add(int(worker))
        self._changed.notify_all()

    def _wait_for_workers(self, dispatcher: int, timeout: float) -> None:
        self._check(dispatcher)
        there = self._workers[dispatcher]
        self._wait(lambda: len(there) >= self._workers_needed, timeout,
                   lambda: f"{len(there)} of {self._workers_needed} workers of dispatcher {dispatcher} have registered")

    def _wait_for_shutdown(self) -> None:
        self._changed.wait_for(lambda: self._ended)

    def _shutdown(self) -> None:
        threading.Thread(target=self.shutdown, name="dtrain.compute", daemon=True).start()


class ComputeClient:
    """Asks a ComputeService. Any thread; each call has a connection of its own. Errors: those that the service names,
    or HorovodInternalError if it cannot be reached."""

    def __init__(self, addresses: Addresses, key: bytes, verbose: int = 1) -> None:
        """verbose: of no effect."""
        del verbose
        self._addresses, self._key = addresses, key

    def own_address(self) -> str:
        """The address of this host on the way to the service, where the service's other clients reach it."""
        with self._connect() as connection:
            return str(connection.getsockname()[0])

    def register_dispatcher(self, dispatcher_id: int, dispatcher_address: str) -> None:
        self._ask("register_dispatcher", dispatcher_id, dispatcher_address)

    def wait_for_dispatcher_registration(self, dispatcher_id: int, timeout: float) -> str:
        """The dispatcher's address. timeout: seconds, after which this is a TimeoutError."""
        return str(self._ask("wait_for_dispatcher", dispatcher_id, timeout, patience=timeout))

    def register_worker_for_dispatcher(self, dispatcher_id: int, worker_id: int) -> None:
        self._ask("register_worker", dispatcher_id, worker_id)

    def wait_for_dispatcher_worker_registration(self, dispatcher_id: int, timeout: float) -> None:
        """Until the dispatcher has all its workers. timeout: seconds, after which this is a TimeoutError."""
        self._ask("wait_for_workers", dispatcher_id, timeout, patience=timeout)

    def shutdown(self) -> None:
        """Ends the data service."""
        self._ask("shutdown")

    def wait_for_shutdown(self) -> None:
        """Until the data service ends, however long it takes."""
        self._ask("wait_for_shutdown", patience=None)

    def _connect(self) -> socket.socket:
        problems = []
        for host, port in [address for listed in self._addresses.values() for address in listed]:
            try:
                return socket.create_connection((host, port), PATIENCE)
            except OSError as error:
                problems.append(f"{host}:{port}: {error}")
        raise HorovodInternalError("the data service is not there: " + "; ".join(problems))

    def _ask(self, what: str, *arguments: Any, patience: Optional[float] = 0.0) -> Any:
        with self._connect() as connection:
            try:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                channel = Channel(connection, self._key, exactly(connection, NONCE_BYTES))
                channel.send(b"request", {"what": what, "arguments": arguments})
                connection.settimeout(None if patience is None else patience + PATIENCE)
                reply = channel.receive(b"reply")
            except (OSError, ValueError) as error:
                known = ", ".join(f"{host}:{port}" for listed in self._addresses.values() for host, port in listed)
                raise HorovodInternalError(f"data service at {known}: {what}: {error}") from error
        if "error" in reply:
            raise KINDS.get(reply["error"], ValueError)(f"data service: {reply['text']}")
        return reply.get("result")
