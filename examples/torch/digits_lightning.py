#!/usr/bin/env python3
"""The digits in Lightning: its Trainer over dtrain.

    torchrun --nproc-per-node 2 examples/torch/digits_lightning.py

SPDX-License-Identifier: Apache-2.0
"""
import os
import sys
import tempfile

import lightning
import torch
from lightning.pytorch.strategies import DDPStrategy

import dtrain.torch  # noqa: F401  pylint: disable=unused-import
from digits import BATCH, EPOCHS, MOMENTUM, RATE, load, network


class Digits(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = network()

    def training_step(self, batch, _index):
        images, labels = batch
        return torch.nn.functional.cross_entropy(self.net(images), labels)

    def test_step(self, batch, _index):
        images, labels = batch
        self.log("accuracy", (self.net(images).argmax(1) == labels).float().mean(), sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), RATE, momentum=MOMENTUM)


def loader(pattern, **more):
    """Lightning gives each rank its part."""
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*load(pattern)), batch_size=BATCH, **more)


def main():
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        trainer = lightning.Trainer(accelerator="cpu", devices=int(os.environ.get("LOCAL_WORLD_SIZE", 1)),
                                    strategy=DDPStrategy(process_group_backend="dtrain"), max_epochs=EPOCHS,
                                    default_root_dir=folder, logger=False, enable_checkpointing=False,
                                    enable_progress_bar=False)
        model = Digits()
        trainer.fit(model, loader("train-*.tfrecord", shuffle=True))
        found = trainer.test(model, loader("test.tfrecord"), verbose=False)[0]["accuracy"]
    print(f"rank {trainer.global_rank} of {trainer.world_size}, {100 * found:.1f} % of the test set")
    if found < 0.95:
        sys.exit("that is less than 95 %")


if __name__ == "__main__":
    main()
