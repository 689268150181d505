"""DistributedOptimizer: reduces gradients as the backward pass yields them.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
import os
import warnings
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Set, Tuple, Union

from ..common._knobs import flag
from ..common.basics import Adasum, Average, rank, size
from ..common.process_sets import ProcessSet, engine_of, global_process_set
from ._adasum import AdasumDeltas
from ._allreduce import allreduce_async_, grouped_allreduce_async_, sparse_allreduce_async
from ._handles import synchronize
from ._hooks import check_names, numbered, watch
from ._tensors import torch
from .compression import Compression
from .functions import broadcast_object

Named = Any  #: an iterable of (name, parameter)
Groups = Union[None, int, List[List[Any]]]


class Settings:
    """What DistributedOptimizer() was given."""

    def __init__(self, compression: Any, passes: int, op: int, predivide: float, groups: Groups, sparse_as_dense: bool,
                 process_set: ProcessSet) -> None:
        self.compression, self.op, self.groups = compression, op, groups
        self.sparse_as_dense, self.process_set = sparse_as_dense, process_set
        self.prescale, self.postscale = (1.0 / predivide, predivide) if op == Average else (1.0, 1.0)
        self.passes = passes


class Reduction:
    """Gradients in flight: of one parameter, or of a group."""

    def __init__(self, parameters: Sequence[Any], wait: Callable[[], Any], contexts: Sequence[Any]) -> None:
        self.parameters, self.wait, self.contexts = parameters, wait, contexts


class DistributedGradients:
    """The part of a DistributedOptimizer that is not the optimizer. The class of each instance has it before the class
    of the optimizer that was wrapped."""

    def _distribute(self, named: Sequence[Tuple[str, Any]], settings: Settings) -> None:
        self._hvd = settings
        self._parameter_names: Dict[Any, str] = {parameter: name for name, parameter in named}
        self._order: List[Any] = [parameter for _, parameter in named]
        self._passes_left: Dict[Any, int] = {}
        self._reductions: Dict[Any, Reduction] = {}  # by each parameter
        self._group_of: Dict[Any, Tuple[Any, ...]] = {}
        self._ready: Dict[Tuple[Any, ...], Set[Any]] = {}
        self._synchronized = False
        self._should_synchronize = True
        self._watched: List[Any] = []
        self._reset_passes()
        self._reduces = bool(settings.process_set.included()) and (size() > 1 or is_elastic())
        if self._reduces:
            self._form_groups()
            self._watch(self._order)

    def _watch(self, parameters: Sequence[Any]) -> None:
        self._watched += watch([parameter for parameter in parameters if parameter.requires_grad], self._computed)

    def add_param_group(self, param_group: Any) -> None:
        """All ranks call it alike."""
        parent: Any = super()
        parent.add_param_group(param_group)
        mine: Any = self
        number = len(mine.param_groups) - 1
        added = mine.param_groups[number]["params"]
        for index, parameter in enumerate(added):
            self._parameter_names[parameter] = f"added.{number}.{index}"
            self._passes_left[parameter] = self._hvd.passes
        self._order += added
        if self._reduces:
            self._watch(added)

    @property
    def backward_passes_per_step(self) -> int:
        return self._hvd.passes

    def set_backward_passes_per_step(self, passes: int) -> None:
        """How many backward passes are added up before gradients are reduced."""
        self._hvd.passes = passes
        self._reset_passes()

    def _reset_passes(self) -> None:
        self._passes_left = {parameter: self._hvd.passes for parameter in self._parameter_names}

    # ---- as gradients come ----

    def _form_groups(self) -> None:
        """All ranks form the same groups, those of the lowest rank of the process set."""
        groups = self._hvd.groups
        if groups is None:
            return
        wanted = [parameter for parameter in self._order if parameter.requires_grad]
        if isinstance(groups, int):
            first = engine_of(self._hvd.process_set).ranks[0]
            order = broadcast_object([self._parameter_names[parameter] for parameter in wanted], first,
                                     "optimizer.groups", self._hvd.process_set)
            wanted.sort(key=lambda parameter: order.index(self._parameter_names[parameter]))
            count = min(groups, len(wanted))
            ends = [len(wanted) * index // max(count, 1) for index in range(count + 1)]
            formed = [tuple(wanted[begin:end]) for begin, end in zip(ends, ends[1:])]
        else:
            formed = [tuple(one for one in group if one.requires_grad) for group in groups]
        for group in formed:
            self._ready[group] = set()
            for parameter in group:
                self._group_of[parameter] = group

    def _computed(self, parameter: Any) -> None:
        """Called when a backward pass has added to the gradient of the parameter."""
        if self._passes_left[parameter] <= 0:
            raise AssertionError(
                f"The gradient of {self._parameter_names[parameter]} was computed more than backward_passes_per_step "
                "times before step(). Increase backward_passes_per_step to accumulate gradients locally.")
        self._passes_left[parameter] -= 1
        if self._passes_left[parameter] > 0:
            return
        group = self._group_of.get(parameter)
        if group is None:
            self._reduce(parameter)
            return
        self._ready[group].add(parameter)
        if len(self._ready[group]) == len(group):
            self._reduce_group(group)

    def _reduce(self, parameter: Any) -> None:
        if parameter.grad is None:  # this rank's model had no use for it; that of another rank may have had
            parameter.grad = torch.zeros_like(parameter)
        how, name, gradient = self._hvd, self._parameter_names[parameter], parameter.grad
        if gradient.is_sparse and not how.sparse_as_dense:
            wait = sparse_allreduce_async(gradient, name, how.op, how.process_set)
            self._reductions[parameter] = Reduction([parameter], lambda: [wait()], [None])
            return
        sent, context = how.compression.compress(gradient.to_dense() if gradient.is_sparse else gradient)
        handle = allreduce_async_(sent, name=name, op=how.op, prescale_factor=how.prescale,
                                  postscale_factor=how.postscale, process_set=how.process_set)
        self._reductions[parameter] = Reduction([parameter], lambda: [synchronize(handle)], [context])

    def _reduce_group(self, group: Tuple[Any, ...]) -> None:
        for parameter in group:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            elif parameter.grad.is_sparse:
                raise NotImplementedError(f"groups: the gradient of {self._parameter_names[parameter]} is sparse; "
                                          "leave it out")
        how = self._hvd
        pairs = [how.compression.compress(parameter.grad) for parameter in group]
        handle = grouped_allreduce_async_([sent for sent, _ in pairs], name=self._parameter_names[group[0]], op=how.op,
                                          prescale_factor=how.prescale, postscale_factor=how.postscale,
                                          process_set=how.process_set)
        reduction = Reduction(group, lambda: synchronize(handle), [context for _, context in pairs])
        for parameter in group:
            self._reductions[parameter] = reduction
        self._ready[group].clear()

    # ---- the step ----

    def synchronize(self) -> None:
        """Waits until the gradients are reduced. Those that this rank has not computed are reduced as well."""
        if self._reduces:
            for parameter in self._order:
                if parameter.requires_grad and parameter not in self._reductions:
                    group = self._group_of.get(parameter)
                    if group is None:
                        self._reduce(parameter)
                    else:
                        self._reduce_group(group)
            pending = list({id(one): one for one in self._reductions.values()}.values())
            self._reductions = {}
            self._reset_passes()
            for reduction in pending:
                for parameter, found, context in zip(reduction.parameters, reduction.wait(), reduction.contexts):
                    self._take(parameter, self._hvd.compression.decompress(found, context))
        self._synchronized = True

    def _take(self, parameter: Any, found: Any) -> None:
        gradient = parameter.grad
        if found is gradient:
            return
        if gradient.is_sparse:
            parameter.grad = found.coalesce() if found.is_sparse else found.to_sparse()
        else:
            with torch.no_grad():
                gradient.set_(found)

    @contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """For a step() after synchronize(): gradients have been clipped in between, say."""
        self._should_synchronize = False
        try:
            yield
        finally:
            self._should_synchronize = True

    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        """closure: the gradients that it computes are reduced, too."""
        parent: Any = super()
        if closure is not None and self._should_synchronize:
            compute = closure

            def computed() -> Any:
                loss = compute()
                self.synchronize()
                self._synchronized = False
                return loss
            return parent.step(computed)
        if self._should_synchronize:
            if self._synchronized:
                warnings.warn("optimizer.step() called without optimizer.skip_synchronize() context after "
                              "optimizer.synchronize(). This can cause training slowdown. You may want to consider "
                              "using optimizer.skip_synchronize() context if you use optimizer.synchronize() in your "
                              "code.")
            self.synchronize()
        self._synchronized = False
        return parent.step(closure) if closure is not None else parent.step()

    def zero_grad(self, *arguments: Any, **named: Any) -> Any:
        if self._reductions:
            raise AssertionError("optimizer.zero_grad() was called after loss.backward() but before optimizer.step() "
                                 "or optimizer.synchronize(). This is prohibited as it can cause a race condition.")
        parent: Any = super()
        return parent.zero_grad(*arguments, **named)

    def load_state_dict(self, *arguments: Any, **named: Any) -> Any:
        """Also forgets gradients in flight: those of a job that was lost."""
        self._reductions = {}
        self._synchronized = False
        self._should_synchronize = True
        for ready in self._ready.values():
            ready.clear()
        self._reset_passes()
        parent: Any = super()
        return parent.load_state_dict(*arguments, **named)


def is_elastic() -> bool:
    return flag(os.environ, "DTRAIN_ELASTIC") or flag(os.environ, "HOROVOD_ELASTIC")


def check_groups(groups: Groups) -> None:
    if groups is None or (isinstance(groups, int) and not isinstance(groups, bool) and groups > 0):
        return
    if not isinstance(groups, list):
        raise ValueError("groups should be a non-negative integer or a list of list of torch.Tensor.")
    seen: Set[int] = set()
    for group in groups:
        for parameter in group:
            if not isinstance(parameter, torch.Tensor):
                raise ValueError("groups must consist of torch.Tensor.")
            if id(parameter) in seen:
                raise ValueError("A parameter can only appear once in groups.")
            seen.add(id(parameter))


def wrapped(optimizer: Any, part: Any) -> Any:
    """The optimizer, as an instance of a class of the same name that begins with `part`. It shares the state and the
    groups of the optimizer."""
    kind = type(optimizer)
    made: Any = object.__new__(type(kind.__name__, (part, kind), {}))
    made.__dict__.update({name: value for name, value in optimizer.__dict__.items()
                          if name != "step"})  # a scheduler's, bound to the other object
    return made


def DistributedOptimizer(optimizer: Any, named_parameters: Optional[Named] = None,  # pylint: disable=invalid-name
                         compression: Any = Compression.none, backward_passes_per_step: int = 1, op: int = Average,
                         gradient_predivide_factor: float = 1.0, num_groups: int = 0, groups: Groups = None,
                         sparse_as_dense: bool = False, process_set: ProcessSet = global_process_set) -> Any:
    """The optimizer, with step() that waits for the gradients of all ranks, which are reduced while backward() computes
    others. Its class has the name of the optimizer's and derives from it.

    named_parameters: model.named_parameters(); the names must be the same on all ranks.
    compression: Compression.fp16, say. backward_passes_per_step: how many passes add up before gradients are reduced.
    op: Average, Sum, Adasum, ...  gradient_predivide_factor: with Average, divides before the sum and multiplies after.
    groups: a number of groups, or lists of parameters: gradients of a group are reduced together.
    sparse_as_dense: reduces sparse gradients as dense ones. process_set: whose ranks' gradients count."""
    if gradient_predivide_factor != 1.0 and op != Average:
        raise ValueError("gradient_predivide_factor not supported with op != Average")
    if num_groups != 0:
        warnings.warn("Parameter `num_groups` has been replaced by `groups`", DeprecationWarning, stacklevel=2)
        groups = num_groups if groups is None else groups
    if backward_passes_per_step <= 0:
        raise ValueError("backward_passes_per_step must be > 0")
    check_groups(groups)
    rank()  # refuses before init()
    named = check_names(list(named_parameters) if named_parameters is not None else numbered(optimizer), optimizer)
    if op == Adasum and size() > 1:
        if process_set is not global_process_set:
            raise NotImplementedError("Adasum does not support non-global process sets yet.")
        deltas = wrapped(optimizer, AdasumDeltas)
        deltas._distribute(named, compression, backward_passes_per_step)
        return deltas
    made = wrapped(optimizer, DistributedGradients)
    made._distribute(named, Settings(compression, backward_passes_per_step, op, gradient_predivide_factor, groups,
                                     sparse_as_dense, process_set))
    return made
