"""Callbacks: functions of the program that the library calls.

SPDX-License-Identifier: Apache-2.0
"""
from typing import Any, Callable, Optional

from ._errors import Error


class Callback:
    """Stores the exception of a callback until the call that needed it returns: C has no
    exceptions."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.raised: Optional[BaseException] = None

    def __call__(self, *arguments: Any) -> Any:
        """Returns None if the function raised."""
        try:
            return self._function(*arguments)
        except BaseException as error:  # pylint: disable=broad-except
            self.raised = error
            return None


def call_with(callback: Optional[Callback], function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls function(*arguments). If callback raised meanwhile, its exception is the cause of the
    error."""
    try:
        return function(*arguments)
    except Error as error:
        raised = None if callback is None else callback.raised
        if raised is None:
            raise
        if isinstance(raised, Exception):
            raise error from raised
        raise raised  # KeyboardInterrupt, SystemExit
