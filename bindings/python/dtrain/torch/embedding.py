"""Embeddings whose rows live on the servers of a job.

A forward pass pulls each row of the batch once. The backward pass pushes the sums of their gradients,
without waiting, and the servers apply them by the table's rule. So there is no gradient for an
optimizer of the program, and a table may have more rows than a worker has memory for.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
from collections import deque
from typing import TYPE_CHECKING, Any, Deque, List, NamedTuple, Optional

import torch
from torch import Tensor, nn
from torch.nn import functional

from .._communicator import Communicator
from .._request import Request
from .._table import Table

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .._settings import TableSettings

IN_FLIGHT = 8  # pushes of earlier batches that may be on their way, and pulls of later ones


class Batch(NamedTuple):
    """What a forward pass needs of the rows."""
    ids: Tensor  #: as given
    keys: Tensor  #: each once
    places: Tensor  #: of ids in keys, in the shape of ids
    values: Tensor  #: a row for each key
    request: Optional[Request]  #: until they have come


class Rows:
    """The rows of one table: pulls and pushes them."""

    def __init__(self, table: Table, dim: int, count: Optional[int]) -> None:
        self.table = table
        self.dim = dim
        self.count = count
        self._ahead: List[Batch] = []
        self._pushes: Deque[Request] = deque()
        # What makes the values part of the graph; it is no parameter, so nobody optimizes it.
        self.anchor = torch.zeros((), requires_grad=True)

    def check(self, ids: Tensor) -> None:
        if ids.dtype not in (torch.int64, torch.int32):
            raise TypeError(f"embedding {self.table.name!r}: ids of int64 or int32 are needed, not {ids.dtype}")
        if ids.device.type != "cpu":
            raise TypeError(f"embedding {self.table.name!r}: ids in the CPU's memory are needed, not {ids.device}")
        if self.count is None or ids.numel() == 0:
            return
        least, most = int(ids.min()), int(ids.max())
        if least < 0 or most >= self.count:
            wrong = least if least < 0 else most
            raise IndexError(f"embedding {self.table.name!r}: id {wrong} is not in 0 to {self.count - 1}")

    def begin(self, ids: Tensor) -> Batch:
        """Starts to pull the rows."""
        self.check(ids)
        keys, places = torch.unique(ids.detach(), return_inverse=True)
        keys = keys.to(torch.int64)
        values = torch.empty(len(keys), self.dim)
        request = self.table.start.pull_rows(keys, values) if len(keys) > 0 else None
        return Batch(ids, keys, places, values, request)

    def prefetch(self, ids: Tensor) -> None:
        self._ahead.append(self.begin(ids))
        del self._ahead[:-IN_FLIGHT]  # those that no forward pass has taken

    def pull(self, ids: Tensor) -> Batch:
        """The rows of ids; those that were prefetched for this tensor, if there are any."""
        found = next((i for i, batch in enumerate(self._ahead) if batch.ids is ids), None)
        batch = self._ahead.pop(found) if found is not None else self.begin(ids)
        if batch.request is not None:
            batch.request.wait()
        return batch

    def push(self, keys: Tensor, gradients: Tensor) -> None:
        """Starts to push; waits only if too many pushes are on their way. Errors of earlier pushes are
        raised here."""
        if len(keys) == 0:
            return
        while self._pushes and (len(self._pushes) >= IN_FLIGHT or self._pushes[0].done()):
            self._pushes.popleft().wait()
        self._pushes.append(self.table.start.push_rows(keys, gradients.detach().contiguous()))

    def flush(self) -> None:
        while self._pushes:
            self._pushes.popleft().wait()


class Pulled(torch.autograd.Function):
    """The values of rows; their gradients are pushed."""

    @staticmethod
    def forward(ctx: Any, anchor: Tensor, values: Tensor, rows: Rows, keys: Tensor, scale: float) -> Tensor:
        ctx.rows, ctx.keys, ctx.scale = rows, keys, scale
        return values.view_as(values)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        gradient = gradients[0] if ctx.scale == 1 else gradients[0] * ctx.scale
        ctx.rows.push(ctx.keys, gradient)
        return None, None, None, None, None


class ServerEmbedding(nn.Module):
    """What Embedding and EmbeddingBag share. The parameters after `name` are those of a table
    (docs/PARAMETER_SERVER.md): rule, learning_rate, consistency, spread, seed ...

    num_embeddings None: ids are any 64-bit numbers, for example hashes, and rows are made when they
    are first pushed. gradient_scale multiplies what is pushed: 1 / workers for the mean of their
    gradients instead of the sum.
    """

    def __init__(self, comm: Communicator, num_embeddings: Optional[int], embedding_dim: int, *, name: str,
                 padding_idx: Optional[int] = None, gradient_scale: float = 1.0,
                 **settings: "Unpack[TableSettings]") -> None:
        super().__init__()
        if num_embeddings is not None and num_embeddings < 1:
            raise ValueError(f"embedding {name!r}: num_embeddings is {num_embeddings}; it must be at least 1, or None")
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = padding_idx
        self.gradient_scale = gradient_scale
        settings["dim"] = embedding_dim
        self.table = comm.table(name, **settings)
        self._rows = Rows(self.table, embedding_dim, num_embeddings)

    def prefetch(self, ids: Tensor) -> None:
        """Starts to pull the rows of a batch that a later forward() takes, which must be given the same
        tensor. They are as they are now, without what is pushed from here on. Eight batches are kept, the latest."""
        self._rows.prefetch(ids)

    def flush(self) -> None:
        """Waits until all gradients pushed so far are applied, or, with BSP, stored for the clock."""
        self._rows.flush()

    def clock(self) -> None:
        """Ends this worker's clock (BSP, SSP, QUORUM): its gradients so far belong to it."""
        self.flush()
        self.table.clock()

    def rows(self, ids: Tensor) -> Tensor:
        """The rows of ids, without a gradient."""
        return functional.embedding(*self._places(ids, False)[:2])

    def set_rows(self, ids: Tensor, values: Tensor) -> None:
        """Overwrites rows, for example with a trained model's; usually one worker does."""
        self._rows.check(ids)
        self.table.set_rows(ids.detach().to(torch.int64).reshape(-1),
                            values.detach().to(torch.float32).reshape(-1, self.embedding_dim).contiguous())

    def _places(self, ids: Tensor, learns: bool) -> Any:
        """(places of ids in values, values, place of the padding or None)"""
        batch = self._rows.pull(ids)
        keys, values, padding = batch.keys, batch.values, None
        if self.padding_idx is not None:
            found = torch.nonzero(keys.eq(self.padding_idx))
            if len(found) > 0:
                padding = int(found[0])
                values[padding] = 0
        if learns and torch.is_grad_enabled():
            values = Pulled.apply(self._rows.anchor, values, self._rows, keys, self.gradient_scale)
        return batch.places, values, padding

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}, name={self.table.name!r}"


