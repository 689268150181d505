"""What Keras has to know of ops that XLA cannot compile.

SPDX-License-Identifier: Apache-2.0
"""
import functools
from typing import Any

from ._tensorflow import KERAS3, keras


def install() -> None:
    """Keras compiles train steps by XLA unless it is told not to (jit_compile="auto"), and XLA cannot have ops of
    plugins. There is no hook by which an optimizer or a strategy could say so, so compile() of Keras' models is
    wrapped: those with a distributed optimizer, or a strategy of this package, are compiled with jit_compile=False.

    This is done when the package is imported: model.compile(DistributedOptimizer(...)) looks up compile() first."""
    # In the class that defines it, since Keras looks there to see whether a model has another one.
    home = next(kind for kind in keras.Model.__mro__ if "compile" in vars(kind))
    original = home.compile

    @functools.wraps(original)
    def compile_model(self: Any, *arguments: Any, **settings: Any) -> Any:
        if needs_ops(self, arguments[0] if arguments else settings.get("optimizer")):
            if settings.get("jit_compile") is True:
                raise ValueError("compile(jit_compile=True): XLA cannot compile the ops of dtrain.tensorflow")
            settings["jit_compile"] = False
            if KERAS3:  # an argument of old Keras, which Horovod's programs give
                settings.pop("experimental_run_tf_function", None)
        result = original(self, *arguments, **settings)
        lift(getattr(self, "optimizer", None))
        return result

    home.compile = compile_model


def lift(optimizer: Any) -> None:
    """Keras puts the optimizers of models with float16 into a LossScaleOptimizer. Then this becomes the distributed
    one: it must see the gradients of all ranks when it decides whether to skip a step."""
    inner = getattr(optimizer, "inner_optimizer", None)
    if inner is None or not hasattr(type(inner), "_dtrain_again"):
        return
    again = type(inner)._dtrain_again
    object.__setattr__(inner, "__class__", type(inner)._dtrain_kind)
    again(optimizer)


def needs_ops(model: Any, optimizer: Any) -> bool:
    return hasattr(type(optimizer), "_dtrain_kind") or getattr(
        getattr(model, "distribute_strategy", None), "_dtrain", False)


install()
