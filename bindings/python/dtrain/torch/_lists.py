"""Collectives on lists of tensors. A list whose tensors lie one after the other, as the chunks of one tensor do,
travels without a copy. Large tensors of all-gathers and reduce-scatters travel each by itself, wherever they lie.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
from typing import Any, List, Sequence, Tuple

from .. import _dtrain
from ._collectives import REDUCE_SCATTER, Collectives
from ._operations import only
from ._reduce import find, for_dtype
from ._tensors import all_of, check, check_alike, joined, wire
from ._torch import Tensor, c10d, torch
from ._work import Work

Call = Tuple[Any, Tuple[Any, ...]]
GATHER: Any = c10d.GatherOptions()
SCATTER: Any = c10d.ScatterOptions()
LEAST_APART = 1 << 18  #: bytes of tensors (their mean) that travel by themselves
MOST_APART = 16  #: ranks; each has a call


def list_of(lists: Any, name: str, size: int) -> List[Any]:
    """A tensor for each rank, of a list of lists with one list for each device, or of the list itself."""
    if lists and isinstance(lists[0], Tensor):
        found = list(lists)
    else:
        if len(lists) != 1:
            raise ValueError(f"{name}: a list of {size} tensors is needed, one for each rank, not {len(lists)} lists")
        found = list(lists[0])
    if len(found) != size:
        raise ValueError(f"{name}: {len(found)} tensors for {size} ranks; one for each is needed")
    return found


def check_equal(tensors: Sequence[Any], one: Any, name: str) -> None:
    """Each is as large as the tensor that goes there or comes from there."""
    for index, tensor in enumerate(tensors):
        if tensor.numel() != one.numel() or tensor.dtype != one.dtype:
            raise ValueError(f"{name}[{index}]: {tensor.numel()} elements of {tensor.dtype}, but this rank's tensor has "
                             f"{one.numel()} of {one.dtype}; all need the same")


def apart(tensors: Sequence[Any]) -> bool:
    """Whether the tensors, one for each rank, travel each by itself: a copy of them all would take longer than more calls.
    Says the same on all ranks, for tensors of the same sizes."""
    size = len(tensors)
    return 1 < size <= MOST_APART and sum(one.numel() * one.element_size() for one in tensors) >= LEAST_APART * size


class Lists(Collectives):
    def allgather(self, output_tensors: Any, input_tensors: Any, opts: Any = None) -> Work:
        given = only(input_tensors, "input")
        outputs = list_of(output_tensors, "outputs", self._comm.size)
        if apart(outputs):
            return self._gather_apart(outputs, given, opts)
        call, finish = self._gather_to(outputs, given)
        return self._post("all_gather", *call, [outputs], finish, opts)

    def _gather_apart(self, outputs: Sequence[Any], given: Any, opts: Any) -> Work:
        """Each rank broadcasts its tensor."""
        check_alike(outputs, "outputs")
        check(given, "input")
        mine = outputs[self._comm.rank]
        if mine.numel() != given.numel() or mine.dtype != given.dtype:
            raise ValueError(f"outputs[{self._comm.rank}]: {mine.numel()} elements of {mine.dtype}, but the input has "
                             f"{given.numel()} of {given.dtype}; both need the same")
        with torch.no_grad():
            mine.copy_(given.reshape(mine.shape))
        arrays = [wire(output, f"outputs[{rank}]", True) for rank, output in enumerate(outputs)]
        return self._post_all("all_gather", [(_dtrain.dtrain_broadcast, (array.tensor, rank))
                                             for rank, array in enumerate(arrays)],
                              [outputs], all_of(*(array.finish for array in arrays)), opts)

    def allgather_coalesced(self, output_lists: Any, input_list: Any, opts: Any = None) -> Work:
        """output_lists[r][i]: input i of rank r."""
        list_of([output_lists], "output_lists", self._comm.size)
        made = [self._gather_to([outputs[index] for outputs in output_lists], given)
                for index, given in enumerate(input_list)]
        return self._post_all("all_gather_coalesced", [call for call, _ in made], output_lists,
                              all_of(*(finish for _, finish in made)), opts)

    def _gather_to(self, outputs: Sequence[Any], given: Any) -> Tuple[Call, Any]:
        sent = wire(given, "input", False)
        received = joined(outputs, "outputs", True)
        if outputs[0].dtype != given.dtype:
            raise ValueError(f"outputs: {outputs[0].dtype}, but the input is {given.dtype}; both need one dtype")
        if all(output.numel() == given.numel() for output in outputs):
            return (_dtrain.dtrain_allgather, (sent.tensor, received.tensor)), received.finish
        scale = received.tensor.numel() // max(sum(output.numel() for output in outputs), 1)
        counts = torch.tensor([output.numel() * scale for output in outputs], dtype=torch.int64)
        return (_dtrain.dtrain_allgatherv, (sent.tensor, received.tensor, counts, None, 0)), received.finish

    def gather(self, output_tensors: Any, input_tensors: Any, opts: Any = GATHER) -> Work:
        given = only(input_tensors, "input")
        root = opts if isinstance(opts, int) else opts.rootRank
        sent, outputs, array, finish = wire(given, "input", False), [], None, None
        if self._comm.rank == root:
            outputs = list_of(output_tensors, "outputs", self._comm.size)
            check_equal(outputs, given, "outputs")
            array, finish = joined(outputs, "outputs", True)
        return self._post("gather", _dtrain.dtrain_gather, (sent.tensor, array, root), [outputs], finish, opts)

    def scatter(self, output_tensors: Any, input_tensors: Any, opts: Any = SCATTER) -> Work:
        output = only(output_tensors, "output")
        root = opts if isinstance(opts, int) else opts.rootRank
        received, array = wire(output, "output", True), None
        if self._comm.rank == root:
            inputs = list_of(input_tensors, "inputs", self._comm.size)
            check_equal(inputs, output, "inputs")
            array = joined(inputs, "inputs", False).tensor
        return self._post("scatter", _dtrain.dtrain_scatter, (array, received.tensor, root), [output], received.finish,
                          opts)

    def reduce_scatter(self, output_tensors: Any, input_tensors: Any, opts: Any = REDUCE_SCATTER) -> Work:
        output = only(output_tensors, "output")
        inputs = list_of(input_tensors, "inputs", self._comm.size)
        if inputs[self._comm.rank].numel() != output.numel() or inputs[0].dtype != output.dtype:
            raise ValueError(f"output: {output.numel()} elements of {output.dtype}, but inputs[{self._comm.rank}] has "
                             f"{inputs[self._comm.rank].numel()} of {inputs[0].dtype}; both need the same")
        reduction = find(getattr(opts, "reduceOp", opts))
        op = for_dtype(reduction.op, output.dtype)
        received = wire(output, "output", True, True)
        if apart(inputs):
            check_alike(inputs, "inputs")
            calls = [(_dtrain.dtrain_reduce, (wire(given, f"inputs[{rank}]", False, True).tensor,
                                              received.tensor if rank == self._comm.rank else None, op, rank))
                     for rank, given in enumerate(inputs)]
            return self._post_all("reduce_scatter", calls, [output], received.finish, opts, reduction.factor)
        sent = joined(inputs, "inputs", False, True)
        if all(given.numel() == output.numel() for given in inputs):
            call: Call = _dtrain.dtrain_reduce_scatter, (sent.tensor, received.tensor, op)
        else:
            scale = sent.tensor.numel() // max(sum(given.numel() for given in inputs), 1)
            counts = torch.tensor([given.numel() * scale for given in inputs], dtype=torch.int64)
            call = _dtrain.dtrain_reduce_scatterv, (sent.tensor, received.tensor, counts, 0, op)
        return self._post("reduce_scatter", *call, [output], received.finish, opts, reduction.factor)

    def alltoall(self, output_tensors: Any, input_tensors: Any, opts: Any = None) -> Work:
        size = self._comm.size
        outputs = list_of([output_tensors], "outputs", size)
        inputs = list_of([input_tensors], "inputs", size)
        received, sent = joined(outputs, "outputs", True), joined(inputs, "inputs", False)
        if outputs[0].dtype != inputs[0].dtype:
            raise ValueError(f"outputs: {outputs[0].dtype}, but the inputs are {inputs[0].dtype}; both need one dtype")
        scale = 2 if outputs[0].is_complex() else 1
        counts = [torch.tensor([tensor.numel() * scale for tensor in tensors], dtype=torch.int64)
                  for tensors in (inputs, outputs)]
        return self._post("all_to_all", _dtrain.dtrain_alltoallv,
                          (sent.tensor, counts[0], None, received.tensor, counts[1], None, 0), outputs, received.finish,
                          opts)
