"""A server and a worker in one process, and weights of servers.

SPDX-License-Identifier: Apache-2.0
"""
import tempfile
import threading
import unittest
from array import array

import dtrain


class InThisProcess(unittest.TestCase):
    def test_serve(self):
        with tempfile.TemporaryDirectory() as folder, dtrain.Context() as serving, \
                dtrain.Context() as context:
            job = {"rendezvous": f"file://{folder}/job", "size": 1, "servers": 1}
            servers = []
            thread = threading.Thread(target=lambda: servers.append(serving.serve(index=0, **job)))
            thread.start()
            world = context.join(rank=0, **job)
            thread.join()
            table = world.table("table", length=4)
            table.push(array("f", [1, 2]), first=2)
            out = array("f", [0] * 4)
            table.pull(out)
            self.assertEqual(list(out), [0, 0, 1, 2])
            self.assertEqual([server["rank"] for server in table.servers()], [-1])
            self.assertFalse(servers[0].wait(0.01))
            self.assertIn("dtrain", servers[0].stats())
            context.close()
            self.assertTrue(servers[0].wait(10))

    def test_weights(self):
        self.assertEqual(len(dtrain.server_weights(workers=4, dedicated=2, serving=2)), 4)
        with self.assertRaises(dtrain.InvalidError):
            dtrain.server_weights(workers=1, dedicated=1, serving=2)


if __name__ == "__main__":
    unittest.main()
