"""Parameters of an optimizer: their names, and when a backward pass has computed their gradients.

SPDX-License-Identifier: Apache-2.0
"""
import weakref
from typing import Any, Callable, List, Sequence, Tuple


def numbered(optimizer: Any) -> List[Tuple[str, Any]]:
    return [(f"noname.{i}.{j}", parameter) for i, group in enumerate(optimizer.param_groups)
            for j, parameter in enumerate(group["params"])]


def check_names(named: Sequence[Any], optimizer: Any) -> List[Tuple[str, Any]]:
    """The names, each parameter of the optimizer with one of its own."""
    if any(not isinstance(one, tuple) for one in named):
        raise ValueError("named_parameters should be a sequence of tuples (name, parameter), usually produced by "
                         "model.named_parameters().")
    names = [name for name, _ in named]
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twice:
        raise ValueError(f"Parameter names in named_parameters must be unique. Found duplicates: {', '.join(twice)}")
    known = {id(parameter) for _, parameter in named}
    own = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    missing = [tuple(parameter.shape) for parameter in own if id(parameter) not in known]
    if missing:
        raise ValueError("named_parameters was specified, but one or more model parameters were not named. Their "
                         f"shapes: {', '.join(str(shape) for shape in missing)}")
    optimized = {id(parameter) for parameter in own}
    return [(name, parameter) for name, parameter in named if id(parameter) in optimized]


def watch(parameters: Sequence[Any], computed: Callable[[Any], None]) -> List[Any]:
    """Calls computed(parameter), a method, each time a gradient has been added to. The result keeps this alive, and
    must belong to the method's object: with that it ends."""
    weak = weakref.WeakMethod(computed)  # the node of autograd would keep the object forever
    watched: List[Any] = []

    def hook(parameter: Any) -> Callable[..., None]:
        def call(*_: Any) -> None:
            method = weak()
            if method is not None:
                method(parameter)
        return call
    for parameter in parameters:
        # The node of autograd that adds to the gradient; it lives as long as somebody holds it.
        node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
        node.register_hook(hook(parameter))
        watched.append(node)
    return watched
