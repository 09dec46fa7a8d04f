"""The memory of a CPU under a limit: what is large is counted before it is taken, and what is written and read in order may lie
in files.

Who runs out of memory has cached columns moved into files (`io.column_cache`), the least recently used first. What is found by
hashing, or sorted, stays in memory.
"""

from __future__ import annotations

import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from gquery import tuning
from gquery.device.array import Array
from gquery.device.kept_memory import available_memory
from gquery.device.memory import Account
from gquery.device.spill import OpenFile, SpillError, SpillSpace, Stripes, is_spilled
from gquery.errors import OutOfMemoryError

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


class LimitedMemory(ABC):
    """The part of a `Device` that counts what arrays of the host take, where it is a CPU under a limit."""

    is_cpu: bool
    memory_limit: int | None
    account: Account
    spill: SpillSpace | None
    evict: Callable[[Any, int], None] | None
    to_files = 0  # how many ask that all that may lie in files does
    _counting = threading.Lock()

    @abstractmethod
    def empty(self, shape: int | tuple[int, ...], dtype: DTypeLike, context: str = "") -> Array:
        """An uninitialised array; OutOfMemoryError where it does not fit."""

    @abstractmethod
    def reserve(self, wanted: int, context: str) -> None:
        """Check that so many bytes more would fit."""

    @abstractmethod
    def _out_of_memory(
        self, wanted: int | None, context: str, reason: str = "", spilled: str = ""
    ) -> OutOfMemoryError: ...

    @property
    def is_counted(self) -> bool:
        """Whether what arrays of the host take is counted: on a CPU under a limit."""
        return self.is_cpu and self.memory_limit is not None

    @property
    def keeps_columns(self) -> bool:
        """Whether columns of the host, and what libraries make of them, count here as well, and may lie in files: on the CPU of a
        connection that runs on it alone."""
        return self.is_counted and self.spill is not None

    def empty_spillable(self, shape: int | tuple[int, ...], dtype: DTypeLike, context: str = "") -> Array:
        """An uninitialised array that is written and read in order: in a file where it would leave a limit too little for what
        has to lie in memory. OutOfMemoryError where neither has room."""
        wanted = array_bytes(shape, dtype)
        if not self._is_for_file(wanted):
            return self.empty(shape, dtype, context)
        return self.in_new_file(shape, dtype, context)

    def empty_copied(self, size: int, dtype: DTypeLike, context: str = "") -> Array:
        """As `empty_spillable`, an array that copies of `device.copies` write, and nothing else."""
        return self.empty_spillable(size, dtype, context)

    def open_spillable(self, size: int, dtype: DTypeLike, context: str) -> tuple[Array, OpenFile | Stripes | None]:
        """As `empty_spillable`; with a file that it lies in, which is to be written in place of the array: see `device.spill`."""
        wanted = array_bytes(size, dtype)
        if not self._is_for_file(wanted):
            return self.empty_spillable(size, dtype, context), None
        assert self.spill is not None
        try:
            return self.spill.open_array(size, dtype)
        except SpillError as error:
            raise self._out_of_memory(wanted, context, spilled=str(error)) from None

    def copied_spillable(self, array: Array, context: str) -> Array:
        """A copy of an array of the host, which lies where `empty_spillable` would have it."""
        if self._is_for_file(int(array.nbytes)):
            return self._in_file(array, context)
        copy = self.empty_spillable(array.shape, array.dtype, context)
        copy[...] = array
        return copy

    def in_new_file(
        self, shape: int | tuple[int, ...], dtype: DTypeLike, context: str, is_copied: bool = False
    ) -> Array:
        """An array of zeros in a file. OutOfMemoryError where files have no room. See `empty_copied`."""
        assert self.spill is not None
        try:
            return self.spill.empty(shape, dtype, is_copied)
        except SpillError as error:
            raise self._out_of_memory(array_bytes(shape, dtype), context, spilled=str(error)) from None

    def in_file(self, array: Array, context: str) -> Array:
        """A copy in a file of an array of the host, or the array itself if it is small or lies in one. OutOfMemoryError where
        files have no room."""
        if self.spill is None or array.nbytes < tuning.memory.least_spilled or is_spilled(array):
            return array
        return self._in_file(array, context)

    def _in_file(self, array: Array, context: str) -> Array:
        assert self.spill is not None
        try:
            return self.spill.copy_of(array)
        except SpillError as error:
            raise self._out_of_memory(int(array.nbytes), context, spilled=str(error)) from None

    @contextmanager
    def into_files(self) -> Iterator[None]:
        """Within it, arrays that are written and read in order lie in files, as memory is wanted for others."""
        with self._counting:
            self.to_files += 1
        try:
            yield
        finally:
            with self._counting:
                self.to_files -= 1

    def has_to_file(self, wanted: int) -> bool:
        """Whether so many bytes that `empty_copied` makes would lie in a file."""
        return False

    def _is_for_file(self, wanted: int) -> bool:
        """Whether so many bytes, which are written and read in order, are to lie in a file."""
        if self.spill is None or self.memory_limit is None or wanted < tuning.memory.least_spilled:
            return False
        if self.to_files:
            return True
        return self.account.taken + wanted > self.memory_limit * tuning.memory.ordered_share

    def take(self, wanted: int, context: str) -> None:
        """Count bytes of the host that somebody is about to take, to be given back to the `account`; OutOfMemoryError where they
        do not fit, with all room that can be made."""
        if not self.is_counted:
            self.reserve(wanted, context)
            return
        if wanted > tuning.memory.checked_bytes and wanted > available_memory(wanted):
            raise self._out_of_memory(wanted, context)
        while not self.account.take(wanted):
            before, full = self.account.taken, ""
            try:
                if self.evict is not None and self.memory_limit is not None:
                    self.evict(self, before + wanted - self.memory_limit)
            except SpillError as error:
                full = str(error)
            if self.account.taken >= before:
                raise self._out_of_memory(wanted, context, spilled=full)

    @contextmanager
    def scratch(self, wanted: int, context: str) -> Iterator[None]:
        """Within it, so many bytes are taken for what a library allocates by itself."""
        if not self.is_counted or not wanted:
            yield
            return
        self.take(wanted, context)
        try:
            yield
        finally:
            self.account.give(wanted)

    def ordered(self, array: Array, context: str) -> Array:
        """An array of the host that was made without being counted, which it is from now on; or a copy of it in a file."""
        if not self.is_counted or self.account.knows(array) or is_spilled(array):
            return array
        if self._is_for_file(int(array.nbytes)):
            return self._in_file(array, context)
        self.count(array, int(array.nbytes), context)
        return array

    def count(self, made: Any, size: int, context: str) -> None:
        """Count what a library has made on the host until it goes, where nobody has; OutOfMemoryError where it does not fit."""
        if self.is_counted and not self.account.knows(made) and not is_spilled(made):
            self.take(size, context)
            self.account.bind(made, size)


def owner_of_views(array: Array) -> Array:
    """The array that all views of its memory hold: itself, or, where it is a view of another library's memory, the first one."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def array_bytes(shape: int | tuple[int, ...], dtype: DTypeLike) -> int:
    """Bytes of an array."""
    return (shape if isinstance(shape, int) else math.prod(shape)) * np.dtype(dtype).itemsize
