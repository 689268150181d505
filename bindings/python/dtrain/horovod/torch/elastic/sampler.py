"""A sampler that shares out again what an epoch has left when workers are lost or come.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
import random
from typing import Any, Dict, Iterator, List

from ...common.basics import rank, size
from .._tensors import torch

Base: Any = torch.utils.data.Sampler


class ElasticSampler(Base):  # type: ignore[misc]
    """Each rank gets its share of what the epoch has left. Give it to a TorchState, call record_batch() after each
    batch, and set_epoch() at the end of an epoch.

    dataset: of constant length. shuffle: in an order that depends on seed and epoch, and is the same on all ranks."""

    def __init__(self, dataset: Any, shuffle: bool = True, seed: int = 0) -> None:
        self.dataset, self.shuffle, self.seed = dataset, shuffle, seed
        self.epoch = 0
        self.processed_num = 0  #: of this epoch, by all ranks
        self.reset()

    def set_epoch(self, epoch: int) -> None:
        """Begins an epoch: nothing of it has been processed."""
        self.epoch, self.processed_num = epoch, 0
        self.reset()

    def record_batch(self, batch_idx: int, batch_size: int) -> None:
        """A batch of so many samples was processed, by each rank."""
        del batch_idx
        self.processed_num += batch_size * self.num_replicas

    def state_dict(self) -> Dict[str, int]:
        return {"epoch": self.epoch, "processed_num": self.processed_num}

    def load_state_dict(self, state_dict: Dict[str, int]) -> None:
        self.epoch, self.processed_num = state_dict["epoch"], state_dict["processed_num"]
        self.reset()

    def reset(self) -> None:
        """Shares out what is left, among the ranks that are there now."""
        self.rank, self.num_replicas = rank(), size()
        order = list(range(len(self.dataset)))
        if self.shuffle:
            random.Random(self.seed + self.epoch).shuffle(order)
        self.remaining_indices: List[int] = order[self.processed_num:]
        self.num_samples = -(-len(self.remaining_indices) // self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        left = self.remaining_indices
        self.indices = [left[index % len(left)] for index in range(self.rank, self.total_size, self.num_replicas)]
        return iter(self.indices)

    def __len__(self) -> int:
        return self.num_samples
