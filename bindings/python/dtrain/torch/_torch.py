"""torch, imported with errors that say what is missing, and what its versions name differently.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
from datetime import timedelta
from importlib import import_module
from typing import Any, Optional

from .._optional import need

torch: Any = need("torch", "dtrain.torch")
dist: Any = import_module("torch.distributed")
if not dist.is_available():
    raise ImportError("dtrain.torch needs a torch that was built with torch.distributed; this one was not")
c10d: Any = import_module("torch._C._distributed_c10d")

OLD = not hasattr(c10d, "Backend")  #: before 2.0: one backend for each group, no devices
BackendError: Any = getattr(dist, "DistBackendError", RuntimeError)
UNSET = timedelta(milliseconds=-1)  #: the timeout of options that were given none
Tensor: Any = torch.Tensor


def initialized() -> bool:
    """Whether there is a default group."""
    return dist.is_initialized()


def attribute(name: str) -> Optional[Any]:
    """torch's attribute, or None where this version lacks it."""
    return getattr(torch, name, None)
