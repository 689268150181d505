"""Functions of the program that the library calls.

SPDX-License-Identifier: Apache-2.0
"""
from typing import Any, Callable, Optional

from ._errors import Error


class Callback:
    """Keeps what the function raises, for the call that it was made within: C has no exceptions."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.raised: Optional[BaseException] = None

    def __call__(self, *arguments: Any) -> Any:
        """None: it raised."""
        try:
            return self._function(*arguments)
        except BaseException as error:  # pylint: disable=broad-except
            self.raised = error
            return None


def call_with(callback: Optional[Callback], function: Callable[..., Any], *arguments: Any) -> Any:
    """function(*arguments), which may call callback; what that raised is the cause of its error."""
    try:
        return function(*arguments)
    except Error as error:
        raised = None if callback is None else callback.raised
        if raised is None:
            raise
        if isinstance(raised, Exception):
            raise error from raised
        raise raised  # KeyboardInterrupt, SystemExit
