"""Files behind a source: which are asked for, what their paths say, and whether they have changed since they were read."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from gquery.io.files import File, Item, PathColumn, Paths, items_of, path_columns, resolve
from gquery.runtime.records import dataclass


@dataclass(frozen=True)
class Asked:
    """What the caller asked for: paths of files of the format ``kind``; see `path_columns` for ``hive`` and ``filename``."""

    paths: Paths
    kind: str
    hive: bool | None = None
    filename: str | None = None
    filesystem: Any = None

    def find(self) -> list[File]:
        """The files as they are now; FileError where there is none."""
        return resolve(self._items, self.kind, self.filesystem)

    @cached_property
    def _items(self) -> list[Item]:
        return items_of(self.paths, self.filesystem)

    def columns(self, files: Sequence[File], names: Sequence[str]) -> list[PathColumn]:
        """The columns that the paths give, beside those of the files, which are called ``names``."""
        return path_columns(files, self.hive, self.filename, names)


class WatchedFiles(ABC):
    """A source whose files are opened by `_open`, which keeps them as ``_files``, and opened again where they changed."""

    _files: list[File]

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self._lock = threading.RLock()

    @property
    def version(self) -> int:
        """Changes with the files; looks at them, and reads them again where they changed."""
        with self._lock:
            files = self.asked.find()
            if files != self._files:
                self._open(files)
            return hash(tuple(self._files))

    @abstractmethod
    def _open(self, files: list[File]) -> None:
        """Read what a query plans with."""
