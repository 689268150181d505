"""Names of operations.

SPDX-License-Identifier: Apache-2.0
"""
from typing import Optional


def member_name(name: Optional[str], index: int, count: int) -> Optional[str]:
    """Of a tensor of a group."""
    return None if name is None else f"{name}_{index + 1}of{count}"
