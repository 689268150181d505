"""Elastic training with Keras (docs/HOROVOD.md).

SPDX-License-Identifier: Apache-2.0
"""
from ..._keras._elastic import (CommitStateCallback, KerasState, UpdateBatchStateCallback, UpdateEpochStateCallback,
                              run)

__all__ = ["CommitStateCallback", "KerasState", "UpdateBatchStateCallback", "UpdateEpochStateCallback", "run"]
