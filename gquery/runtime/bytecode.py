"""The bytecode of all modules of the package in one file, so that a process opens one in place of six hundred.

Python looks for each module in its folder and opens, checks and unmarshals its file: for those of a first query that took
70 ms of 430. Here they lie behind each other in ``__pycache__``, beside Python's own files, which they are copied from when a
process ends that has run enough that were not among them. As Python does, a process looks at the time and the size of a source
before it takes what was made of it, and writes nothing under ``-B``. Where something is amiss, or modules are imported from
elsewhere than a folder, `BytecodeFile.find_spec` finds none, and Python goes on by itself.
"""

from __future__ import annotations

import atexit
import marshal
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import MAGIC_NUMBER
from mmap import ACCESS_READ, mmap
from types import CodeType, ModuleType
from typing import Any

_HEAD = 16  # bytes of Python's own files: a number of its version, flags, and the source's time and size, 4 each

Entry = tuple[int, int, bytes]
"""Where the bytecode of a module begins and ends, and the stamp of the source that it was made from: whether that is a package's
``__init__``, its time and its size."""


class _Loader(SourceFileLoader):
    """Python's own, but for where it takes the bytecode from."""

    def __init__(self, name: str, path: str, code: memoryview) -> None:
        super().__init__(name, path)
        self.code: memoryview | None = code

    def get_code(self, fullname: str) -> CodeType | None:
        if self.code is None:  # somebody asks again: the source may have changed
            return super().get_code(fullname)
        code, self.code = self.code, None
        made: CodeType = marshal.loads(code)
        return made


class BytecodeFile:
    """A finder of the modules of a package, for `sys.meta_path`. ``cached`` is where Python keeps the bytecode of its
    ``__init__``."""

    def __init__(self, package: str, folder: str, cached: str) -> None:
        self.package, self.folder = package, folder
        self.beside, _, self.ending = cached.rpartition("__init__")  # .../__pycache__/, .cpython-311.pyc
        self.path = f"{self.beside}all{self.ending}-all"
        self.entries: dict[str, Entry] = {}
        self.content = memoryview(b"")
        self.missed = 0
        self._read()

    def _read(self) -> None:
        """Map the file, if there is one that was made here, by this Python, and is whole."""
        with suppress(OSError, ValueError, EOFError, TypeError), open(self.path, "rb") as file:
            mapped = memoryview(mmap(file.fileno(), 0, access=ACCESS_READ))
            if mapped[:4] != MAGIC_NUMBER:
                return
            at = int.from_bytes(mapped[4:8], "little")
            folder, size, entries = marshal.loads(mapped[8:at])
            if (folder, size) == (self.folder, len(mapped) - at):
                self.entries = {name: (at + start, at + end, stamp) for name, start, end, stamp in entries}
                self.content = mapped

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """What imports a module, if its bytecode is here and its source is as it was."""
        entry = self.entries.get(name)
        if entry is None:
            self.missed += name.startswith(self.package + ".")
            return None
        start, end, stamp = entry
        source = self._source(name, stamp)
        if not _is_made_of(source, stamp):
            self.missed += 1
            return None
        folder, _, file = source.rpartition("/")
        loader = _Loader(name, source, self.content[start:end])
        spec = ModuleSpec(name, loader, origin=source, is_package=bool(stamp[0]))
        if stamp[0]:
            spec.submodule_search_locations = [folder]
        spec.has_location = True
        spec.cached = f"{folder}/__pycache__/{file[:-3]}{self.ending}"
        return spec

    def _source(self, name: str, stamp: bytes) -> str:
        path = "/".join([self.folder, *name.split(".")[1:]])
        return f"{path}/__init__.py" if stamp[0] else f"{path}.py"

    def keep(self, least: int) -> None:
        """Write the file anew if at least so many modules that were imported are not in it, or not as they are now."""
        if self.missed < least or sys.dont_write_bytecode:
            return
        with suppress(OSError):
            found: dict[str, tuple[bytes, Any]] = {}
            for name, (start, end, stamp) in self.entries.items():
                if _is_made_of(self._source(name, stamp), stamp):
                    found[name] = stamp, self.content[start:end]
            changed = 0
            for name, module in [*sys.modules.items()]:
                if name.startswith(self.package + ".") and (read := _read_cached(module)) is not None:
                    changed += name not in found or found[name][0] != read[0]
                    found[name] = read
            if changed >= least:
                self._write(found)

    def _write(self, codes: dict[str, tuple[bytes, Any]]) -> None:
        entries: list[tuple[str, int, int, bytes]] = []
        at = 0
        for name, (stamp, code) in codes.items():
            entries.append((name, at, at + len(code), stamp))
            at += len(code)
        index = marshal.dumps((self.folder, at, entries))
        own = f"{self.path}.{os.getpid()}"
        try:
            with open(own, "xb") as file:
                file.write(MAGIC_NUMBER + (8 + len(index)).to_bytes(4, "little") + index)
                file.writelines(code for _, code in codes.values())
            os.replace(own, self.path)
        except OSError:
            with suppress(OSError):
                os.unlink(own)


def _is_made_of(source: str, stamp: bytes) -> bool:
    """Whether a source is as it was when its stamp was taken: by its time and size modulo 2**32, as Python goes by."""
    try:
        found = os.stat(source)
    except OSError:
        return False
    return stamp[1:] == b"%d %d" % (int(found.st_mtime) & 0xFFFFFFFF, found.st_size & 0xFFFFFFFF)


def _read_cached(module: ModuleType) -> tuple[bytes, bytes] | None:
    """The stamp of a module's source and its bytecode, as Python keeps them. None where it keeps none that goes by the time."""
    spec = module.__spec__
    if spec is None or not spec.cached:
        return None
    try:
        with open(spec.cached, "rb") as file:
            content = file.read()
    except FileNotFoundError:
        return None
    if content[:4] != MAGIC_NUMBER or content[4:8] != bytes(4) or len(content) <= _HEAD:
        return None
    is_package = spec.submodule_search_locations is not None
    time, size = (int.from_bytes(content[at : at + 4], "little") for at in (8, 12))
    return b"%c%d %d" % (is_package, time, size), content[_HEAD:]


def use(package: ModuleType) -> None:
    """Have the modules of a package imported by its file of bytecode from now on."""
    spec = package.__spec__
    if spec is None or not spec.cached or "__pycache__" not in spec.cached or sys.pycache_prefix is not None:
        return
    finder: Any = BytecodeFile(package.__name__, package.__path__[0], spec.cached)
    sys.meta_path.insert(0, finder)
    atexit.register(_keep, finder)


def _keep(finder: BytecodeFile) -> None:
    from gquery import tuning

    finder.keep(tuning.startup.modules_missed)
