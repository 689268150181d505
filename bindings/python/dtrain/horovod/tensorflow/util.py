"""What programs import of Horovod's module of this name.

SPDX-License-Identifier: Apache-2.0
"""
from typing import Any

from ...tensorflow._tensorflow import tf


def _executing_eagerly() -> bool:
    return bool(tf.executing_eagerly())


def _make_subgraph(function: Any) -> Any:
    return tf.function(function)
