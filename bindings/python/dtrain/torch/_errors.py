"""Errors of the backend, in the classes that programs for torch catch.

SPDX-License-Identifier: Apache-2.0
"""
from .. import _errors as package
from ._torch import BackendError


class DtrainError(BackendError):  # type: ignore[misc]
    """A RuntimeError (where torch has it, a DistBackendError). rank: the rank that caused it, by its number in the
    group, if the library knows; __cause__: the dtrain.Error."""

    def __init__(self, text: str, rank: "int | None" = None) -> None:
        super().__init__(text)
        self.rank = rank


def translated(error: Exception, what: str = "") -> Exception:
    """What to raise for an error of the package. Texts of timeouts contain " Timed out ", which torch's users look for."""
    if not isinstance(error, package.Error):
        return error
    begin = "Timed out (limits: the group's timeout, the operation's): " if isinstance(error, package.TimeoutError) else ""
    made = DtrainError(f"dtrain: {what + ': ' if what else ''}{begin}{error.text}", error.rank)
    made.__cause__ = error
    return made
