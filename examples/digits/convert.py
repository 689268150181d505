#!/usr/bin/python3
"""Makes data/*.tfrecord from the digits as scikit-learn distributes them (README.md).

SPDX-License-Identifier: Apache-2.0
"""
import gzip
import pathlib
import struct
import sys

SOURCE = "/usr/lib/python3/dist-packages/sklearn/datasets/data/digits.csv.gz"
SHARDS = 8
TEST_EVERY = 5  # samples 0, 5, 10, ... are for testing

# ---- CRC-32C and the TFRecord frame


def crc32c(data):
    state = 0xFFFFFFFF
    for byte in data:
        state ^= byte
        for _ in range(8):
            state = (state >> 1) ^ (0x82F63B78 if state & 1 else 0)
    return state ^ 0xFFFFFFFF


def masked_crc(data):
    crc = crc32c(data)
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def frame(record):
    length = struct.pack("<Q", len(record))
    return (length + struct.pack("<I", masked_crc(length)) +
            record + struct.pack("<I", masked_crc(record)))


# ---- tf.train.Example as protocol buffers encode it; every length here is below 16384


def varint(value):
    return bytes([value]) if value < 128 else bytes([value & 127 | 128, value >> 7])


def field(number, payload):
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def feature(name, kind, values):
    """One entry of Features.feature; kind: 1 BytesList, 3 Int64List (packed)."""
    return field(1, field(1, name) + field(2, field(kind, field(1, values))))


def example(pixels, label):
    return field(1, feature(b"image", 1, bytes(pixels)) + feature(b"label", 3, varint(label)))


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "data")
    with gzip.open(SOURCE, "rt", encoding="ascii") as lines:
        samples = [[int(float(cell)) for cell in line.split(",")] for line in lines]
    records = [frame(example(sample[:64], sample[64])) for sample in samples]
    train = [r for i, r in enumerate(records) if i % TEST_EVERY != 0]
    (folder / "test.tfrecord").write_bytes(b"".join(records[::TEST_EVERY]))
    for shard in range(SHARDS):
        name = f"train-{shard:05}-of-{SHARDS:05}.tfrecord"
        (folder / name).write_bytes(b"".join(train[shard::SHARDS]))


if __name__ == "__main__":
    main()
