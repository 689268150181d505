"""Operations of tensors.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
from typing import Any, List, Optional, Sequence, Tuple

from ..._communicator import Communicator
from ..._constants import Op
from ..common._call import Call
from ..common._request import NOT_GIVEN, Request
from ..common.basics import Adasum, Average, Max, Min, Product, Sum
from ..common.exceptions import RefusedError
from ._tensors import (FLOATS, as_bytes, as_numbers, checked, dtype_name, on_host, row_bytes, same_memory, scaled,
                       torch, trailing)

OPS = {Average: Op.AVG, Sum: Op.SUM, Adasum: Op.ADASUM, Min: Op.MIN, Max: Op.MAX, Product: Op.PROD}
LINEAR = (Average, Sum)
WRONG_OP, NO_DIMENSIONS, NO_MULTIPLE, WRONG_LENGTH, WRONG_SPLITS, WRONG_TYPE = 6, 1, 2, 3, 4, 5


def request_of(kind: str, tensor: Any, **more: Any) -> Request:
    return Request(kind, dtype_name(tensor), tuple(tensor.shape), **more)


def reduction_fault(tensor: Any, op: int) -> int:
    """Adasum is for floating-point numbers, and complex ones have an order only for sums."""
    name = dtype_name(tensor)
    allowed = op in LINEAR or (name in FLOATS if op == Adasum else not tensor.is_complex())
    return 0 if allowed and op in OPS else WRONG_OP


class TensorCall(Call):
    """Of one tensor. `output` is what synchronize() returns."""

    def __init__(self, request: Request, name: Optional[str], tensor: Any) -> None:
        super().__init__(request, name)
        self.tensor = tensor
        self.output: Any = None

    def placed(self, result: Any) -> Any:
        """The result on the device of the tensor."""
        return result if result.device == self.tensor.device else result.to(self.tensor.device)


class Allreduce(TensorCall):
    """output: the tensor itself for an operation in place."""

    def __init__(self, tensor: Any, output: Any, name: Optional[str], op: int, prescale: float,
                 postscale: float) -> None:
        checked(tensor, True)
        super().__init__(request_of("allreduce", tensor, op=op, prescale=prescale, postscale=postscale,
                                    fault=reduction_fault(tensor, op)), name, tensor)
        self.output = output
        plain = output.detach()
        direct = plain.is_contiguous() and not plain.is_cuda and not plain.is_neg() and not plain.is_conj()
        self._sum = plain if direct else torch.empty(plain.shape, dtype=plain.dtype)
        source = on_host(tensor)
        if prescale != 1.0:
            source = scaled(source, prescale, self._sum)
        elif not direct:
            source = self._sum.copy_(source)
        self._source = source

    @property
    def array(self) -> Any:
        direct = self.request.op != Adasum and not self.request.fault and self._sum.numel() > 0
        return as_numbers(self._source) if direct else None

    @property
    def out(self) -> Any:
        return None if same_memory(self._source, self._sum) else as_numbers(self._sum)

    @property
    def op(self) -> Any:
        return OPS.get(self.request.op)

    def run(self, comm: Communicator, requests: Sequence[Request]) -> None:
        if self._sum.numel() > 0:
            comm.allreduce(as_numbers(self._source), self.out, self.op)

    def finish(self) -> None:
        if self.request.postscale != 1.0:
            scaled(self._sum, self.request.postscale, self._sum)
        if not same_memory(self._sum, self.output):
            with torch.no_grad():
                self.output.copy_(self._sum)


class Allgather(TensorCall):
    def __init__(self, tensor: Any, name: Optional[str]) -> None:
        checked(tensor, False)
        super().__init__(request_of("allgather", tensor, fault=NO_DIMENSIONS if tensor.dim() == 0 else 0), name, tensor)
        self._source = on_host(tensor)

    def run(self, comm: Communicator, requests: Sequence[Request]) -> None:
        rows = [request.shape[0] for request in requests]
        found = torch.empty((sum(rows), *self._source.shape[1:]), dtype=self._source.dtype)
        if found.numel() > 0:
            width = row_bytes(found)
            comm.allgatherv(as_bytes(self._source), as_bytes(found), [count * width for count in rows])
        self.output = found

    def finish(self) -> None:
        self.output = self.placed(self.output)


class Broadcast(TensorCall):
    """ranks: those of the process set, which root_rank is one of."""

    def __init__(self, tensor: Any, output: Any, root_rank: int, name: Optional[str], ranks: Sequence[int]) -> None:
        checked(tensor, False)
        if root_rank not in ranks:
            raise ValueError(f"broadcast: root_rank {root_rank} is none of the ranks {list(ranks)}")
        super().__init__(request_of("broadcast", tensor, root=root_rank), name, tensor)
        self.output = output
        self._root = ranks.index(root_rank)
        self._held: Any = None

    def run(self, comm: Communicator, requests: Sequence[Request]) -> None:
        plain = self.output.detach()
        own = plain.is_contiguous() and not plain.is_cuda and not plain.is_neg() and not plain.is_conj()
        self._held = plain if own else torch.empty(plain.shape, dtype=plain.dtype)
        if comm.rank == self._root and not same_memory(self._held, self.tensor):
            self._held.copy_(self.tensor.detach())
        if plain.numel() > 0:
            comm.broadcast(as_bytes(self._held), root=self._root)

    def finish(self) -> None:
        if not same_memory(self._held, self.output):
            with torch.no_grad():
                self.output.copy_(self._held)


class Alltoall(TensorCall):
    """output: the tensor of what was received, and how many rows came from each rank."""

    def __init__(self, tensor: Any, splits: Any, name: Optional[str], size: int) -> None:
        checked(tensor, False)
        self.with_splits = splits is not None
        self._device = splits.device if isinstance(splits, torch.Tensor) else torch.device("cpu")
        counts, fault = rows_for_each(tensor, splits, size)
        super().__init__(request_of("alltoall", tensor, fault=fault), name, tensor)
        self._counts = counts
        self._source = on_host(tensor)

    def run(self, comm: Communicator, requests: Sequence[Request]) -> None:
        sent = torch.tensor(self._counts, dtype=torch.int64)
        received = torch.empty(len(requests), dtype=torch.int64)
        comm.alltoall(sent, received)
        counts: List[int] = received.tolist()
        for count, request in zip(counts, requests):
            if not 0 <= count <= request.shape[0]:
                raise RefusedError(f"{self.name}: a rank sends {count} rows of its tensor of {request.shape[0]}")
        found = torch.empty((sum(counts), *self._source.shape[1:]), dtype=self._source.dtype)
        width = trailing(self._source.shape) * self._source.element_size()
        if width > 0:
            comm.alltoallv(as_bytes(self._source)[:sum(self._counts) * width],
                           [count * width for count in self._counts],
                           as_bytes(found), [count * width for count in counts])
        self.output = found, received.to(torch.int32)

    def finish(self) -> None:
        found, received = self.output
        self.output = self.placed(found), received.to(self._device)


def rows_for_each(tensor: Any, splits: Any, size: int) -> Tuple[List[int], int]:
    """How many rows go to each rank, and what is wrong with that."""
    nothing = [0] * size
    if tensor.dim() == 0:
        return nothing, NO_DIMENSIONS
    rows: int = tensor.shape[0]
    if splits is None or (isinstance(splits, torch.Tensor) and splits.numel() == 0):
        return ([rows // size] * size, 0) if rows % size == 0 else (nothing, NO_MULTIPLE)
    if isinstance(splits, torch.Tensor) and splits.dtype not in (torch.int32, torch.int64):
        return nothing, WRONG_TYPE
    counts = [int(count) for count in (splits.tolist() if isinstance(splits, torch.Tensor) else splits)]
    if len(counts) != size:
        return nothing, WRONG_LENGTH
    if min(counts) < 0 or sum(counts) > rows:
        return nothing, WRONG_SPLITS
    return counts, 0


class Reducescatter(TensorCall):
    """The first ranks get a row more if the rows are no multiple of the ranks."""

    def __init__(self, tensor: Any, name: Optional[str], op: int, prescale: float, postscale: float) -> None:
        checked(tensor, True)
        fault = NO_DIMENSIONS if tensor.dim() == 0 else WRONG_OP if op == Adasum else reduction_fault(tensor, op)
        super().__init__(request_of("reducescatter", tensor, op=op, prescale=prescale, postscale=postscale,
                                    fault=fault), name, tensor)
        self._source = on_host(tensor)
        if prescale != 1.0:
            self._source = scaled(self._source, prescale)

    def run(self, comm: Communicator, requests: Sequence[Request]) -> None:
        whole, more = divmod(self._source.shape[0], len(requests))
        rows = [whole + (rank < more) for rank in range(len(requests))]
        found = torch.empty((rows[comm.rank], *self._source.shape[1:]), dtype=self._source.dtype)
        if self._source.numel() > 0:
            width = trailing(self._source.shape) * (2 if self._source.is_complex() else 1)
            comm.reduce_scatterv(as_numbers(self._source), as_numbers(found), [count * width for count in rows],
                                 OPS[self.request.op])
        self.output = found

    def finish(self) -> None:
        if self.request.postscale != 1.0:
            scaled(self.output, self.request.postscale, self.output)
        self.output = self.placed(self.output)


class Barrier(Call):
    def __init__(self) -> None:
        super().__init__(Request("barrier", op=NOT_GIVEN), None)
        self.output = None
