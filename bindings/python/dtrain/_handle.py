"""Base classes of all objects with a handle of the C API.

SPDX-License-Identifier: Apache-2.0
"""
from typing import Any, Optional, TypeVar

Self = TypeVar("Self", bound="Closeable")


class Uncopied:
    """Base of objects that refer to this process, and so cannot be copied or pickled."""
    __slots__ = ()

    def __reduce_ex__(self, _: Any) -> Any:
        raise TypeError(f"a {type(self).__name__} cannot be copied or pickled: it belongs to "
                        "this process; make one where it is needed (context, join, table, ...)")


class Closeable(Uncopied):
    """A context manager. close() may be called again; other calls after it raise a StateError."""
    _handle: Any = None

    def _destroy(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Destroys the object. BusyError: another thread is in one of its calls."""
        if self._handle is not None:
            self._destroy()
            self._handle = None

    @property
    def closed(self) -> bool:
        return self._handle is None

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *_: Any) -> Optional[bool]:
        self.close()
        return None


class Child(Closeable):
    """An object made with a context. The context closes those that are still open, newest first."""

    def __init__(self, context: Any, handle: Any, maker: Any = None) -> None:
        self._context = context
        self._handle = handle
        self._maker = maker  # closing the maker closes this, too
        context._children.append(self)

    def close(self) -> None:
        if self._handle is None:
            return
        for child in [child for child in self._context._children if child._maker is self][::-1]:
            child.close()
        super().close()
        self._context._children.remove(self)
