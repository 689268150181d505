"""What tests of dtrain-run wait for.

SPDX-License-Identifier: Apache-2.0
"""
import os
import select

LIMIT = 60  # seconds; nothing here takes so long


def wait_for_death(pid):
    """True once the process has ended; False after LIMIT."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    ready, _, _ = select.select([descriptor], [], [], LIMIT)
    os.close(descriptor)
    return bool(ready)
