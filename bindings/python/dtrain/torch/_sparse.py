"""All-reduce of sparse tensors (of gradients of embeddings, say): all ranks gather the elements of all, and add them up
in the order of the ranks, so that results are equal everywhere.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
from typing import Any, List

from .. import _dtrain
from .._constants import Op
from ._reduce import Reduction
from ._tensors import wire
from ._torch import torch
from ._work import Work


def allreduce_sparse(group: Any, tensor: Any, reduction: Reduction, opts: Any) -> Work:
    """Returns when the result is in the tensor."""
    if tensor.layout != torch.sparse_coo:
        raise RuntimeError(f"tensor: dtrain's all-reduce takes sparse tensors of layout torch.sparse_coo, not "
                           f"{tensor.layout}")
    if reduction.op not in (Op.SUM, Op.AVG):
        raise RuntimeError(f"op: {reduction.op.name} of sparse tensors; SUM and AVG are possible")
    with group._recorded("all_reduce"):
        return add_up(group, tensor, reduction, getattr(opts, "timeout", None))


def add_up(group: Any, tensor: Any, reduction: Reduction, timeout: Any) -> Work:
    own = tensor.detach().coalesce()
    if reduction.factor is not None:
        own = own * reduction.factor
    indices, values = own.indices().t().contiguous(), own.values().contiguous()
    counts = agree(group, own, timeout)
    all_indices = gather(group, indices, counts, timeout)
    all_values = gather(group, values, counts, timeout)
    total = torch.sparse_coo_tensor(all_indices.t(), all_values, own.shape).to(own.device).coalesce()
    if reduction.op == Op.AVG:
        total = total / len(counts)
    with torch.no_grad():
        tensor.copy_(total)  # detach() would give a sparse tensor of its own
    return group._ended("all_reduce", [tensor])


def agree(group: Any, own: Any, timeout: Any) -> List[int]:
    """How many elements each rank has; all need tensors of one shape."""
    size = group._comm.size
    shape = list(own.shape)
    mine = torch.tensor([own._nnz(), own.sparse_dim(), len(shape), *shape[:13], *[0] * (13 - len(shape))], dtype=torch.int64)
    found = torch.empty((size, 16), dtype=torch.int64)
    group._run("all_reduce of a sparse tensor", _dtrain.dtrain_allgather, (mine, found), timeout)
    for rank, other in enumerate(found.tolist()):
        if other[1:] != mine.tolist()[1:]:
            raise RuntimeError(f"tensor: rank {rank} has a sparse tensor of shape {other[3:3 + other[2]]} with {other[1]} "
                               f"sparse dimensions, this rank one of shape {shape} with {own.sparse_dim()}; all need "
                               "the same")
    return [one[0] for one in found.tolist()]


def gather(group: Any, own: Any, counts: List[int], timeout: Any) -> Any:
    """The rows of all ranks, one after the other."""
    rows = torch.empty((sum(counts), *own.shape[1:]), dtype=own.dtype, device="cpu")
    sent, received = wire(own, "tensor", False), wire(rows, "tensor", True)
    width = received.tensor.numel() // max(rows.shape[0], 1)
    lengths = torch.tensor([count * width for count in counts], dtype=torch.int64)
    group._run("all_reduce of a sparse tensor", _dtrain.dtrain_allgatherv, (sent.tensor, received.tensor, lengths, None, 0),
               timeout)
    return rows
