"""TensorFlow, imported with an error that says what is missing, and what its versions name differently.

SPDX-License-Identifier: Apache-2.0
"""
from typing import Any, Callable, TypeVar

from .._optional import need

tf: Any = need("tensorflow", "dtrain.tensorflow", "tensorflow (or tensorflow-cpu)")
keras: Any = tf.keras
KERAS3 = int(getattr(keras, "__version__", "2").split(".")[0]) >= 3
Function = TypeVar("Function", bound=Callable[..., Any])


def as_written(function: Function) -> Function:
    """Keeps AutoGraph from converting a function: it has no control flow that depends on tensors."""
    made: Function = tf.autograph.experimental.do_not_convert(function)
    return made


def raw(variable: Any) -> Any:
    """The tf.Variable of a variable of Keras 3; others as they are."""
    if isinstance(variable, tf.Variable) or not hasattr(variable, "value") or callable(variable.value):
        return variable
    return variable.value
