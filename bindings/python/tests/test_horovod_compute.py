"""The service where the processes of a data service find each other (dtrain.horovod.common._compute).

SPDX-License-Identifier: Apache-2.0
"""
import contextlib
import socket
import struct
import threading
import time
import unittest

from dtrain.horovod.common import _compute
from dtrain.horovod.common._compute import ComputeClient, ComputeService
from dtrain.horovod.common.exceptions import HorovodInternalError

KEY = b"k" * 32
LONG = 60.0  #: seconds, that no test waits for


class Service(unittest.TestCase):
    def setUp(self):
        self.service = ComputeService(2, 2, KEY)
        self.addCleanup(self.service.shutdown)
        self.client = ComputeClient(self.service.addresses(), KEY)
        self.port = self.service.addresses()["loopback"][0][1]

    def fails(self, kind, text, function, *arguments):
        with self.assertRaisesRegex(kind, text):
            function(*arguments)

    def test_finds(self):
        found = []
        threads = [threading.Thread(target=lambda number=number: found.append(
            self.client.wait_for_dispatcher_registration(number, LONG))) for number in (0, 1, 1)]
        for thread in threads:
            thread.start()
        for number in range(2):
            self.client.register_dispatcher(number, f"grpc://host:{number}")
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(found), ["grpc://host:0", "grpc://host:1", "grpc://host:1"])
        self.client.register_dispatcher(1, "grpc://host:1")  # again
        self.fails(ValueError, "dispatcher 1 is at grpc://host:1 already", self.client.register_dispatcher, 1, "x")
        for worker in (2, 2, 3):
            self.client.register_worker_for_dispatcher(1, worker)
        self.client.wait_for_dispatcher_worker_registration(1, LONG)

    def test_waits_no_longer(self):
        self.fails(TimeoutError, r"dispatcher 0 has not registered: not within 0.1 s",
                   self.client.wait_for_dispatcher_registration, 0, 0.1)
        self.client.register_worker_for_dispatcher(0, 7)
        self.fails(TimeoutError, "1 of 2 workers of dispatcher 0 have registered",
                   self.client.wait_for_dispatcher_worker_registration, 0, 0.1)

    def test_wrong_calls(self):
        for function, arguments in ((self.client.register_dispatcher, (2, "x")),
                                    (self.client.register_worker_for_dispatcher, (-1, 0)),
                                    (self.client.wait_for_dispatcher_registration, (9, LONG)),
                                    (self.client.wait_for_dispatcher_worker_registration, (9, LONG))):
            self.fails(IndexError, "there are dispatchers 0 to 1", function, *arguments)
        self.fails(ValueError, "cannot be understood", self.client._ask, "fly")
        self.fails(ValueError, "cannot be understood", self.client._ask, "shutdown", 1, 2)
        self.fails(ValueError, "workers_per_dispatcher: 0", ComputeService, 1, 0, KEY)

    def test_shutdown(self):
        waiting = [threading.Thread(target=self.client.wait_for_shutdown) for _ in range(3)]
        for thread in waiting:
            thread.start()
        failed = []

        def wait():
            try:
                self.client.wait_for_dispatcher_registration(0, LONG)
            except (TimeoutError, HorovodInternalError) as error:
                failed.append(error)
        waiting.append(threading.Thread(target=wait))
        waiting[-1].start()
        while len(self.service._connections) < len(waiting):
            time.sleep(0.01)
        self.client.shutdown()
        for thread in waiting:
            thread.join(LONG)
            self.assertFalse(thread.is_alive())
        self.assertIn("the data service was shut down", str(failed[0]))

    def test_strangers(self):
        """Without the key nobody can ask, nor answer; and nobody can hold it up."""
        other = ComputeClient(self.service.addresses(), b"other")
        self.fails(HorovodInternalError, "register_dispatcher: the connection has ended", other.register_dispatcher, 0,
                   "x")
        for sent in (b"", b"GET / HTTP/1.0\r\n\r\n" * 20, struct.pack("!I", 1 << 31), struct.pack("!I", 3) + b"x" * 35):
            with socket.create_connection(("127.0.0.1", self.port)) as connection:
                with contextlib.suppress(OSError):  # it may have hung up already
                    connection.sendall(sent)
                    connection.shutdown(socket.SHUT_WR)
                received = b""
                while part := read(connection):
                    received += part
                self.assertLessEqual(len(received), _compute.NONCE_BYTES)
        silent = [socket.create_connection(("127.0.0.1", self.port)) for _ in range(50)]
        self.client.register_dispatcher(0, "grpc://host:0")
        for connection in silent:
            connection.close()

    def test_false_service(self):
        """A client does not believe what is not signed."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            def answer():
                connection, _ = listener.accept()
                with connection:
                    connection.sendall(b"n" * _compute.NONCE_BYTES)
                    connection.recv(4096)
                    body = b'{"result": "grpc://elsewhere:1"}'
                    connection.sendall(struct.pack("!I", len(body)) + b"s" * _compute.DIGEST_BYTES + body)
            thread = threading.Thread(target=answer)
            thread.start()
            client = ComputeClient({"x": [("127.0.0.1", listener.getsockname()[1])]}, KEY)
            self.fails(HorovodInternalError, "not signed with the key", client.wait_for_dispatcher_registration, 0, 1)
            thread.join()

    def test_nobody_there(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        client = ComputeClient({"x": [("127.0.0.1", port)]}, KEY)
        self.fails(HorovodInternalError, f"the data service is not there: 127.0.0.1:{port}", client.shutdown)


def read(connection):
    try:
        return connection.recv(4096)
    except ConnectionResetError:
        return b""


if __name__ == "__main__":
    unittest.main()
