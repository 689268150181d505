"""Batch normalization over the batches of all ranks.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
from typing import Any, Tuple

from ..common.basics import Sum, size
from ._allreduce import allreduce
from ._tensors import torch

Base: Any = torch.nn.modules.batchnorm._BatchNorm


class SyncBatchNorm(Base):  # type: ignore[misc]
    """As torch.nn.BatchNorm, with the mean and variance of the batches of all ranks. Batches may have different sizes.
    Horovod's is for GPUs alone; this one is for tensors of any device."""

    def _check_input_dim(self, input: Any) -> None:  # pylint: disable=redefined-builtin
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    def forward(self, input: Any) -> Any:  # pylint: disable=redefined-builtin
        self._check_input_dim(input)
        whole: Any = super()
        if not self.training and self.track_running_stats or size() == 1:
            return whole.forward(input)
        mean, variance, count = statistics(input)
        if self.training and self.track_running_stats:
            self._track(mean.detach(), variance.detach(), count)
        shape = (1, -1, *[1] * (input.dim() - 2))
        scale = torch.rsqrt(variance + self.eps)
        found = (input - mean.to(input.dtype).view(shape)) * scale.to(input.dtype).view(shape)
        if self.affine:
            found = found * self.weight.view(shape) + self.bias.view(shape)
        return found

    def _track(self, mean: Any, variance: Any, count: float) -> None:
        with torch.no_grad():
            self.num_batches_tracked.add_(1)
            share = self.momentum if self.momentum is not None else 1.0 / float(self.num_batches_tracked)
            unbiased = variance * (count / max(count - 1, 1))
            self.running_mean.mul_(1 - share).add_(mean.to(self.running_mean.dtype), alpha=share)
            self.running_var.mul_(1 - share).add_(unbiased.to(self.running_var.dtype), alpha=share)


def statistics(values: Any) -> Tuple[Any, Any, float]:
    """The mean and variance of each channel over all ranks, and how many elements a channel has. Two all-reduces: the
    variance is that of the differences from the mean, since that of squares loses digits."""
    wide = values.double() if values.dtype == torch.float64 else values.float()
    along = [dimension for dimension in range(values.dim()) if dimension != 1]
    channels = values.shape[1]
    own = wide.new_tensor([values.numel() / channels if channels else 0])
    name = f"sync_batch_norm.{channels}.{wide.dtype}"  # of as many elements each time: then it is known
    sums = allreduce(torch.cat([wide.sum(along), own]), name=f"{name}.sum", op=Sum)
    count = float(sums[-1].detach())
    mean = sums[:-1] / max(count, 1)
    shape = (1, -1, *[1] * (values.dim() - 2))
    squares = allreduce(((wide - mean.view(shape)) ** 2).sum(along), name=f"{name}.squares", op=Sum)
    return mean, squares / max(count, 1), count
