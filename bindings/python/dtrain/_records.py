"""Readers and writers of TFRecord files.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
import os
from typing import Any, Iterable, Iterator, Optional, Union

from . import _dtrain
from ._checks import Path, items, path_text
from ._handle import Closeable
from ._parameters import fill


class Records(Closeable):
    """Closed when no reference is left, like a file."""

    def __del__(self) -> None:
        self.close()


class RecordReader(Records):
    """Iterates over the records of files, as bytes, and checks their checksums. shard of shards:
    each shard gets whole files if there are at least `shards`, else every shards-th record."""

    def __init__(self, paths: Union[Path, Iterable[Path]], *, shard: Optional[int] = None,
                 shards: Optional[int] = None, max_record: Optional[int] = None) -> None:
        single = isinstance(paths, (str, os.PathLike))
        wanted = [paths] if single else items(paths, "paths")
        params = fill(_dtrain.dtrain_reader_params_t(),
                      {"shard": shard, "shards": shards, "max_record": max_record})
        self._handle = _dtrain.dtrain_reader_open([path_text(path, "paths") for path in wanted], params)

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        record = _dtrain.next_record(self._handle)
        if record is None:
            raise StopIteration
        return record

    def rewind(self) -> None:
        """Returns to the first record."""
        _dtrain.dtrain_reader_rewind(self._handle)

    def _destroy(self) -> None:
        _dtrain.dtrain_reader_close(self._handle)


class RecordWriter(Records):
    """Writes a file, which appears under its name when the writer is closed."""

    def __init__(self, path: Path) -> None:
        self._handle = _dtrain.dtrain_writer_open(path_text(path))

    def append(self, record: Any) -> None:
        """Appends a record: any object with bytes."""
        _dtrain.dtrain_writer_append(self._handle, record)

    def _destroy(self) -> None:
        handle, self._handle = self._handle, None  # freed even if the call fails
        _dtrain.dtrain_writer_close(handle)
