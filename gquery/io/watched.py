"""Files behind a source: which are asked for, what their paths say, and whether they have changed since they were read."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from gquery.io.files import File, Item, PathColumn, Paths, items_of, path_columns, resolve
from gquery.runtime import interrupt
from gquery.runtime.records import cached_property, dataclass
from gquery.runtime.tuples import NamedTuple


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

    @cached_property
    def only_path(self) -> str | None:
        """Where the only thing that was asked for lies on this machine."""
        return self._items[0].path if len(self._items) == 1 else None

    def columns(self, files: Sequence[File], names: Sequence[str]) -> list[PathColumn]:
        """The columns that the paths give, beside those of the files, which are called ``names``."""
        return path_columns(files, self.hive, self.filename, names)


class SeenFile(NamedTuple):
    """The only file of a source, on this machine, as it was when its version was made."""

    path: str
    status: tuple[int, int, int, int]
    version: int

    @staticmethod
    def of(files: Sequence[File], asked: Asked, version: int) -> SeenFile | None:
        """None where files elsewhere, in a directory or of a pattern were asked for: others may come to them."""
        only = asked.only_path
        if only is None or len(files) != 1 or files[0].path != only:
            return None
        try:
            status = os.stat(only)
        except OSError:
            return None
        found = files[0]
        is_same = (found.size, found.time, found.number) == (status.st_size, status.st_mtime_ns, status.st_ino)
        return SeenFile(only, _identity(status), version) if is_same else None

    def is_current(self) -> bool:
        """Whether the file is still the same."""
        try:
            return _identity(os.stat(self.path)) == self.status
        except OSError:
            return False


def _identity(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_mtime_ns, status.st_size, status.st_ino, status.st_dev


class WatchedFiles(ABC):
    """A source whose files are opened by `_open`, which keeps them as ``_files``, and opened again where they changed."""

    _files: list[File]

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self._seen: SeenFile | None = None
        self._lock = interrupt.Lock()

    @property
    def version(self) -> int:
        """Changes with the files; looks at them, and reads them again where they changed."""
        seen = self._seen
        if seen is not None and seen.is_current():  # most sources are one file, which every query asks for twice
            return seen.version
        with self._lock:
            files = self.asked.find()
            if files != self._files:
                self._open(files)
            version = hash(tuple(self._files))
            self._seen = SeenFile.of(self._files, self.asked, version)
            return version

    @property
    def is_near(self) -> bool:
        """Whether a look at one file of this machine tells the version."""
        return self._seen is not None

    def is_at(self, version: int) -> bool:
        """Whether that look tells that the version is this one. Nothing is read, raised or waited for."""
        seen = self._seen
        return seen is not None and seen.version == version and seen.is_current()

    @abstractmethod
    def _open(self, files: list[File]) -> None:
        """Read what a query plans with."""
