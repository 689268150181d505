#!/usr/bin/env python3
"""Handwritten digits in PyTorch: DistributedDataParallel over dtrain.

    torchrun --nproc-per-node 2 examples/torch/digits.py [--gpu] [--compress KIND | --every STEPS | --neighbors]

SPDX-License-Identifier: Apache-2.0
"""
import argparse
import os
import pathlib
import sys

import torch
import torch.distributed as dist

import dtrain
from dtrain.torch import averaging, hooks

DATA = pathlib.Path(__file__).resolve().parent.parent / "digits/data"
EPOCHS, BATCH, RATE, MOMENTUM = 20, 32, 0.05, 0.9


def load(pattern, shard=0, shards=1):
    """Images of 8 x 8 (0 to 1) and labels: tf.train.Examples that all have the same form."""
    with dtrain.RecordReader(sorted(DATA.glob(pattern)), shard=shard, shards=shards) as reader:
        records = [bytes(record) for record in reader]
    first = records[0].index(b"image") + len(b"image") + 6  # four lengths
    images = torch.tensor([list(record[first:first + 64]) for record in records], dtype=torch.float32)
    return images.reshape(-1, 1, 8, 8) / 16, torch.tensor([record[-1] for record in records])


def device_of(rank, on_gpu):
    """A GPU of this host, if there is one and it is wanted; the ranks of the host go round its GPUs."""
    if not on_gpu or not torch.cuda.is_available():
        if on_gpu and rank == 0:
            print("torch sees no GPU here, so this runs on the CPU")
        return torch.device("cpu")
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", rank)) % torch.cuda.device_count())
    torch.cuda.set_device(device)
    return device


def network():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Conv2d(1, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
                               torch.nn.Flatten(), torch.nn.Linear(256, 64), torch.nn.Tanh(), torch.nn.Linear(64, 10))


def train(model, images, labels, steps, after=lambda: None):
    """Each rank has its own samples, and all make the same number of steps."""
    optimizer = torch.optim.SGD(model.parameters(), RATE, momentum=MOMENTUM)
    shuffled = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(labels), generator=shuffled)[:steps * BATCH].split(BATCH):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(images[batch]), labels[batch]).backward()
            optimizer.step()
            after()


def main(arguments=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpu", action="store_true", help="train on GPUs, if torch sees any")
    parser.add_argument("--compress", metavar="KIND", help="send compressed gradients: f16, int8, topk, onebit, powersgd")
    parser.add_argument("--every", metavar="STEPS", type=int, help="average parameters every so many steps")
    parser.add_argument("--neighbors", action="store_true", help="average parameters with neighbors in a ring")
    wanted = parser.parse_args(arguments)
    torch.set_num_threads(1)
    if not dist.is_initialized():
        dist.init_process_group("dtrain")
    device = device_of(dist.get_rank(), wanted.gpu)
    images, labels = (one.to(device) for one in load("train-*.tfrecord", dist.get_rank(), dist.get_world_size()))
    steps = torch.tensor(len(labels) // BATCH)
    dist.all_reduce(steps, op=dist.ReduceOp.MIN)
    model = network().to(device)
    if wanted.every:
        train(model, images, labels, steps, averaging.Periodic(model.parameters(), wanted.every).step)
    elif wanted.neighbors:
        train(model, images, labels, steps, averaging.Neighbors(model.parameters(), "ring").step)
    else:
        parallel = torch.nn.parallel.DistributedDataParallel(model)
        if wanted.compress:
            parallel.register_comm_hook(hooks.Compressed(wanted.compress), hooks.reduce)
        train(parallel, images, labels, steps)
    averaging.Periodic(model.parameters(), 1).now()  # the same model everywhere
    images, labels = (one.to(device) for one in load("test.tfrecord"))
    accuracy = (model(images).argmax(1) == labels).float().mean().item()
    if dist.get_rank() == 0:
        print(f"{dist.get_world_size()} ranks, {100 * accuracy:.1f} % of the test set")
    dist.destroy_process_group()
    if accuracy < 0.95:
        sys.exit("that is less than 95 %")


if __name__ == "__main__":
    main()
