"""Collectives on single tensors, under the names that torch.distributed calls.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
from typing import Any

from .. import _dtrain
from ._operations import Group, only
from ._reduce import find, for_dtype
from ._sparse import allreduce_sparse
from ._tensors import Array, all_of, as_numbers, wire
from ._torch import Tensor, c10d, torch
from ._work import Work

ReduceOp: Any = c10d.ReduceOp
ALLREDUCE: Any = c10d.AllreduceOptions()
BROADCAST: Any = c10d.BroadcastOptions()
REDUCE: Any = c10d.ReduceOptions()
REDUCE_SCATTER: Any = c10d.ReduceScatterOptions()


class Collectives(Group):
    """The tensors are used in place; those that are not contiguous are copied, and back if they hold a result."""

    def allreduce(self, tensors: Any, opts: Any = ALLREDUCE) -> Work:
        tensor = only(tensors, "tensors")
        reduction = find(getattr(opts, "reduceOp", opts))
        if tensor.layout is not torch.strided:
            return allreduce_sparse(self, tensor, reduction, opts)
        array, finish = wire(tensor, "tensor", True, True)
        op = reduction.op if tensor.dtype is array.dtype else for_dtype(reduction.op, tensor.dtype)
        return self._post("all_reduce", _dtrain.dtrain_allreduce, (array, None, op), [tensor], finish, opts,
                          reduction.factor)

    def allreduce_coalesced(self, tensors: Any, opts: Any = ALLREDUCE) -> Work:
        """Each tensor is reduced in place."""
        reduction = find(getattr(opts, "reduceOp", opts))
        arrays = [wire(tensor, f"tensors[{index}]", True, True) for index, tensor in enumerate(tensors)]
        return self._post_all("all_reduce_coalesced", [
            (_dtrain.dtrain_allreduce, (array.tensor, None, for_dtype(reduction.op, tensor.dtype)))
            for tensor, array in zip(tensors, arrays)],
            list(tensors), all_of(*(array.finish for array in arrays)), opts, reduction.factor)

    def broadcast(self, tensors: Any, opts: Any = BROADCAST) -> Work:
        tensor = only(tensors, "tensors")
        root = opts if isinstance(opts, int) else opts.rootRank
        array, finish = wire(tensor, "tensor", True)
        return self._post("broadcast", _dtrain.dtrain_broadcast, (array, root), [tensor],
                          finish if self._comm.rank != root else None, opts)

    def reduce(self, tensors: Any, opts: Any = REDUCE, op: Any = ReduceOp.SUM) -> Work:
        tensor = only(tensors, "tensors")
        root = opts if isinstance(opts, int) else opts.rootRank
        reduction = find(getattr(opts, "reduceOp", op))
        array, finish = wire(tensor, "tensor", True, True)
        return self._post("reduce", _dtrain.dtrain_reduce,
                          (array, None, for_dtype(reduction.op, tensor.dtype), root), [tensor],
                          finish if self._comm.rank == root else None, opts, reduction.factor)

    def all_gather_single(self, output: Any, input: Any, opts: Any = None) -> Work:  # pylint: disable=redefined-builtin
        """output: the inputs of all ranks, one after the other."""
        same_dtype(output, input)
        sent, received = wire(input, "input", False), wire(output, "output", True)
        return self._post("all_gather_into_tensor", _dtrain.dtrain_allgather, (sent.tensor, received.tensor), [output],
                          received.finish, opts)

    _allgather_base = all_gather_single

    def reduce_scatter_single(self, output: Any, input: Any,  # pylint: disable=redefined-builtin
                              opts: Any = REDUCE_SCATTER) -> Work:
        """output: this rank's part of the reduced inputs."""
        same_dtype(output, input)
        reduction = find(opts.reduceOp)
        sent, received = wire(input, "input", False, True), wire(output, "output", True, True)
        return self._post("reduce_scatter_tensor", _dtrain.dtrain_reduce_scatter,
                          (sent.tensor, received.tensor, for_dtype(reduction.op, input.dtype)), [output],
                          received.finish, opts, reduction.factor)

    _reduce_scatter_base = reduce_scatter_single

    def all_gather_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        arrays = [(wire(sent, f"inputs[{index}]", False), wire(received, f"outputs[{index}]", True))
                  for index, (received, sent) in enumerate(zip(outputs, inputs))]
        return self._post_all("all_gather_into_tensor_coalesced", [
            (_dtrain.dtrain_allgather, (sent.tensor, received.tensor)) for sent, received in arrays],
            list(outputs), all_of(*(received.finish for _, received in arrays)), opts)

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def reduce_scatter_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = REDUCE_SCATTER) -> Work:
        reduction = find(opts.reduceOp)
        arrays = [(wire(sent, f"inputs[{index}]", False, True), wire(received, f"outputs[{index}]", True, True),
                   for_dtype(reduction.op, sent.dtype))
                  for index, (received, sent) in enumerate(zip(outputs, inputs))]
        return self._post_all("reduce_scatter_tensor_coalesced", [
            (_dtrain.dtrain_reduce_scatter, (sent.tensor, received.tensor, op)) for sent, received, op in arrays],
            list(outputs), all_of(*(received.finish for _, received, _ in arrays)), opts, reduction.factor)

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    def all_to_all_single(self, output: Any, input: Any,  # pylint: disable=redefined-builtin
                          output_split_sizes: Any = None, input_split_sizes: Any = None, opts: Any = None) -> Work:
        """Splits are rows (of the first dimension) for each rank; none: equal parts."""
        same_dtype(output, input)
        sent, received = wire(input, "input", False), wire(output, "output", True)
        if not output_split_sizes and not input_split_sizes:
            return self._post("all_to_all_single", _dtrain.dtrain_alltoall, (sent.tensor, received.tensor), [output],
                              received.finish, opts)
        size = self._comm.size
        counts = [split_counts(array, tensor, splits, size, name) for array, tensor, splits, name in (
            (sent, input, input_split_sizes, "input"), (received, output, output_split_sizes, "output"))]
        return self._post("all_to_all_single", _dtrain.dtrain_alltoallv,
                          (sent.tensor, counts[0], None, received.tensor, counts[1], None, 0), [output], received.finish, opts)

    alltoall_base = all_to_all_single

    def barrier(self, opts: Any = None) -> Work:
        return self._post("barrier", _dtrain.dtrain_barrier, (), [], None, opts)


def same_dtype(output: Any, given: Any) -> None:
    if output.dtype != given.dtype:
        raise ValueError(f"output: {output.dtype}, but the input is {given.dtype}; both need one dtype")


def split_counts(array: Array, tensor: Any, splits: Any, size: int, name: str) -> Any:
    """Elements of each rank's part, as the array travels."""
    rows = tensor.shape[0] if tensor.dim() else 0
    if not splits:
        if rows % size != 0:
            raise ValueError(f"{name}: its {rows} rows are not {size} equal parts")
        splits = [rows // size] * size
    if len(splits) != size:
        raise ValueError(f"{name}_split_sizes: {len(splits)} numbers for {size} ranks")
    if sum(splits) != rows or min(splits) < 0:
        raise ValueError(f"{name}_split_sizes: {list(splits)} are not the {rows} rows of the {name}")
    width = array.tensor.numel() // rows if rows else 0
    return torch.tensor([split * width for split in splits], dtype=torch.int64)
