"""Workers of multiprocessing, which end without cleanup once their function has returned.

SPDX-License-Identifier: Apache-2.0
"""
import multiprocessing
import os
import tempfile
import unittest
from array import array

import dtrain

RANKS, JOBS, CALLS = 3, 12, 20


def work(rank, where, transports):
    world = dtrain.Context(transports=transports, heartbeat_timeout="30s").join(
        where, size=RANKS, rank=rank, timeout=60)
    for _ in range(CALLS):
        values = array("f", [rank]) * 1000
        world.allreduce(values)
        assert values[999] == RANKS * (RANKS - 1) / 2
    return world  # never closed


class Ends(unittest.TestCase):
    def workers(self, method, transports):
        start = multiprocessing.get_context(method)
        for job in range(JOBS):
            with tempfile.TemporaryDirectory() as folder:
                where = "file://" + os.path.join(folder, "job")
                workers = [start.Process(target=work, args=(rank, where, transports))
                           for rank in range(RANKS)]
                for worker in workers:
                    worker.start()
                for worker in workers:
                    worker.join(100)
                self.assertEqual([worker.exitcode for worker in workers], [0] * RANKS, f"job {job}")

    def test_forked_over_tcp(self):
        self.workers("fork", "tcp")

    def test_forked_over_shm(self):
        self.workers("fork", "shm,tcp")


if __name__ == "__main__":
    unittest.main()
