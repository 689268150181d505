"""Variables that are the same on all ranks.

SPDX-License-Identifier: Apache-2.0
"""
from typing import Any, Iterable, Optional

from .._communicator import Communicator
from .._durations import Duration
from ._operations import broadcast
from ._tensorflow import raw, tf


def broadcast_variables(variables: Iterable[Any], root: int = 0, comm: Optional[Communicator] = None, *,
                        timeout: Optional[Duration] = None) -> Any:
    """Gives variables (of TensorFlow or Keras) rank root's values, in one op. Returns the op in graphs of TensorFlow
    1."""
    targets = [raw(variable) for variable in variables]
    targets = [target for target in targets if target.dtype != tf.string]
    if not targets:
        return None
    values = broadcast([target.read_value() for target in targets], root, comm, timeout=timeout)
    assigned = [target.assign(value) for target, value in zip(targets, values)]
    return None if tf.executing_eagerly() else tf.group(*assigned)
