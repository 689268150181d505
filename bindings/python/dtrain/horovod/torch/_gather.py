"""All-gather, broadcast, all-to-all and reduce-scatter: asynchronous, of several tensors, with gradients.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
from typing import Any, List, Optional, Sequence

from ..common.basics import Average, Sum
from ..common.process_sets import ProcessSet, engine_of, global_process_set
from ._allreduce import allreduce, fresh, grouped_allreduce
from ._calls import Allgather, Alltoall, Broadcast, Reducescatter
from ._handles import start, start_group, synchronize
from ._names import member_name
from ._tensors import torch
from .compression import Compression

# ---- all-gather ----


def allgather_async(tensor: Any, name: Optional[str] = None, process_set: ProcessSet = global_process_set) -> int:
    """Starts allgather(); returns a handle for poll() and synchronize()."""
    return start(Allgather(tensor, name), process_set)


def grouped_allgather_async(tensors: Sequence[Any], name: Optional[str] = None,
                            process_set: ProcessSet = global_process_set) -> int:
    """Starts grouped_allgather(); returns a handle for poll() and synchronize()."""
    return start_group([Allgather(tensor, member_name(name, index, len(tensors)))
                        for index, tensor in enumerate(tensors)], process_set)


def own_rows(gradients: Sequence[Any], rows: Sequence[int], process_set: ProcessSet) -> List[Any]:
    """This rank's part of the mean gradients of gathered tensors, to which it has given so many rows."""
    engine = engine_of(process_set)
    means = grouped_allreduce(list(gradients), op=Average, process_set=process_set)
    counts = synchronize(allgather_async(torch.tensor([list(rows)], dtype=torch.int64), None, process_set))
    before = counts[:engine.comm.rank].sum(0).tolist()
    return [mean.narrow(0, at, count) for mean, at, count in zip(means, before, rows)]


class HorovodAllgather(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, tensor: Any, name: Optional[str], process_set: ProcessSet) -> Any:
        found = synchronize(allgather_async(tensor, name, process_set))
        ctx.rows, ctx.process_set = tensor.shape[0], process_set
        return found

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return own_rows([gradient], [ctx.rows], ctx.process_set)[0], None, None


def allgather(tensor: Any, name: Optional[str] = None, process_set: ProcessSet = global_process_set) -> Any:
    """The ranks' tensors, one after the other along the first dimension, which may differ."""
    return HorovodAllgather.apply(tensor, name, process_set)


class HorovodGroupedAllgather(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, name: Optional[str], process_set: ProcessSet, *tensors: Any) -> Any:
        found = synchronize(grouped_allgather_async(list(tensors), name, process_set))
        ctx.rows, ctx.process_set = [tensor.shape[0] for tensor in tensors], process_set
        return found

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return (None, None, *own_rows(gradients, ctx.rows, ctx.process_set))


def grouped_allgather(tensors: Sequence[Any], name: Optional[str] = None,
                      process_set: ProcessSet = global_process_set) -> Any:
    """allgather() of several tensors; all ranks give equally many."""
    return HorovodGroupedAllgather.apply(name, process_set, *tensors)


# ---- broadcast ----


def broadcast_async(tensor: Any, root_rank: int, name: Optional[str] = None,
                    process_set: ProcessSet = global_process_set) -> int:
    """Starts broadcast(); returns a handle for poll() and synchronize()."""
    return start(Broadcast(tensor, fresh(tensor), root_rank, name, engine_of(process_set).ranks), process_set)


def broadcast_async_(tensor: Any, root_rank: int, name: Optional[str] = None,
                     process_set: ProcessSet = global_process_set) -> int:
    """Starts broadcast_(); returns a handle for poll() and synchronize()."""
    return start(Broadcast(tensor, tensor, root_rank, name, engine_of(process_set).ranks), process_set)


class HorovodBroadcast(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, tensor: Any, root_rank: int, name: Optional[str], process_set: ProcessSet) -> Any:
        engine = engine_of(process_set)
        ctx.is_root, ctx.process_set = engine.ranks[engine.comm.rank] == root_rank, process_set
        return synchronize(broadcast_async(tensor, root_rank, name, process_set))

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        mean = allreduce(gradient, op=Average, process_set=ctx.process_set)
        return mean if ctx.is_root else torch.zeros_like(mean), None, None, None


def broadcast(tensor: Any, root_rank: int, name: Optional[str] = None,
              process_set: ProcessSet = global_process_set) -> Any:
    """The root's tensor; a new tensor. root_rank is a rank of the whole job."""
    return HorovodBroadcast.apply(tensor, root_rank, name, process_set)


def broadcast_(tensor: Any, root_rank: int, name: Optional[str] = None,
               process_set: ProcessSet = global_process_set) -> Any:
    """As broadcast(), into the tensor itself."""
    return synchronize(broadcast_async_(tensor, root_rank, name, process_set))


