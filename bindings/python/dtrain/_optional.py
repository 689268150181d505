"""Packages that are needed only by those who use them.

SPDX-License-Identifier: Apache-2.0
"""
import importlib
from typing import Any


def need(module: str, what_for: str, install: str = "") -> Any:
    """The module; an ImportError that says what to install without it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = install or module.split(".")[0]
        raise ImportError(f"{what_for} needs the package {package}: pip install {package}   ({error})",
                          name=module) from error
