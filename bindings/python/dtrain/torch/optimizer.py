"""An optimizer whose state and updates live on the servers of a job.

SPDX-License-Identifier: Apache-2.0
"""
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Optional, Union

import torch
from torch import Tensor

from .._communicator import Communicator
from .._constants import Consistency
from .._names import find
from .._table import Table

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .._settings import TableSettings

DTYPES = {torch.float32: "f32", torch.float64: "f64"}
IN_STEP = (Consistency.BSP, Consistency.QUORUM)  # push_pull() ends the clock by itself


class Part:
    """The parameters of a group in one table, one after the other in one tensor, of which they become
    views: what is pulled is in the model without a copy."""

    def __init__(self, comm: Communicator, name: str, parameters: List[Tensor], settings: Dict[str, Any]) -> None:
        self.parameters = parameters
        self.values = torch.cat([parameter.detach().reshape(-1) for parameter in parameters])
        self.gradients = torch.zeros_like(self.values)
        self.table: Table = comm.table(name, dtype=DTYPES[self.values.dtype], length=len(self.values), **settings)
        self.ends_own_clocks = settings["consistency"] == Consistency.SSP
        at = 0
        self.places: List[Tensor] = []  #: of each parameter's gradient
        for parameter in parameters:
            end = at + parameter.numel()
            with torch.no_grad():
                parameter.set_(self.values[at:end].view_as(parameter))
            self.places.append(self.gradients[at:end].view_as(parameter))
            at = end

    def begin(self, comm: Communicator) -> None:
        """All ranks begin with rank 0's values; with those of the servers if the table was restored."""
        if comm.rank == 0 and self.table.restored is None:
            self.table.set(self.values)
        comm.barrier()
        self.table.pull(self.values)

    def step(self) -> None:
        with torch.no_grad():
            for place, parameter in zip(self.places, self.parameters):
                if parameter.grad is None:
                    place.zero_()
                elif parameter.grad.data_ptr() != place.data_ptr():
                    place.copy_(parameter.grad)
        if self.ends_own_clocks:
            self.table.push(self.gradients)
            self.table.clock()
            self.table.pull(self.values)
        else:
            self.table.push_pull(self.gradients, self.values)


class DistributedOptimizer(torch.optim.Optimizer):
    """Pushes the gradients of dense parameters to a table for each group, whose rule is the optimizer,
    and pulls the new values into the parameters. Made by all ranks of comm alike (collective).

    parameters: as for any optimizer; a group may have settings of its own. settings: those of tables
    (docs/PARAMETER_SERVER.md): rule, learning_rate (or lr), momentum, beta1 ... By default the ranks go in step
    (consistency "bsp") and the mean of their gradients is applied ("aggregate": "avg"). With "ssp" and
    "async" each worker's gradients are applied as they come; then the learning rate is for one worker's
    gradient. A rate that a scheduler of torch.optim.lr_scheduler sets is passed on by rank 0.
    """

    def __init__(self, parameters: Union[Iterable[Tensor], Iterable[Dict[str, Any]]], comm: Communicator, *,
                 name: str = "parameters", lr: Optional[float] = None, **settings: "Unpack[TableSettings]") -> None:
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
            self._parts.append([Part(comm, f"{name}.{number}.{kind}", tensors, chosen)
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
