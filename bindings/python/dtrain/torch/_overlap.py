"""Pushes gradients to a table while the backward pass goes on.

A part's parameters lie one after the other; runs of them that are long enough are buckets. A bucket is pushed when the
backward pass has made the gradient of its last parameter; step() pushes those that lack one.
SPDX-License-Identifier: Apache-2.0
"""
from contextlib import contextmanager
from typing import Any, Iterator, List, Optional, Set

import torch
from torch import Tensor

from .._errors import Error
from .._request import Request
from .._table import Table


class Gradients:
    """The gradients of parameters, one after the other in one tensor."""

    def __init__(self, parameters: List[Tensor], like: Tensor) -> None:
        self.parameters = parameters
        self.values = torch.zeros_like(like)
        self.ends: List[int] = []  #: of each parameter's gradient
        self._places: List[Tensor] = []
        at = 0
        for parameter in parameters:
            end = at + parameter.numel()
            self._places.append(self.values[at:end].view_as(parameter))
            self.ends.append(end)
            at = end

    def take(self, number: int) -> None:
        """Copies the gradient of a parameter; none counts as zeros."""
        place, gradient = self._places[number], self.parameters[number].grad
        with torch.no_grad():
            if gradient is None:
                place.zero_()
            elif gradient.data_ptr() != place.data_ptr():
                place.copy_(gradient)


class Bucket:
    def __init__(self, first: int, end: int, numbers: Set[int]) -> None:
        self.first = first  #: element
        self.end = end
        self.numbers = numbers  #: of its parameters
        self.missing = set(numbers)
        self.request: Optional[Request] = None


class Overlap:
    """Pushes the buckets of one table."""

    def __init__(self, table: Table, gradients: Gradients, least: int) -> None:
        """least: elements of a bucket."""
        self._table = table
        self._gradients = gradients
        self._paused = False
        self._buckets: List[Bucket] = []
        self._accumulators: List[Any] = []  # hooks live as long as these
        self._divide(least)
        for bucket in self._buckets:
            for number in bucket.numbers:
                self._hook(bucket, number)

    def _divide(self, least: int) -> None:
        first, begin = 0, 0
        for number, end in enumerate(self._gradients.ends):
            if end - first >= least or end == self._gradients.ends[-1]:
                self._buckets.append(Bucket(first, end, set(range(begin, number + 1))))
                first, begin = end, number + 1

    def _hook(self, bucket: Bucket, number: int) -> None:
        """Calls _ready() when the backward pass has added to the parameter's gradient. A parameter that needs none now has
        no hook: its bucket is pushed by step()."""
        parameter = self._gradients.parameters[number]
        if not parameter.requires_grad:
            return
        with torch.enable_grad():
            view: Any = parameter.view_as(parameter)
        accumulator = view.grad_fn.next_functions[0][0]
        accumulator.register_hook(lambda *_: self._ready(bucket, number))
        self._accumulators.append(accumulator)

    def _ready(self, bucket: Bucket, number: int) -> None:
        if self._paused:
            return
        if number not in bucket.missing:
            raise RuntimeError(f"DistributedOptimizer: table {self._table.name!r}: a second backward pass before step() "
                               f"changed the gradient of parameter {number}, which has been taken; call all backward "
                               "passes but the last in `with optimizer.no_sync():`")
        self._take(bucket, number)
        if not bucket.missing:
            self._push(bucket)

    def _take(self, bucket: Bucket, number: int) -> None:
        self._gradients.take(number)
        bucket.missing.discard(number)

    def _push(self, bucket: Bucket) -> None:
        bucket.request = self._table.start.push(self._gradients.values[bucket.first:bucket.end], bucket.first)

    def finish(self) -> None:
        """Pushes what the backward pass has not, and waits for all pushes, also after one has failed: the next backward
        pass writes to the same memory."""
        errors: List[Error] = []
        for bucket in self._buckets:
            for number in list(bucket.missing):
                self._take(bucket, number)
            try:
                if bucket.request is None:
                    self._push(bucket)
            except Error as error:
                errors.append(error)
        for bucket in self._buckets:
            request, bucket.request, bucket.missing = bucket.request, None, set(bucket.numbers)
            try:
                if request is not None:
                    request.wait()
            except Error as error:
                errors.append(error)
        if errors:
            raise errors[0]

    @contextmanager
    def paused(self) -> Iterator[None]:
        self._paused = True
        try:
            yield
        finally:
            self._paused = False
