"""Arrays in files: what does not fit a memory limit and is read and written in order lies in files of ``spill_directory``.

A file has no name as soon as it is open, so that a process that is killed leaves none. All its bytes are allocated before it is
mapped into memory, so that a full disk is an error here and no signal at a write to a page. Kernels read and write the mapped
pages as they do any array; these are the page cache's, which the system writes out and takes back where memory runs short.

What is there already when its file is made is written before the file is mapped: a page that is first touched through a mapping
is cleared by the system, and costs a fault. Where files are the tier below a device, no kernel reads them: they stay open, and
arrays are copied to them and from them by writing and reading (`device.file_copies`). What is written so alone is not allocated
first, which one thread does, on some file systems page by page: a full disk is an error of the write.
"""

from __future__ import annotations

import ctypes
import errno
import math
import mmap
import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from gquery import tuning
from gquery.device.address_space import NO_RESERVE
from gquery.device.array import Array
from gquery.device.memory import Account
from gquery.runtime.amounts import format_bytes
from gquery.runtime.tuples import NamedTuple

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

_ALIGNED = 64  # bytes: where a small array begins in a file
_MAP_FIXED = 0x10  # which Python's mmap does not have
_IN_MEMORY = ("tmpfs", "ramfs")
_ADVICE = {"sequential": getattr(mmap, "MADV_SEQUENTIAL", None), "done": getattr(mmap, "MADV_DONTNEED", None)}


class SpillError(Exception):
    """A file of the spill directory cannot be had; the words say why and what helps."""


class OpenFile:
    """A file that is open until nobody holds this."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def __del__(self) -> None:
        os.close(self.descriptor)

    def write(self, at: int, content: Array) -> None:
        """Write an array's bytes from byte ``at`` on, however many the system takes at a time."""
        left = np.ascontiguousarray(content).reshape(-1).view(np.uint8).data
        while left:
            done = os.pwrite(self.descriptor, left, at)
            at, left = at + done, left[done:]

    def read(self, at: int, into: Array) -> None:
        """Fill a contiguous array with the bytes from byte ``at`` on. OSError where the file has fewer."""
        left = into.reshape(-1).view(np.uint8).data
        while left:
            done = os.preadv(self.descriptor, [left], at)
            if not done:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            at, left = at + done, left[done:]


class Stripes:
    """Bytes in several open files, ``size`` of them in each by turns: a system writes to one file for one thread at a time, and
    most of what is written at once is a part of an array."""

    def __init__(self, files: Sequence[OpenFile], size: int) -> None:
        self.files, self.size = files, size

    def write(self, at: int, content: Array) -> None:
        """See `OpenFile.write`."""
        for file, first, part in self._parts(at, np.ascontiguousarray(content).reshape(-1).view(np.uint8)):
            file.write(first, part)

    def read(self, at: int, into: Array) -> None:
        """See `OpenFile.read`."""
        for file, first, part in self._parts(at, into.reshape(-1).view(np.uint8)):
            file.read(first, part)

    def _parts(self, at: int, array: Array) -> Iterator[tuple[OpenFile, int, Array]]:
        done = 0
        while done < array.size:
            file, first, left = self.place(at + done)
            size = min(left, array.size - done)
            yield file, first, array[done : done + size]
            done += size

    def place(self, at: int) -> tuple[OpenFile, int, int]:
        """The file that has byte ``at``, which byte it is there, and how many it has from there on that follow one another."""
        turn, first = divmod(at, self.size)
        before, number = divmod(turn, len(self.files))
        return self.files[number], before * self.size + first, self.size - first


class Place(NamedTuple):
    """Where an array lies in open files: from byte ``at`` on."""

    file: Stripes
    at: int


class _Mapped(mmap.mmap):
    """The pages of files that stay open, which begin at ``address``; the files are there as long as they are."""

    file: Stripes
    address = 0


