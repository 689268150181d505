"""What torch calls at the end of its import, since the wheel names it as an entry point of "torch.backends": registers the
backend, and loads the rest when a group is made.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
from importlib import import_module
from typing import Any

NAME = "dtrain"


def register_at_import() -> None:
    register(import_module("torch.distributed"))


def register(dist: Any) -> None:
    """Makes init_process_group("dtrain") work. May be called again."""
    if not dist.is_available() or hasattr(dist.Backend, NAME.upper()):
        return
    new = {"devices": ["cpu", "cuda"]} if hasattr(dist.Backend, "default_device_backend_map") else {}
    dist.Backend.register_backend(NAME, create, extended_api=True, **new)


def create(options: Any, pg_options: Any = None) -> Any:
    return import_module("dtrain.torch").create(options, pg_options)
