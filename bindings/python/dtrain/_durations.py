"""Durations: seconds as a number, a timedelta, or a text with a unit, as in options ("30s").

SPDX-License-Identifier: Apache-2.0
"""
import math
import re
from datetime import timedelta
from typing import Any, Optional, Union

Duration = Union[float, timedelta, str]  #: float or int: seconds

FOREVER = -1
LONGEST = (1 << 63) - 1  #: ns, 292 years
UNITS = {"ns": 1, "us": 1000, "ms": 1000 ** 2, "s": 1000 ** 3, "min": 60 * 1000 ** 3}
TEXT = re.compile(r"(\d+) *(ns|us|ms|s|min)")


def exact(value: Any, name: str) -> int:
    """The duration in ns; FOREVER for infinity."""
    if isinstance(value, timedelta):
        return (value.days * 86400 + value.seconds) * 1000 ** 3 + value.microseconds * 1000
    if isinstance(value, str):
        found = TEXT.fullmatch(value.strip())
        if found is None:
            raise ValueError(f"{name}: {value!r} is not a duration such as \"500ms\"; the units are "
                             f"{', '.join(UNITS)}")
        return int(found.group(1)) * UNITS[found.group(2)]
    try:
        seconds = float(value)
    except OverflowError:
        return FOREVER if value > 0 else 0
    except (TypeError, ValueError):
        raise TypeError(f"{name}: seconds, a timedelta, or a text such as \"30s\" are needed, not "
                        f"{type(value).__name__}") from None
    if math.isnan(seconds):
        raise ValueError(f"{name}: the duration is not a number (NaN)")
    if seconds == math.inf:
        return FOREVER
    if seconds <= 0:
        return 0
    return max(1, int(min(seconds, 1e10) * 1e9))


def nanoseconds(value: Optional[Duration], name: str = "timeout") -> int:
    """A timeout for the C API: None is the option's value (0), infinity is no timeout (< 0)."""
    if value is None:
        return 0
    found = exact(value, name)
    if found == 0 or found < FOREVER:
        raise ValueError(f"{name}: {value!r}; a duration must be more than 0, or None")
    return min(found, LONGEST)


def wait_nanoseconds(value: Optional[Duration], name: str = "timeout") -> int:
    """The limit of a wait: None and infinity are no limit (< 0); 0 and less do not wait."""
    if value is None:
        return FOREVER
    found = exact(value, name)
    return FOREVER if found == FOREVER else min(max(0, found), LONGEST)
