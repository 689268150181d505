"""An optimizer whose state and updates live on the servers of a job.

SPDX-License-Identifier: Apache-2.0
"""
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, Iterator, List, Optional, Union

import torch
from torch import Tensor

from .._communicator import Communicator
from .._constants import Consistency, Rule, Steps
from .._names import find
from .._table import Table
from ._overlap import Gradients, Overlap

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .._settings import TableSettings

DTYPES = {torch.float32: "f32", torch.float64: "f64"}
WITH_NORMS = (Rule.ADAGRAD_ROWS, Rule.LARS, Rule.LAMB)
WHOLE_ROWS = ("clip_norm", "row_length", "segments")  # settings that make the rows of a table more than elements
MOST = 1 << 62  #: bytes of a bucket that has everything
IN_STEP = (Consistency.BSP, Consistency.QUORUM)  # push_pull() ends the clock by itself


class Part:
    """The parameters of a group in one table, one after the other in one tensor, of which they become
    views: what is pulled is in the model without a copy."""

    def __init__(self, comm: Communicator, name: str, parameters: List[Tensor], bucket_bytes: Optional[int],
                 settings: Dict[str, Any]) -> None:
        """bucket_bytes: of pushes during the backward pass; None: there are none."""
        self.parameters = parameters
        self.values = torch.cat([parameter.detach().reshape(-1) for parameter in parameters])
        self.gradients = Gradients(parameters, self.values)
        self.table: Table = comm.table(name, dtype=DTYPES[self.values.dtype], length=len(self.values), **settings)
        self.has_clocks = settings["consistency"] != Consistency.ASYNC
        self.in_step = settings["consistency"] in IN_STEP
        for parameter, end in zip(parameters, self.gradients.ends):
            with torch.no_grad():
                parameter.set_(self.values[end - parameter.numel():end].view_as(parameter))
        self.overlap = None if bucket_bytes is None else Overlap(
            self.table, self.gradients, bucket_bytes // self.values.element_size())

    def begin(self, comm: Communicator) -> None:
        """All ranks begin with rank 0's values; with those of the servers if the table was restored."""
        if comm.rank == 0 and self.table.restored is None:
            self.table.set(self.values)
        comm.barrier()
        self.table.pull(self.values)

    def step(self) -> None:
        if self.overlap is not None:
            self.overlap.finish()
        else:
            for number in range(len(self.parameters)):
                self.gradients.take(number)
            if self.in_step or not self.has_clocks:
                self.table.push_pull(self.gradients.values, self.values)
                return
            self.table.push(self.gradients.values)
        if self.has_clocks:
            self.table.clock()
        self.table.pull(self.values)


class DistributedOptimizer(torch.optim.Optimizer):
    """Pushes the gradients of dense parameters to a table for each group, whose rule is the optimizer,
    and pulls the new values into the parameters. Made by all ranks of comm alike (collective).

    parameters: as for any optimizer; a group may have settings of its own. settings: those of tables
    (docs/PARAMETER_SERVER.md): rule, learning_rate (or lr), momentum, beta1 ... By default the ranks go in step
    (consistency "bsp") and the mean of their gradients is applied ("aggregate": "avg"). With "ssp" and
    "async" each worker's gradients are applied as they come; then the learning rate is for one worker's
    gradient. overlap: pushes leave during the backward pass, in buckets of about bucket_bytes. A rate that a scheduler of torch.optim.lr_scheduler sets is passed on by rank 0.
    """

    def __init__(self, parameters: Union[Iterable[Tensor], Iterable[Dict[str, Any]]], comm: Communicator, *,
                 name: str = "parameters", lr: Optional[float] = None, overlap: bool = False,
                 bucket_bytes: int = 1 << 20, **settings: "Unpack[TableSettings]") -> None:
        defaults: Dict[str, Any] = dict(settings)
        if lr is not None:
            defaults["learning_rate"] = lr
        super().__init__(parameters, {"settings": defaults})
        self.comm = comm
        self._parts: List[List[Part]] = []
        for number, group in enumerate(self.param_groups):
            own = {key: value for key, value in group.items() if key not in ("params", "settings")}
            if "lr" in own:
                own["learning_rate"] = own.pop("lr")
            chosen = {**defaults, **own}
            chosen["consistency"] = find(Consistency, chosen.get("consistency", Consistency.BSP), "consistency")
            if chosen["consistency"] in IN_STEP:
                chosen.setdefault("aggregate", "avg")
            group["lr"] = group["initial_lr"] = chosen.get("learning_rate")
            pushed = max(bucket_bytes if may_be_divided(chosen) else MOST, 1) if overlap else None
            self._parts.append([Part(comm, f"{name}.{number}.{kind}", tensors, pushed, chosen)
                                for kind, tensors in by_dtype(group["params"]).items()])
        self._rates = [group["lr"] for group in self.param_groups]
        for parts in self._parts:
            for part in parts:
                part.begin(comm)

    @property
    def tables(self) -> List[Table]:
        """For checkpoints: the parameters and the rule's state are theirs."""
        return [part.table for parts in self._parts for part in parts]

    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        """Returns what closure returns. A parameter without a gradient counts as one with zeros."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for number, (group, parts) in enumerate(zip(self.param_groups, self._parts)):
            if group["lr"] != self._rates[number]:
                self._rates[number] = group["lr"]
                for part in parts:
                    if self.comm.rank == 0:
                        part.table.set_rate(group["lr"])
            for part in parts:
                part.step()
        return loss

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """With overlap, backward passes in this context push nothing: what they add to the gradients goes with the next
        pass outside, or with step()."""
        with ExitStack() as stack:
            for parts in self._parts:
                for part in parts:
                    if part.overlap is not None:
                        stack.enter_context(part.overlap.paused())
            yield

    def pull(self) -> None:
        """Reads the servers' values, for example after a checkpoint was restored."""
        for parts in self._parts:
            for part in parts:
                part.table.pull(part.values)

    def state_dict(self) -> Dict[str, Any]:
        """The state is on the servers: save a checkpoint of `tables`."""
        return {"rates": list(self._rates)}

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        rates = state_dict["rates"]
        if len(rates) != len(self.param_groups):
            raise ValueError(f"the state is of {len(rates)} groups, and the optimizer has {len(self.param_groups)}")
        for group, rate in zip(self.param_groups, rates):
            group["lr"] = rate
        self.pull()


def may_be_divided(settings: Dict[str, Any]) -> bool:
    """Whether several pushes of ranges do what one of everything does: not if each push is a step of the whole table, nor
    if the rule takes norms over many elements."""
    if find(Rule, settings.get("rule", Rule.SGD), "rule") in WITH_NORMS or any(map(settings.get, WHOLE_ROWS)):
        return False
    return settings["consistency"] in IN_STEP or find(Steps, settings.get("steps", Steps.OWN), "steps") != Steps.TABLE


def by_dtype(parameters: List[Tensor]) -> Dict[str, List[Tensor]]:
    found: Dict[str, List[Tensor]] = {}
    for parameter in parameters:
        if parameter.dtype not in DTYPES:
            raise TypeError(f"DistributedOptimizer: a parameter of {parameter.dtype}; float32 or float64 is needed")
        if parameter.device.type != "cpu" or parameter.layout != torch.strided:
            raise TypeError(f"DistributedOptimizer: a parameter on {parameter.device} ({parameter.layout}); a dense one "
                            "in the CPU's memory is needed")
        if parameter.numel() > 0:
            found.setdefault(DTYPES[parameter.dtype], []).append(parameter)
    return found
