"""The cache of compiled kernels on disk, kept between processes.

An entry is one file, named by the hash of everything that decides its machine code: the kernel's text, the primitives' sources,
and the versions of what compiles it. It is sealed: its header holds a keyed hash of its name and content, whose key lies in the
folder and can be read by the user alone. What is not whole, or was not written by this user, is not looked into: it counts as
missing and is written anew. So nothing is unpickled or executed that somebody else made, whoever could write to the folder once.

Where the folder cannot be used, kernels are kept in memory alone, and one warning says so.
"""

from __future__ import annotations

import fcntl
import os
import re
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import field
from functools import cache, lru_cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from gquery import kernels, tuning
from gquery.errors import InternalError
from gquery.kernels.targets.folder import has_file, open_folder, read_file, write_file
from gquery.runtime.digests import blake2b, hex_digest, is_same
from gquery.runtime.interrupt import holding
from gquery.runtime.records import cached_property, dataclass
from gquery.runtime.syntax import compiled
from gquery.runtime.versions import installed_versions

if TYPE_CHECKING:
    from gquery.kernels.kernel import Kernel

_PACKAGE = Path(__file__).resolve().parent.parent
OTHER_BUILD = 4  # how a process ends that is to compile for one of another `build_hash`
_COMPILERS = ("numba", "llvmlite", "numba-cuda", "cuda-core", "nvidia-nvvm", "nvidia-nvjitlink")
_MAGIC = b"gquery kernel 1\n"
_KEY_BYTES = _SEAL_BYTES = 32
_HEADER_BYTES = len(_MAGIC) + _SEAL_BYTES


@dataclass(frozen=True)
class KernelSource:
    """The text of a kernel's module, which is made when it is first asked for, and the name that what is made of it has in the
    cache. Those of one name are equal. ``suffix`` is that of a file with such a text. ``kernel`` is there where another process
    can make the text of it."""

    name: str
    make: Callable[[], str] = field(compare=False, repr=False)
    suffix: str = field(default=".py", compare=False, repr=False)
    kernel: Kernel | None = field(default=None, compare=False, repr=False)

    @cached_property
    def text(self) -> str:
        return self.make()

    def __lt__(self, other: KernelSource) -> bool:
        return self.name < other.name


class KernelCache:
    """The entries in one folder. ``path`` is that folder's, for messages and for other processes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._folder: int | None = None
        self._opened: list[int] = []  # closed at the end alone: another thread may be reading
        self._key = b""
        self._absent = 0
        self._listed: frozenset[str] = frozenset()
        self._listed_at = 0.0
        self._open()

    @property
    def is_usable(self) -> bool:
        """Whether entries are kept at all."""
        return self._folder is not None

    def has(self, name: str) -> bool:
        """Whether there seems to be an entry of that name; `read` may find that it is none."""
        return self._folder is not None and has_file(self._folder, name)

    def has_probably(self, name: str) -> bool:
        """The same, by a list of the folder where many were looked for that are not there: it may be some seconds old, so that an
        entry that was written since is not seen."""
        if self._absent < tuning.compiling.listed_after:
            found = self.has(name)
            self._absent += not found
            return found
        now = time.monotonic()
        if self._folder is not None and now - self._listed_at > tuning.compiling.listed_seconds:
            self._listed_at = now
            try:
                self._listed = frozenset(os.listdir(self._folder))
            except OSError:  # looked for one by one
                self._absent = 0
                return self.has(name)
        return self._folder is not None and name in self._listed

    def read(self, name: str) -> bytes | None:
        """What was written under the name; None where that is not there, or not as it was written."""
        if self._folder is None:
            return None
        found = read_file(self._folder, name, tuning.compiling.entry_bytes)
        if found is None or not found.startswith(_MAGIC):
            return None
        content = found[_HEADER_BYTES:]
        return content if is_same(found[len(_MAGIC) : _HEADER_BYTES], self._seal(name, content)) else None

    def write(self, name: str, content: bytes) -> None:
        """Keep an entry, in place of one of that name; where that fails, entries are kept no more. None is kept once the
        engine's sources have been replaced."""
        if self._folder is None or is_replaced():
            return
        sealed = _MAGIC + self._seal(name, content) + content
        try:
            try:
                write_file(self._folder, name, sealed)
            except FileNotFoundError:  # somebody cleared the cache, folder and all
                self._open()
                if self._folder is not None:
                    write_file(self._folder, name, _MAGIC + self._seal(name, content) + content)
        except OSError as error:
            self._give_up(error)

    def _seal(self, name: str, content: bytes) -> bytes:
        seal = blake2b(name.encode() + b"\0", key=self._key, digest_size=_SEAL_BYTES)
        seal.update(content)
        return seal.digest()

    def _open(self) -> None:
        self._folder = None
        try:
            folder = open_folder(self.path)
            self._opened.append(folder)
            self._key = _own_key(folder)
            self._folder = folder
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        self._folder = None
        warnings.warn(
            f"gquery keeps compiled kernels in memory alone, as the folder {self.path} cannot be used: "
            f"{error.strerror or error}. Each process compiles them anew; GQUERY_CACHE_DIR names another folder.",
            RuntimeWarning,
            stacklevel=2,
        )

    def __del__(self) -> None:
        for folder in self._opened:
            os.close(folder)


