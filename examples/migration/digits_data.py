"""The handwritten digits of examples/digits, for the programs of this folder.

SPDX-License-Identifier: Apache-2.0
"""
import pathlib

import dtrain

DATA = pathlib.Path(__file__).resolve().parent.parent / "digits/data"


def load(pattern, shard=0, shards=1):
    """Images of 64 numbers from 0 to 16, and labels, from tf.train.Examples that all have the same form."""
    with dtrain.RecordReader(sorted(DATA.glob(pattern)), shard=shard, shards=shards) as reader:
        records = [bytes(record) for record in reader]
    first = records[0].index(b"image") + len(b"image") + 6  # four lengths
    return [list(record[first:first + 64]) for record in records], [record[-1] for record in records]
