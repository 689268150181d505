"""Whether a context can use the memory of GPUs.

SPDX-License-Identifier: Apache-2.0
"""
import json

from ._errors import UnsupportedError

PLUGIN = "cuda"


def check(described: str) -> None:
    """Raises an UnsupportedError with the reason why not, from dtrain_context_describe(). Without
    this, arrays on GPUs would be taken for the host's memory."""
    plugins = [plugin for plugin in json.loads(described)["accelerators"] if plugin["plugin"] == PLUGIN]
    if not any(plugin["used"] for plugin in plugins):
        why = plugins[0]["why"] if plugins else "the library has no plugin for them"
        raise UnsupportedError(f"the array is on a GPU, whose memory this context cannot use: {why}; or copy "
                               "it to the host, for example by tensor.cpu()")
