"""dtrain as a backend of torch.distributed:

    import dtrain.torch
    torch.distributed.init_process_group("dtrain")

Groups, collectives, messages, DistributedDataParallel and what else builds on torch.distributed run on it
(docs/PYTORCH.md). With an installed wheel and torch 2.5 or later the import is not needed.

Embedding, EmbeddingBag and DistributedOptimizer keep parameters and the state of their optimizers in tables on servers.
SPDX-License-Identifier: Apache-2.0
"""
from ._errors import DtrainError
from ._forms import ProcessGroup
from . import averaging, hooks
from ._torch import dist
from .._torch_backend import register
from ._create import create
from .embedding import Embedding, EmbeddingBag
from .optimizer import DistributedOptimizer

__all__ = ["DistributedOptimizer", "DtrainError", "Embedding", "EmbeddingBag", "ProcessGroup", "averaging", "create",
           "hooks"]

register(dist)
