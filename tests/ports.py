"""Ports for what a test starts: of those that the kernel gives to nobody who asks for any port, and held against
other tests until this process ends.

SPDX-License-Identifier: Apache-2.0
"""
import random
import socket

_RANGE = range(20000, 32000)  # below Linux's ephemeral ports
_held = []


def free_ports(count):
    """In a row: dtrain's rank 0 listens at the port after those of the tasks of TF_CONFIG."""
    while True:
        first = random.choice(_RANGE)
        ports = list(range(first, first + count))
        held = [_hold(port) for port in ports]
        if all(held):
            _held.extend(held)
            return ports
        for one in filter(None, held):
            one.close()


def free_port():
    return free_ports(1)[0]


def _hold(port):
    """A UDP socket at this port, which no other test gets while it is open; None if the port is in use."""
    held = socket.socket(type=socket.SOCK_DGRAM)
    try:
        held.bind(("127.0.0.1", port))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
        return held
    except OSError:
        held.close()
        return None