class SpillSpace:
    """The files of one connection: ``directory`` (None: the platform's folder for temporary files), and at most ``limit`` bytes
    at once (None: a share of what is free on that disk)."""

    def __init__(self, directory: str | None = None, limit: int | None = None) -> None:
        self.directory = directory or default_directory()
        self.account = Account(limit)
        self._mapped: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()
        self._shared: Array = np.empty(0, np.uint8)
        self._filled = 0  # bytes of it that are given out
        self.stays_open = False  # whether arrays are copied to files and from them: see `place_of`
        self._lock = threading.Lock()

    @property
    def taken(self) -> int:
        """Bytes in files now."""
        return self.account.taken

    def empty(self, shape: int | tuple[int, ...], dtype: DTypeLike, is_copied: bool = False) -> Array:
        """An array in a file of its own, zeros at first; SpillError where the disk or the limit has no room. Of one that
        ``is_copied`` (see `place_of`), and never written through its mapping, bytes are allocated as they are written."""
        dtype = np.dtype(dtype)
        size = math.prod((shape,) if isinstance(shape, int) else shape) * dtype.itemsize
        if size == 0:
            return np.empty(shape, dtype)
        array: Array = np.frombuffer(self._file(size, None, is_copied)[0], dtype)
        return array if isinstance(shape, int) else array.reshape(shape)

    def open_array(self, size: int, dtype: DTypeLike) -> tuple[Array, OpenFile | Stripes]:
        """As `empty` makes it, one entry at least, and its file, open to be written."""
        dtype = np.dtype(dtype)
        mapped, file = self._file(size * dtype.itemsize, None)
        return np.frombuffer(mapped, dtype), file

    def copy_of(self, array: Array) -> Array:
        """The same array in a file, which small ones share."""
        if array.nbytes >= tuning.memory.least_spilled:
            return np.frombuffer(self._file(array.nbytes, array)[0], array.dtype).reshape(array.shape)
        copy = self._part(array.nbytes).view(array.dtype).reshape(array.shape)
        copy[...] = array
        return copy

    def _file(self, size: int, content: Array | None, is_copied: bool = False) -> tuple[mmap.mmap, OpenFile | Stripes]:
        """A new file of so many bytes, mapped: zeros, or what it is to have."""
        if self.account.limit is None:
            most = self.taken + int(self._free() * tuning.memory.disk_share)
            if self.taken + size > most:
                raise SpillError(f"{format_bytes(size)} do not fit the disk of spill_directory {self.directory!r}")
        if not self.account.take(size):
            limit = format_bytes(self.account.limit or 0)
            raise SpillError(
                f"{format_bytes(size)} do not fit a spill_limit of {limit}, of which {format_bytes(self.taken)} are in use"
            )
        try:
            mapped, file = self._map(size, content, is_copied)
            self.account.bind(mapped, size)
        except BaseException:
            self.account.give(size)
            raise
        self._mapped.add(mapped)
        return mapped, file

    def _part(self, size: int) -> Array:
        """A few bytes of the file that is being filled with small arrays. It goes with the last of them."""
        with self._lock:
            start = -(-self._filled // _ALIGNED) * _ALIGNED
            if start + size > len(self._shared):
                self._shared, start = self.empty(tuning.memory.shared_file, np.uint8), 0
            self._filled = start + size
            return self._shared[start : start + size]

    def rest(self) -> None:
        """Let go of the pages that are mapped: what is in them stays in the page cache, or on the disk."""
        for mapped in list(self._mapped):
            advise(mapped, "done")

    def _free(self) -> int:
        try:
            return shutil.disk_usage(self.directory).free
        except OSError as error:
            raise self._failed(error) from None

    def _map(self, size: int, content: Array | None, is_copied: bool) -> tuple[mmap.mmap, OpenFile | Stripes]:
        try:
            if self.stays_open:
                return self._map_stripes(size, content, is_copied)
            file = OpenFile(unnamed_file(self.directory))
            allocate(file.descriptor, size)
            if content is not None:
                file.write(0, content)
            mapped = mmap.mmap(file.descriptor, size)
        except OSError as error:
            raise self._failed(error) from None
        advise(mapped, "sequential")
        return mapped, file

    def _map_stripes(self, size: int, content: Array | None, is_copied: bool) -> tuple[mmap.mmap, Stripes]:
        """In several files by turns, if it is long. Their pages come to lie in a range of addresses that is taken first."""
        least, page = tuning.memory.stripe_bytes, mmap.ALLOCATIONGRANULARITY
        count = min(max(size // least, 1), tuning.memory.stripes)
        stripe = max(tuning.transfers.buffer_bytes, -(-size // tuning.memory.most_stripes))
        stripe = -(-min(stripe, -(-size // count)) // page) * page
        file = Stripes([OpenFile(unnamed_file(self.directory)) for _ in range(min(count, -(-size // stripe)))], stripe)
        mapped = _Mapped(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE)
        mapped.file, mapped.address = file, int(np.frombuffer(mapped, np.uint8).ctypes.data)
        laid = [(at, *file.place(at)) for at in range(0, size, file.size)]
        for one in file.files:
            held = sum(min(left, size - at) for at, own, _, left in laid if own is one)
            if is_copied:
                os.ftruncate(one.descriptor, held)
            else:
                allocate(one.descriptor, held)
        for at, one, first, left in laid:
            map_at(mapped.address + at, one.descriptor, min(left, size - at), first)
        if content is not None:
            file.write(0, content)
        return mapped, file

    def _failed(self, error: OSError) -> SpillError:
        return SpillError(f"no file can be written in spill_directory {self.directory!r} ({error.strerror})")


def is_spilled(array: Any) -> bool:
    """Whether an array lies in a file."""
    return isinstance(_owner(array), mmap.mmap)


def place_of(array: Any) -> Place | None:
    """Where an array lies in a file that stays open; None for one in memory, of a GPU, or with gaps between its elements."""
    mapped = _owner(array)
    if not isinstance(mapped, _Mapped) or not array.flags.c_contiguous:
        return None
    return Place(mapped.file, int(array.ctypes.data) - mapped.address)


def _owner(array: Any) -> Any:
    while isinstance(array, np.ndarray | memoryview):
        array = array.base if isinstance(array, np.ndarray) else array.obj
    return array


def unnamed_file(directory: str) -> int:
    """The descriptor of a new file without a name, for its owner alone."""
    temporary = getattr(os, "O_TMPFILE", None)
    if temporary is not None:
        try:
            return os.open(directory, temporary | os.O_RDWR | os.O_EXCL, 0o600)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL):  # file systems without such files
                raise
    file, path = tempfile.mkstemp(prefix="gquery-", dir=directory)
    os.unlink(path)
    return file


def allocate(file: int, size: int) -> None:
    """Have the disk keep so many bytes for a file; OSError where it has not."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
        return
    zeros = bytes(min(size, tuning.memory.written_bytes))
    for at in range(0, size, len(zeros)):
        os.pwrite(file, zeros[: size - at], at)


def map_at(address: int, file: int, size: int, first: int = 0) -> None:
    """Have the pages of a file from byte ``first`` on lie at an address, in place of what is there. OSError if they cannot."""
    got = _mmap()(address, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED | _MAP_FIXED, file, first)
    if got != address:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


@lru_cache(maxsize=1)
def _mmap() -> Any:
    call = ctypes.CDLL(None, use_errno=True).mmap
    call.restype = ctypes.c_void_p
    call.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64)
    return call


def advise(mapped: mmap.mmap, what: str) -> None:
    """Tell the system how pages are read, or that they are not needed now."""
    advice = _ADVICE[what]
    if advice is not None:
        mapped.madvise(advice)


@lru_cache(maxsize=1)
def default_directory() -> str:
    """The platform's folder for temporary files; where that lies in memory, the one for those that outlive a start."""
    found = tempfile.gettempdir()
    if is_in_memory(found) and os.path.isdir("/var/tmp") and not is_in_memory("/var/tmp"):
        return "/var/tmp"
    return found


def is_in_memory(path: str) -> bool:
    """Whether a folder's file system has no disk, as far as Linux tells."""
    try:
        with open("/proc/self/mounts", encoding="utf-8", errors="replace") as lines:
            mounts: list[Any] = [line.split()[1:3] for line in lines]
    except OSError:
        return False
    path = os.path.realpath(path)
    holding = [(len(at), kind) for at, kind in mounts if os.path.commonpath((path, at)) == at]
    return bool(holding) and max(holding)[1] in _IN_MEMORY
