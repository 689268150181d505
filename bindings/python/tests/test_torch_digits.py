"""The example of PyTorch reaches its accuracy, in each of its ways to train.

SPDX-License-Identifier: Apache-2.0
"""
import pathlib
import sys
import unittest

from torch_ranks import run

sys.path.append(str(pathlib.Path(__file__).resolve().parents[3] / "examples/torch"))
WAYS = ([], ["--gpu"], ["--compress", "onebit"], ["--compress", "powersgd"], ["--every", "8"], ["--neighbors"])


def train(_rank, _size, way):
    import digits  # pylint: disable=import-error
    digits.main(way)  # ends with an error below 95 %


class Digits(unittest.TestCase):
    def test_ways(self):
        for way in WAYS:
            with self.subTest(way=way):
                run(2, train, way)


if __name__ == "__main__":
    unittest.main()
