"""The bytecode of all modules of the package in one file, so that a process opens one in place of six hundred.

Python looks for each module in its folder and opens, checks and unmarshals its file: for those of a first query that took
70 ms of 430. Here they lie behind each other in ``__pycache__``, beside Python's own files, which they are copied from when a
process ends that has run enough that were not among them. As Python does, a process looks at the time and the size of a source
before it takes what was made of it, and writes nothing under ``-B``. Where modules are imported from elsewhere than a folder,
`BytecodeFile.find_spec` finds none, and Python goes on by itself.

The index and each module have a hash in the file, which is compared before they are unmarshalled, as damaged code ends a process
or changes its answers: what is cut off or has another byte is left to Python, and the file is written anew. Whoever can write to
the folder could replace Python's own files too, so that this file is trusted as far as they are: by the folder's permissions.
"""

from __future__ import annotations

import atexit
import fcntl
import marshal
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import MAGIC_NUMBER, source_hash
from types import CodeType, ModuleType
from typing import Any

_HEAD = 16  # bytes of Python's own files: a number of its version, flags, and the source's time and size, 4 each
_OWN_HEAD = 16  # of this file: the number of Python's version and the index's length, 4 each, and the index's hash

Entry = tuple[int, int, bytes, bytes]
"""Where the bytecode of a module begins behind the index, its length and its hash, and the stamp of the source that it was made
from: whether that is a package's ``__init__``, its time and its size."""


class _Loader(SourceFileLoader):
    """Python's own, but for where it takes the bytecode from."""

    def __init__(self, name: str, path: str, code: bytes) -> None:
        super().__init__(name, path)
        self.code: bytes | None = code

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
        self.file = -1  # its descriptor; a mapped file that is cut meanwhile would end the process
        self.start = 0  # where the index ends
        self.missed = 0
        self.is_damaged = False
        self._read()

    def _read(self) -> None:
        """Open the file, if there is one that was made here, by this Python, and take its index if that is whole."""
        self.entries = {}
        with suppress(OSError, ValueError, EOFError, TypeError):
            self.file = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)  # stays open: modules are imported until the end
            head = os.pread(self.file, _OWN_HEAD, 0)
            index = os.pread(self.file, int.from_bytes(head[4:8], "little"), _OWN_HEAD)
            if head[:4] == MAGIC_NUMBER and head[8:] == source_hash(index):
                folder, entries = marshal.loads(index)
                if folder == self.folder:
                    self.entries, self.start = entries, _OWN_HEAD + len(index)

    def _code(self, entry: Entry) -> bytes | None:
        """The bytecode of a module as it was written; None where the file holds something else by now."""
        at, length, hashed, _ = entry
        try:
            code = os.pread(self.file, length, self.start + at)
        except OSError:  # who closes all descriptors, as a daemon does, closes this one
            return None
        return code if source_hash(code) == hashed else None

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """What imports a module, if its bytecode is here and its source is as it was."""
        entry = self.entries.get(name)
        if entry is None:
            self.missed += name.startswith(self.package + ".")
            return None
        stamp = entry[-1]
        source = self._source(name, stamp)
        if not _is_made_of(source, stamp):
            self.missed += 1
            return None
        code = self._code(entry)
        if code is None:
            self.missed += 1
            self.is_damaged = True
            return None
        folder, _, file = source.rpartition("/")
        loader = _Loader(name, source, code)
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
        """Write the file anew if at least so many modules that were imported are not in it, or not as they are now, or if one in
        it was damaged."""
        least = 1 if self.is_damaged else least
        if self.missed < least or sys.dont_write_bytecode or not os.access(self.beside, os.W_OK):
            return
        with suppress(OSError):
            self._read()  # another process may have written it meanwhile
            found: dict[str, tuple[bytes, bytes]] = {}
            for name, entry in self.entries.items():
                stamp = entry[-1]
                if _is_made_of(self._source(name, stamp), stamp) and (code := self._code(entry)) is not None:
                    found[name] = stamp, code
            changed = 0
            for name, module in [*sys.modules.items()]:
                if name.startswith(self.package + ".") and (read := _read_cached(module)) is not None:
                    changed += name not in found or found[name][0] != read[0]
                    found[name] = read
            if changed >= least:
                self._write(found)

    def _write(self, codes: dict[str, tuple[bytes, bytes]]) -> None:
        """Put a file with these modules in place of the one that is there. OSError where that cannot be, or where another process
        is about to."""
        entries: dict[str, Entry] = {}
        at = 0
        for name, (stamp, code) in codes.items():
            entries[name] = at, len(code), source_hash(code), stamp
            at += len(code)
        index = marshal.dumps((self.folder, entries))
        new = f"{self.path}.new"  # what a killed process leaves behind is overwritten by the next one
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666), "wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.path.samestat(os.stat(new), os.fstat(file.fileno())):
                return  # another process has put it in place between the two calls
            try:
                file.truncate()
                file.write(MAGIC_NUMBER + len(index).to_bytes(4, "little") + source_hash(index) + index)
                file.writelines(code for _, code in codes.values())
                file.flush()
                os.replace(new, self.path)
            except OSError:  # the disk is full
                os.unlink(new)
                raise


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
    code = content[_HEAD:]
    if content[:4] != MAGIC_NUMBER or content[4:8] != bytes(4) or not _is_code(code):
        return None
    is_package = spec.submodule_search_locations is not None
    time, size = (int.from_bytes(content[at : at + 4], "little") for at in (8, 12))
    return b"%c%d %d" % (is_package, time, size), code


def _is_code(code: bytes) -> bool:
    """Whether it can be unmarshalled: Python's own files have no hash, and what is cut off is not to be sealed here."""
    try:
        return isinstance(marshal.loads(code), CodeType)
    except (ValueError, EOFError, TypeError):
        return False


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
