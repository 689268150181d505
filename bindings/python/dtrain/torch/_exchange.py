"""Exchanges bytes between the ranks of a group through its c10d store, before they are connected.

SPDX-License-Identifier: Apache-2.0
"""
import os
import time
from datetime import timedelta
from typing import Any, List

from ._errors import DtrainError

LOOK = timedelta(milliseconds=10)  #: for a key that should be there


def attempt() -> str:
    """The number of torchrun's attempt, where all ranks know the same: on one host. The agent of each host counts the
    failures of its own ranks only; several hosts get a new store from torchrun for each attempt."""
    return os.environ.get("TORCHELASTIC_RESTART_COUNT", "") if os.environ.get("GROUP_WORLD_SIZE") == "1" else ""


class Exchange:
    """An all-gather. The store may be older than the group, so keys name torchrun's attempt (in one that failed only some
    ranks may have come), and the generation: how often all ranks have come here before."""

    def __init__(self, store: Any, rank: int, size: int, timeout: timedelta) -> None:
        self._store = store
        self._rank = rank
        self._size = size
        self._timeout = timeout
        self._deadline = time.monotonic() + timeout.total_seconds()
        self._round = 0
        name = f"dtrain/{attempt()}"
        self._prefix = f"{name}/{(store.add(f'{name}/came', 1) - 1) // size}"

    def __call__(self, mine: bytes) -> List[bytes]:
        self._round += 1
        begin = f"{self._prefix}/{self._round}/"
        self._store.set(begin + str(self._rank), mine.hex())
        return [bytes.fromhex(self._get(begin, rank).decode()) for rank in range(self._size)]

    def _get(self, begin: str, rank: int) -> bytes:
        left = timedelta(seconds=max(self._deadline - time.monotonic(), 0.001))
        key = begin + str(rank)
        try:
            self._store.wait([key], left)
        except Exception as error:
            if time.monotonic() < self._deadline:
                raise DtrainError(f"dtrain: joining the group: the store failed: {error}") from error
            missing = [str(one) for one in range(self._size) if not self._has(begin + str(one))]
            raise DtrainError(f"dtrain: joining the group: Timed out after {self._timeout} (timeout of the group): "
                              f"rank {' and '.join(missing)} of {self._size} did not come; look whether it runs, and "
                              "with the same MASTER_ADDR, MASTER_PORT and WORLD_SIZE") from error
        found: bytes = self._store.get(key)
        return found

    def number(self, name: str, timeout: timedelta) -> int:
        """A number for this name, the same on all ranks that ask, and no other name's. The first one to ask draws it."""
        key = f"{self._prefix}/numbers/{name}"
        if self._store.add(f"{key}/asked", 1) == 1:
            self._store.set(key, str(self._store.add(f"{self._prefix}/drawn", 1)))
        self._store.wait([key], timeout)
        return int(self._store.get(key))

    def _has(self, key: str) -> bool:
        try:
            self._store.wait([key], LOOK)
            return True
        except Exception:  # pylint: disable=broad-except
            return False
