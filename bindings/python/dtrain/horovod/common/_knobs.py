"""Horovod's environment variables, as settings of a gradient queue.

SPDX-License-Identifier: Apache-2.0
"""
import os
from typing import Any, Callable, Dict, Mapping, Tuple

from ..._errors import ConfigError

LEAST_BUCKET, MOST_BUCKET = 4 << 10, 1 << 30
LONGEST_CYCLE = 1.0  #: seconds
NEVER = float("inf")


def bucket(value: float) -> int:
    return min(max(int(value), LEAST_BUCKET), MOST_BUCKET)


def cycle(value: float) -> float:
    """value: milliseconds."""
    return min(max(value / 1000, 1e-6), LONGEST_CYCLE)


def period(value: float) -> float:
    """value: seconds; 0 means never."""
    return value if value > 0 else NEVER


#: (Horovod's variable, the setting, its value)
KNOBS: Tuple[Tuple[str, str, Callable[[float], Any]], ...] = (
    ("HOROVOD_FUSION_THRESHOLD", "bucket_bytes", bucket),
    ("HOROVOD_CYCLE_TIME", "cycle", cycle),
    ("HOROVOD_STALL_CHECK_TIME_SECONDS", "stall_warn", period),
    ("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "stall_fail", period))


def flag(environment: Mapping[str, str], name: str) -> bool:
    return environment.get(name, "0").strip().lower() in ("1", "yes", "true", "on")


def queue_settings(environment: Mapping[str, str] = os.environ) -> Dict[str, Any]:
    """For Communicator.gradients(). Variables that are not set leave dtrain's defaults."""
    found: Dict[str, Any] = {}
    for variable, setting, convert in KNOBS:
        text = environment.get(variable, "").strip()
        if not text:
            continue
        try:
            found[setting] = convert(float(text))
        except (ValueError, OverflowError):
            raise ConfigError(f"{variable}={text!r}: a number is needed") from None
    if flag(environment, "HOROVOD_STALL_CHECK_DISABLE"):
        found["stall_warn"] = NEVER
    return found
