"""All-reduce: of one tensor, of several, of sparse ones; asynchronous, in place, with gradients.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
import warnings
from typing import Any, Callable, List, Optional, Sequence

from ..common.basics import Average, Sum
from ..common.process_sets import ProcessSet, engine_of, global_process_set
from ._calls import Allreduce
from ._handles import run, start, start_group, synchronize
from ._names import member_name
from ._tensors import torch
from .compression import Compression


def chosen(op: Optional[int], average: Optional[bool]) -> int:
    """The op, from the argument that Horovod had before it."""
    if average is None:
        return Average if op is None else op
    if op is not None:
        raise ValueError("The op parameter supersedes average. Please provide only one of them.")
    warnings.warn("Parameter `average` has been replaced with `op`", DeprecationWarning, stacklevel=3)
    return Average if average else Sum


def fresh(tensor: Any) -> Any:
    return torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)


def allreduce_async(tensor: Any, average: Optional[bool] = None, name: Optional[str] = None, op: Optional[int] = None,
                    prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                    process_set: ProcessSet = global_process_set) -> int:
    """Starts allreduce(); returns a handle for poll() and synchronize()."""
    return start(Allreduce(tensor, fresh(tensor), name, chosen(op, average), prescale_factor, postscale_factor),
                 process_set)


def allreduce_async_(tensor: Any, average: Optional[bool] = None, name: Optional[str] = None, op: Optional[int] = None,
                     prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                     process_set: ProcessSet = global_process_set) -> int:
    """Starts allreduce_(); returns a handle for poll() and synchronize()."""
    return start(Allreduce(tensor, tensor, name, chosen(op, average), prescale_factor, postscale_factor), process_set)


def allreduce_(tensor: Any, average: Optional[bool] = None, name: Optional[str] = None, op: Optional[int] = None,
               prescale_factor: float = 1.0, postscale_factor: float = 1.0,
               process_set: ProcessSet = global_process_set) -> Any:
    """As allreduce(), with the result in the tensor itself."""
    return run(Allreduce(tensor, tensor, name, chosen(op, average), prescale_factor, postscale_factor), process_set)


class HorovodAllreduce(torch.autograd.Function):  # type: ignore[misc]
    """The gradient of a sum is the sum of the gradients."""

    @staticmethod
    def forward(ctx: Any, tensor: Any, name: Optional[str], op: int, prescale: float, postscale: float,
                process_set: ProcessSet) -> Any:
        ctx.how = {"name": None if name is None else f"{name}.gradient", "op": op, "prescale_factor": prescale,
                   "postscale_factor": postscale, "process_set": process_set}
        return run(Allreduce(tensor, fresh(tensor), name, op, prescale, postscale), process_set)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return (allreduce(gradient, **ctx.how), *[None] * 5)


def allreduce(tensor: Any, average: Optional[bool] = None, name: Optional[str] = None,
              compression: Any = Compression.none, op: Optional[int] = None, prescale_factor: float = 1.0,
              postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set) -> Any:
    """The mean (or another op) of the ranks' tensors of this name; a new tensor. Gradients flow through it."""
    sent, context = compression.compress(tensor)
    found = HorovodAllreduce.apply(sent, name, chosen(op, average), prescale_factor, postscale_factor, process_set)
    return compression.decompress(found, context)


# ---- several tensors ----


def group(tensors: Sequence[Any], outputs: Sequence[Any], name: Optional[str], op: int, prescale: float,
          postscale: float, process_set: ProcessSet) -> int:
    count = len(tensors)
    return start_group([Allreduce(tensor, output, member_name(name, index, count), op, prescale, postscale)
                        for index, (tensor, output) in enumerate(zip(tensors, outputs))], process_set)


def grouped_allreduce_async(tensors: Sequence[Any], average: Optional[bool] = None, name: Optional[str] = None,
                            op: Optional[int] = None, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                            process_set: ProcessSet = global_process_set) -> int:
    """Starts grouped_allreduce(); returns a handle for poll() and synchronize()."""
    return group(tensors, [fresh(tensor) for tensor in tensors], name, chosen(op, average), prescale_factor,
                 postscale_factor, process_set)


def grouped_allreduce_async_(tensors: Sequence[Any], average: Optional[bool] = None, name: Optional[str] = None,
                             op: Optional[int] = None, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                             process_set: ProcessSet = global_process_set) -> int:
    """Starts grouped_allreduce_(); returns a handle for poll() and synchronize()."""
    return group(tensors, tensors, name, chosen(op, average), prescale_factor, postscale_factor, process_set)


def grouped_allreduce_(tensors: Sequence[Any], average: Optional[bool] = None, name: Optional[str] = None,
                       op: Optional[int] = None, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                       process_set: ProcessSet = global_process_set) -> Any:
    """As grouped_allreduce(), with the results in the tensors themselves."""
    return synchronize(grouped_allreduce_async_(tensors, average, name, op, prescale_factor, postscale_factor,
                                                process_set))


class HorovodGroupedAllreduce(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, name: Optional[str], op: int, prescale: float, postscale: float, process_set: ProcessSet,
                *tensors: Any) -> Any:
        ctx.how = {"op": op, "prescale_factor": prescale, "postscale_factor": postscale, "process_set": process_set}
        return synchronize(grouped_allreduce_async(list(tensors), name=name, **ctx.how))

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return (*[None] * 5, *grouped_allreduce(list(gradients), **ctx.how))


def grouped_allreduce(tensors: Sequence[Any], average: Optional[bool] = None, name: Optional[str] = None,
                      compression: Any = Compression.none, op: Optional[int] = None, prescale_factor: float = 1.0,
                      postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set) -> List[Any]:
    """allreduce() of several tensors; all ranks give equally many."""
    pairs = [compression.compress(tensor) for tensor in tensors]
    found = HorovodGroupedAllreduce.apply(name, chosen(op, average), prescale_factor, postscale_factor, process_set,
                                          *[tensor for tensor, _ in pairs])
    return [compression.decompress(tensor, context) for tensor, (_, context) in zip(found, pairs)]


# ---- sparse tensors ----


def sparse_allreduce_async(tensor: Any, name: str, op: int,
                           process_set: ProcessSet = global_process_set) -> Callable[[], Any]:
    """Gathers the elements of all ranks. The result is a function that waits, and returns the sum or mean: sparse, and
    not coalesced."""
    from ._gather import allgather_async  # pylint: disable=import-outside-toplevel,cyclic-import
    if op not in (Average, Sum):
        raise NotImplementedError("sparse_allreduce_async: op must be Average or Sum")
    ranks = len(engine_of(process_set).ranks)
    indices = allgather_async(tensor._indices().t().contiguous(), f"{name}.indices", process_set)
    values = allgather_async(tensor._values(), f"{name}.values", process_set)

    def wait() -> Any:
        all_values, all_indices = synchronize(values), synchronize(indices)
        if op == Average:
            all_values = all_values / ranks
        return torch.sparse_coo_tensor(all_indices.t(), all_values, tensor.shape)
    return wait
