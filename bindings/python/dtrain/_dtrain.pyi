# What SWIG makes of dtrain.h, and the extension's own functions: private, and typed by the package above it.
from typing import Any

def __getattr__(name: str) -> Any: ...