# ---- all-to-all ----


def alltoall_async(tensor: Any, splits: Any = None, name: Optional[str] = None,
                   process_set: ProcessSet = global_process_set) -> int:
    """Starts alltoall(); synchronize() returns the tensor and how many rows came from each rank."""
    return start(Alltoall(tensor, splits, name, len(engine_of(process_set).ranks)), process_set)


class HorovodAlltoall(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, tensor: Any, splits: Any, name: Optional[str], process_set: ProcessSet) -> Any:
        found, received = synchronize(alltoall_async(tensor, splits, name, process_set))
        ctx.received, ctx.process_set = received, process_set
        if splits is None:
            return found
        ctx.mark_non_differentiable(received)
        return found, received

    @staticmethod
    def backward(ctx: Any, gradient: Any, *_: Any) -> Any:
        found, _ = synchronize(alltoall_async(gradient, ctx.received, None, ctx.process_set))
        return found, None, None, None


def alltoall(tensor: Any, splits: Any = None, name: Optional[str] = None,
             process_set: ProcessSet = global_process_set) -> Any:
    """Rows of the first dimension for each rank: splits[r] for rank r, or equally many. With splits the result is the
    tensor and how many rows came from each rank, else the tensor."""
    return HorovodAlltoall.apply(tensor, splits, name, process_set)


# ---- reduce-scatter ----


def reducescatter_async(tensor: Any, name: Optional[str] = None, op: int = Average,
                        process_set: ProcessSet = global_process_set, prescale_factor: float = 1.0,
                        postscale_factor: float = 1.0) -> int:
    """Starts reducescatter(); returns a handle for poll() and synchronize()."""
    return start(Reducescatter(tensor, name, op, prescale_factor, postscale_factor), process_set)


def grouped_reducescatter_async(tensors: Sequence[Any], name: Optional[str] = None, op: int = Average,
                                process_set: ProcessSet = global_process_set, prescale_factor: float = 1.0,
                                postscale_factor: float = 1.0) -> int:
    """Starts grouped_reducescatter(); returns a handle for poll() and synchronize()."""
    return start_group([Reducescatter(tensor, member_name(name, index, len(tensors)), op, prescale_factor,
                                      postscale_factor) for index, tensor in enumerate(tensors)], process_set)


class HorovodGroupedReducescatter(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, name: Optional[str], op: int, process_set: ProcessSet, prescale: float, postscale: float,
                *tensors: Any) -> Any:
        ctx.process_set = process_set
        ctx.factor = prescale * postscale * (len(engine_of(process_set).ranks) if op == Sum else 1)
        return synchronize(grouped_reducescatter_async(list(tensors), name, op, process_set, prescale, postscale))

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        parts = [gradient * ctx.factor if ctx.factor != 1 else gradient for gradient in gradients]
        return (*[None] * 5, *grouped_allgather(parts, process_set=ctx.process_set))


def grouped_reducescatter(tensors: Sequence[Any], name: Optional[str] = None, compression: Any = Compression.none,
                          op: int = Average, process_set: ProcessSet = global_process_set, prescale_factor: float = 1.0,
                          postscale_factor: float = 1.0) -> List[Any]:
    """reducescatter() of several tensors; all ranks give equally many."""
    pairs = [compression.compress(tensor) for tensor in tensors]
    found = HorovodGroupedReducescatter.apply(name, op, process_set, prescale_factor, postscale_factor,
                                              *[tensor for tensor, _ in pairs])
    return [compression.decompress(tensor, context) for tensor, (_, context) in zip(found, pairs)]


class HorovodReducescatter(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, tensor: Any, name: Optional[str], op: int, process_set: ProcessSet, prescale: float,
                postscale: float) -> Any:
        ctx.process_set = process_set
        ctx.factor = prescale * postscale * (len(engine_of(process_set).ranks) if op == Sum else 1)
        return synchronize(reducescatter_async(tensor, name, op, process_set, prescale, postscale))

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        part = gradient * ctx.factor if ctx.factor != 1 else gradient
        return (allgather(part, process_set=ctx.process_set), *[None] * 5)


def reducescatter(tensor: Any, name: Optional[str] = None, compression: Any = Compression.none, op: int = Average,
                  process_set: ProcessSet = global_process_set, prescale_factor: float = 1.0,
                  postscale_factor: float = 1.0) -> Any:
    """This rank's rows of the mean (or another op) of the ranks' tensors. If the rows are no multiple of the ranks, the
    first ranks get one more."""
    sent, context = compression.compress(tensor)
    found = HorovodReducescatter.apply(sent, name, op, process_set, prescale_factor, postscale_factor)
    return compression.decompress(found, context)
