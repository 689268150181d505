#!/usr/bin/env python3
"""The digits with Accelerate over dtrain.

    torchrun --nproc-per-node 2 examples/torch/digits_accelerate.py

Accelerate makes a group of gloo on CPUs whatever it is told, but takes one that is there.
SPDX-License-Identifier: Apache-2.0
"""
import sys

import torch
import torch.distributed as dist
from accelerate import Accelerator

import dtrain.torch  # noqa: F401  pylint: disable=unused-import
from digits import BATCH, EPOCHS, MOMENTUM, RATE, load, network


def loader(pattern, **more):
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*load(pattern)), batch_size=BATCH, **more)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("dtrain")
    accelerator = Accelerator(cpu=True)
    net = network()
    optimizer = torch.optim.SGD(net.parameters(), RATE, momentum=MOMENTUM)
    net, optimizer, training, test = accelerator.prepare(net, optimizer, loader("train-*.tfrecord", shuffle=True),
                                                         loader("test.tfrecord"))
    for _ in range(EPOCHS):
        for images, labels in training:
            optimizer.zero_grad()
            accelerator.backward(torch.nn.functional.cross_entropy(net(images), labels))
            optimizer.step()
    with torch.no_grad():
        right = torch.cat([accelerator.gather_for_metrics(net(images).argmax(1) == labels) for images, labels in test])
    accuracy = right.float().mean().item()
    print(f"rank {accelerator.process_index} of {accelerator.num_processes}, {100 * accuracy:.1f} % of the test set")
    accelerator.end_training()
    if accuracy < 0.95:
        sys.exit("that is less than 95 %")


if __name__ == "__main__":
    main()
