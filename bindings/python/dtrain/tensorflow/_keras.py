"""What Keras has to know of ops that XLA cannot compile.

SPDX-License-Identifier: Apache-2.0
"""
import functools
from typing import Any, List

from ._tensorflow import keras

_installed: List[bool] = []


def install() -> None:
    """Keras compiles train steps by XLA unless it is told not to (jit_compile="auto"), and XLA cannot have ops of
    plugins. There is no hook by which an optimizer or a strategy could say so, so compile() of Keras' models is
    wrapped: those with a distributed optimizer, or a strategy of this package, are compiled with jit_compile=False."""
    if _installed:
        return
    _installed.append(True)
    # In the class that defines it, since Keras looks there to see whether a model has another one.
    home = next(kind for kind in keras.Model.__mro__ if "compile" in vars(kind))
    original = home.compile

    @functools.wraps(original)
    def compile_model(self: Any, *arguments: Any, **settings: Any) -> Any:
        if needs_ops(self, arguments[0] if arguments else settings.get("optimizer")):
            if settings.get("jit_compile") is True:
                raise ValueError("compile(jit_compile=True): XLA cannot compile the ops of dtrain.tensorflow")
            settings["jit_compile"] = False
        return original(self, *arguments, **settings)

    home.compile = compile_model


def needs_ops(model: Any, optimizer: Any) -> bool:
    return hasattr(type(optimizer), "_dtrain_kind") or getattr(
        getattr(model, "distribute_strategy", None), "_dtrain", False)