def _own_key(folder: int) -> bytes:
    """The key that this user's entries are sealed with, made at first; OSError where it cannot be."""
    with suppress(OSError):  # a file system without locks: two processes may make a key each, and one compiles again
        fcntl.flock(folder, fcntl.LOCK_EX)
    try:
        key = read_file(folder, "key", 2 * _KEY_BYTES)
        if key is None or len(key) != _KEY_BYTES or os.stat("key", dir_fd=folder).st_mode & 0o077:
            key = os.urandom(_KEY_BYTES)
            write_file(folder, "key", key)
        return key
    finally:
        with suppress(OSError):
            fcntl.flock(folder, fcntl.LOCK_UN)


def kernel_cache() -> KernelCache:
    """The cache of this process: in the folder ``GQUERY_CACHE_DIR``, else in the user's cache folder."""
    given = os.environ.get("GQUERY_CACHE_DIR")
    if given:
        return _cache_at(given)
    return _cache_at(os.path.join(_user_folder(), "kernels"))


def _user_folder() -> str:
    """The user's cache folder, as `platformdirs` has it, whose import takes 3 ms that Linux needs not."""
    if sys.platform == "linux":
        own = os.environ.get("XDG_CACHE_HOME", "").strip()
        return os.path.join(own if os.path.isabs(own) else os.path.expanduser("~/.cache"), "gquery")
    import platformdirs

    return platformdirs.user_cache_dir("gquery")


@lru_cache(maxsize=8)
def _cache_at(name: str) -> KernelCache:
    return KernelCache(Path(name).expanduser().absolute())


@cache
def build_hash() -> str:
    """Hash of the sources of what compiles and of the compilers' versions: what two processes have in common that make the same
    machine code of a kernel."""
    parts = [sys.version]
    found = installed_versions(_COMPILERS)
    parts += [f"{package} {found.get(package, '-')}" for package in _COMPILERS]
    parts.append(_hash_of_sources())
    if is_replaced():  # what is read now is not what runs: entries of this process are for nobody else
        parts.append(os.urandom(_KEY_BYTES).hex())
    return hex_digest("\0".join(parts))


def _hash_of_sources() -> str:
    """The hash of what the sources hold. It is kept in the cache as long as none of them has another place, size or time: to read
    them all takes 4 ms."""
    stamp = _stamp()
    known = kernel_cache().read(stamp)
    if known is not None:
        return known.decode()
    made = blake2b(digest_size=32)
    for source in _sources():
        with open(source, "rb") as file:
            made.update(file.read() + b"\0")
    if _stamp() == stamp:
        kernel_cache().write(stamp, made.hexdigest().encode())
    return made.hexdigest()


def _stamp() -> str:
    """The name in the cache of where the sources lie, and of their sizes and times."""
    files = [(file.path, file.stat()) for file in _sources()]
    told = [(path, s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_ino, s.st_dev) for path, s in files]
    return f"b{hex_digest(repr(told))}"


def _sources() -> list[os.DirEntry[str]]:
    """The files of what compiles, in an order that is the same everywhere."""
    folders = [os.path.join(_PACKAGE, name) for name in ("primitives", "targets", "lowering", "ir")]
    files: list[os.DirEntry[str]] = []
    for folder in folders:  # which grows meanwhile
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(".py"):
                    files.append(entry)
                elif entry.is_dir() and entry.name != "__pycache__":
                    folders.append(entry.path)
    return sorted(files, key=lambda file: file.path)


def is_replaced() -> bool:
    """Whether the engine's own sources have changed on disk since they were loaded: an upgrade beneath a running process,
    whose machine code is the old one's."""
    return any(file.stat().st_mtime > kernels.LOADED for file in _sources())


def kernel_source(text: str, *key: str) -> KernelSource:
    """A kernel's module with its name; ``key`` is what decides the machine code beside the text."""
    return KernelSource(source_name(*key, text), lambda: text)


def source_name(*key: str) -> str:
    """The name in the cache of what is made of a kernel, which ``key`` tells from all others."""
    return f"k{hex_digest(chr(0).join([build_hash(), *key]))}"


@holding()  # Numba would stay broken where an interrupt ends its import
def load_module(source: KernelSource) -> ModuleType:
    """Run the text of a kernel's module, which compiles it. A failure is one line and the place of the text."""
    name = f"gquery_kernels.{source.name}"
    module = sys.modules[name] = ModuleType(name)  # Numba looks a function's module up by its name
    try:
        exec(compiled(source.text, f"<{name}>"), vars(module))  # our own text: no user text enters it
    except Exception as error:
        raise compile_error(source, error) from error
    finally:
        sys.modules.pop(name, None)
    return module


def compile_error(source: KernelSource, error: Exception) -> InternalError:
    """A failed compilation in one line; the text is kept in a file, to be looked at and reported."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", str(error))  # Numba colours its messages
    lines = [line.strip() for line in plain.splitlines() if line.strip()]
    said = next((line for line in lines if "Failed in" not in line), "")
    try:
        handle, place = tempfile.mkstemp(prefix=f"gquery-{source.name}-", suffix=source.suffix)
        with os.fdopen(handle, "w") as file:
            file.write(source.text)
    except OSError:
        place = "could not be written"
    return InternalError(f"a kernel does not compile: {type(error).__name__}: {said[:300]} (source: {place})")
