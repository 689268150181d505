"""Broadcasts of parameters, states of optimizers, and objects.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
from typing import Any, Dict, List, Optional, Tuple

from ..common._pickles import dumped, loaded
from ..common.process_sets import ProcessSet, global_process_set
from ._gather import allgather, broadcast_, broadcast_async_
from ._handles import synchronize
from ._tensors import torch
from .mpi_ops import rank


def to_bytes(value: Any) -> Any:
    return torch.frombuffer(bytearray(dumped(value)), dtype=torch.uint8)


def from_bytes(tensor: Any) -> Any:
    return loaded(memoryview(tensor.numpy()))


def part_name(name: Optional[str], part: str) -> Optional[str]:
    """Without a name, the ranks' calls meet in their order. (Horovod takes the name of the object's class, which may
    differ between ranks.)"""
    return None if name is None else f"{name}.{part}"


def broadcast_object(obj: Any, root_rank: int = 0, name: Optional[str] = None,
                     process_set: ProcessSet = global_process_set) -> Any:
    """The root's object, on all ranks. It is pickled, so ranks must trust each other."""
    is_root = rank() == root_rank
    sent: Any = to_bytes(obj) if is_root else None
    length = torch.tensor([len(sent) if is_root else 0], dtype=torch.int64)
    broadcast_(length, root_rank, part_name(name, "sz"), process_set)
    if not is_root:
        sent = torch.empty(int(length), dtype=torch.uint8)
    broadcast_(sent, root_rank, part_name(name, "t"), process_set)
    return obj if is_root else from_bytes(sent)


def allgather_object(obj: Any, name: Optional[str] = None, process_set: ProcessSet = global_process_set) -> List[Any]:
    """The objects of all ranks. They are pickled, so ranks must trust each other."""
    sent = to_bytes(obj)
    lengths = allgather(torch.tensor([len(sent)], dtype=torch.int64), part_name(name, "sz"), process_set).tolist()
    whole = allgather(sent, part_name(name, "t"), process_set)
    return [from_bytes(part) for part in whole.split(lengths)]


def broadcast_parameters(params: Any, root_rank: int, process_set: ProcessSet = global_process_set) -> None:
    """Tensors of the root to all ranks, in place. params: a dict such as model.state_dict(), or an iterable of tensors
    or of (name, tensor) such as model.named_parameters()."""
    if isinstance(params, dict):
        named = sorted(params.items())
    elif isinstance(params, str) or not hasattr(params, "__iter__"):
        raise ValueError(f"invalid params of type: {type(params)}")
    else:
        named = [one if isinstance(one, tuple) else (None, one) for one in params]
    handles = [broadcast_async_(tensor, root_rank, name, process_set) for name, tensor in named
               if isinstance(tensor, torch.Tensor)]
    for handle in handles:
        synchronize(handle)


def broadcast_optimizer_state(optimizer: Any, root_rank: int, model: Any = None) -> None:
    """The root's state of the optimizer to all ranks: tensors, numbers, and the settings of groups. A rank may have
    none yet. model: of no effect, since no step is made to create the state."""
    del model
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ValueError("cannot broadcast torch.optim.LBFGS state")
    state = optimizer.state_dict()
    shapes = broadcast_object(described(state), root_rank, "optimizer.state")
    if rank() != root_rank:
        state = like(shapes, state)
    tensors: List[Tuple[str, Any]] = [
        (f"optimizer.{number}.{key}", value) for number, one in sorted(state["state"].items(), key=by_name)
        for key, value in sorted(one.items(), key=by_name) if isinstance(value, torch.Tensor)]
    broadcast_parameters(tensors, root_rank)
    if rank() != root_rank:
        load_plain(optimizer, state)


def by_name(item: Tuple[Any, Any]) -> str:
    """An order that is the same on all ranks."""
    return str(item[0])


class Shape:
    """Stands for a tensor that is broadcast."""

    def __init__(self, tensor: Any) -> None:
        self.shape, self.dtype = tuple(tensor.shape), tensor.dtype

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Shape) and (self.shape, self.dtype) == (other.shape, other.dtype)


def described(state: Dict[str, Any]) -> Dict[str, Any]:
    """The state without the values of its tensors."""
    return {"param_groups": state["param_groups"],
            "state": {number: {key: Shape(value) if isinstance(value, torch.Tensor) else value
                               for key, value in one.items()} for number, one in state["state"].items()}}


def like(wanted: Dict[str, Any], own: Dict[str, Any]) -> Dict[str, Any]:
    """A state of the root's form: with this rank's tensors where they fit, else with new ones."""
    def tensor(number: Any, key: Any, shape: Shape) -> Any:
        mine = own["state"].get(number, {}).get(key)
        if isinstance(mine, torch.Tensor) and Shape(mine) == shape:
            return mine
        return torch.empty(shape.shape, dtype=shape.dtype)
    return {"param_groups": wanted["param_groups"],
            "state": {number: {key: tensor(number, key, value) if isinstance(value, Shape) else value
                               for key, value in one.items()} for number, one in wanted["state"].items()}}


def load_plain(optimizer: Any, state: Dict[str, Any]) -> None:
    """load_state_dict() of the optimizer of torch, also for a DistributedOptimizer."""
    torch.optim.Optimizer.load_state_dict(optimizer, state)