class Embedding(ServerEmbedding):
    """torch.nn.Embedding, with its rows on the servers."""

    def forward(self, ids: Tensor) -> Tensor:
        places, values, padding = self._places(ids, self.training)
        return functional.embedding(places, values, padding_idx=padding)


class EmbeddingBag(ServerEmbedding):
    """torch.nn.EmbeddingBag, with its rows on the servers. mode: "sum", "mean" or "max"."""

    def __init__(self, comm: Communicator, num_embeddings: Optional[int], embedding_dim: int, *, name: str,
                 mode: str = "mean", include_last_offset: bool = False, padding_idx: Optional[int] = None,
                 gradient_scale: float = 1.0, **settings: "Unpack[TableSettings]") -> None:
        if mode not in ("sum", "mean", "max"):
            raise ValueError(f"embedding {name!r}: mode is {mode!r}; it must be sum, mean or max")
        super().__init__(comm, num_embeddings, embedding_dim, name=name, padding_idx=padding_idx,
                         gradient_scale=gradient_scale, **settings)
        self.mode = mode
        self.include_last_offset = include_last_offset

    def forward(self, ids: Tensor, offsets: Optional[Tensor] = None,
                per_sample_weights: Optional[Tensor] = None) -> Tensor:
        places, values, padding = self._places(ids, self.training)
        if offsets is not None:
            offsets = offsets.to(places.dtype)
        return functional.embedding_bag(places, values, offsets, mode=self.mode,
                                        include_last_offset=self.include_last_offset, padding_idx=padding,
                                        per_sample_weights=per_sample_weights)
