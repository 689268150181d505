"""TFRecord files.

SPDX-License-Identifier: Apache-2.0
"""
import pathlib
import tempfile
import unittest

import dtrain


class Records(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "records"
        with dtrain.RecordWriter(self.path) as writer:
            for i in range(5):
                writer.append(bytes([i]) * i)
            self.assertFalse(self.path.exists())

    def test_read(self):
        expected = [bytes([i]) * i for i in range(5)]
        with dtrain.RecordReader(self.path) as reader:
            self.assertEqual(list(reader), expected)
            self.assertEqual(list(reader), [])
            reader.rewind()
            self.assertEqual(next(reader), b"")
        with self.assertRaisesRegex(dtrain.StateError, "reader is closed"):
            next(reader)

    def test_shares(self):
        shares = [list(dtrain.RecordReader([self.path], shard=i, shards=2)) for i in range(2)]
        self.assertEqual(sorted(shares[0] + shares[1]), [bytes([i]) * i for i in range(5)])

    def test_damaged(self):
        self.path.write_bytes(self.path.read_bytes()[:-1])
        with self.assertRaisesRegex(dtrain.CorruptError, "records"):
            list(dtrain.RecordReader(self.path))

    def test_too_long(self):
        with self.assertRaises(dtrain.LimitError):
            list(dtrain.RecordReader(self.path, max_record=3))

    def test_no_file(self):
        with self.assertRaisesRegex(dtrain.Error, "nowhere"):
            list(dtrain.RecordReader("/nowhere"))
        with self.assertRaisesRegex(dtrain.NotFoundError, "nowhere"):
            dtrain.RecordWriter("/nowhere/at/all")

    def test_not_bytes(self):
        with dtrain.RecordWriter(self.path) as writer:
            with self.assertRaises(TypeError):
                writer.append("text")
        with self.assertRaises(TypeError):
            dtrain.RecordReader([3])

    def test_not_written(self):
        writer = dtrain.RecordWriter(self.path)
        self.path.unlink()
        self.path.mkdir()  # the writer's path is a folder
        with self.assertRaises(dtrain.IoError):
            writer.close()
        self.assertTrue(writer.closed)
        writer.close()
        self.path.rmdir()
        self.path.touch()


if __name__ == "__main__":
    unittest.main()
