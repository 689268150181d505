#!/usr/bin/env python3
"""The digits with Ray Train over dtrain. Ray makes the group before it calls train(), so the backend must be known when
torch is imported: by an installed wheel.

    python3 examples/torch/digits_ray.py [WORKERS]

SPDX-License-Identifier: Apache-2.0
"""
import sys
import tempfile

import ray
import torch
from ray import train
from ray.train.torch import TorchConfig, TorchTrainer, prepare_data_loader, prepare_model

from digits import BATCH, EPOCHS, MOMENTUM, RATE, load, network


def loader(pattern, **more):
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*load(pattern)), batch_size=BATCH, **more)


def work():
    """What each worker does."""
    torch.set_num_threads(1)
    model = prepare_model(network())
    optimizer = torch.optim.SGD(model.parameters(), RATE, momentum=MOMENTUM)
    training = prepare_data_loader(loader("train-*.tfrecord", shuffle=True))
    for _ in range(EPOCHS):
        for images, labels in training:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
    images, labels = load("test.tfrecord")
    accuracy = (model(images).argmax(1) == labels).float().mean().item()
    context = train.get_context()
    print(f"rank {context.get_world_rank()} of {context.get_world_size()} over {torch.distributed.get_backend()}, "
          f"{100 * accuracy:.1f} % of the test set")
    if accuracy < 0.95:
        raise RuntimeError("that is less than 95 %")


def main():
    workers = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    with tempfile.TemporaryDirectory() as folder:
        TorchTrainer(work, torch_config=TorchConfig(backend="dtrain"),
                     scaling_config=train.ScalingConfig(num_workers=workers),
                     run_config=train.RunConfig(storage_path=folder)).fit()
    ray.shutdown()


if __name__ == "__main__":
    main()
