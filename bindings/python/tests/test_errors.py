"""Exceptions and options, against the library's own tables.

SPDX-License-Identifier: Apache-2.0
"""
import os
import pickle
import tempfile
import unittest
import unittest.mock

import dtrain
from dtrain import _dtrain
from dtrain._errors import BY_STATUS, make_error


class Errors(unittest.TestCase):
    def test_one_kind_for_each_status(self):
        statuses = {name: getattr(_dtrain, name) for name in dir(_dtrain)
                    if name.startswith("DTRAIN_ERR_")}
        self.assertGreater(len(statuses), 20)
        self.assertEqual(set(statuses.values()), set(BY_STATUS))
        for name, status in statuses.items():
            words = name[len("DTRAIN_ERR_"):].title().replace("_", "")
            kind = BY_STATUS[status]
            self.assertEqual(kind.__name__, words + "Error")
            self.assertIs(getattr(dtrain, kind.__name__), kind)
            self.assertEqual(make_error(status, "", None).name, name)

    def test_what_they_carry(self):
        error = make_error(_dtrain.DTRAIN_ERR_PEER, "rank 3 is gone", 3)
        self.assertIsInstance(error, dtrain.PeerError)
        self.assertEqual((error.status, error.rank, str(error)), (-40, 3, "rank 3 is gone"))
        again = pickle.loads(pickle.dumps(error))
        self.assertEqual((type(again), again.rank, again.text), (type(error), 3, error.text))

    def test_unknown_status(self):
        error = make_error(-55, "new", None)
        self.assertEqual((type(error), error.status, error.name),
                         (dtrain.Error, -55, "DTRAIN_ERR_UNKNOWN"))

    def test_as_python_names_them(self):
        self.assertTrue(issubclass(dtrain.TimeoutError, TimeoutError))
        self.assertTrue(issubclass(dtrain.InvalidError, ValueError))
        self.assertTrue(issubclass(dtrain.NoMemoryError, MemoryError))
        self.assertEqual(str(dtrain.IoError("disk", 2)), "disk")


class Options(unittest.TestCase):
    def test_names_are_unambiguous(self):
        keys = [option.key for option in dtrain.describe_options()]
        self.assertIn("op.timeout", keys)
        self.assertEqual(len({key.replace(".", "_") for key in keys}), len(keys))

    def test_file(self):
        with tempfile.NamedTemporaryFile("w") as file:
            print("transports = tcp", "op.timeout = 7s", sep="\n", file=file, flush=True)
            with dtrain.Context(options_file=file.name) as context:
                self.assertEqual([x["name"] for x in context.describe()["transports"]], ["tcp"])
            with unittest.mock.patch.dict(os.environ, {"DTRAIN_OPTIONS": file.name}):
                os.environ.pop("DTRAIN_OP_TIMEOUT", None)
                values = {option.key: option.value for option in dtrain.describe_options()}
        self.assertEqual(values["op.timeout"], "7s")
        with self.assertRaisesRegex(dtrain.Error, "nowhere"):
            dtrain.Context(options_file="/nowhere")

    def test_joining_is_described(self):
        self.assertEqual(dtrain.role(), "worker")
        described = dtrain.describe_join("tcp://h:7", size=3, rank=1, servers=1)
        self.assertEqual([described[key] for key in ("joins", "index", "workers", "servers", "rendezvous")],
                         [True, 1, 3, 1, "tcp://h:7"])
        self.assertIn("torchrun", str(described["sources"]))
        self.assertFalse(dtrain.describe_join("tcp://h", size=1, rank=3)["joins"])

    def test_given(self):
        for arguments, named in ((({"transports": "tcp"},), {}), ((), {"transports": "tcp"}),
                                 (({"transports": "shm"},), {"transports": "tcp"})):
            with dtrain.Context(*arguments, **named) as context:
                names = {transport["name"] for transport in context.describe()["transports"]}
                self.assertEqual(names, {"tcp"})

    def test_wrong(self):
        with self.assertRaisesRegex(dtrain.NotFoundError, "op.timeout"):
            dtrain.Context(op_timeot="1s")
        with self.assertRaisesRegex(dtrain.InvalidError, "progress"):
            dtrain.Context({"progress": "sometimes"})

    def test_flags(self):
        with dtrain.Context(explain=True, progress="manual") as context:
            self.assertGreaterEqual(context.progress(), 0)


if __name__ == "__main__":
    unittest.main()
