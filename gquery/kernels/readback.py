"""Numbers that a GPU makes and the host needs, to allocate or to branch: how a thread learns of them.

Array functions ask `read_scalar` for every such integer. Usually that waits for the GPU. While a query runs that has
run before, `execution.speculation` answers from what it saw then, and has the GPU compare. Where a number says how many elements
of an array there are, and more would do no harm, `read_count` is asked: a run that is recorded for other constants, too, takes
as many as there may be, and what goes over them finds the number on the GPU.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from gquery.device.array import Array
from gquery.runtime.tuples import NamedTuple

_local = threading.local()


class Count(NamedTuple):
    """How many elements there are: at most ``bound``, and where the number is smaller than that, ``number`` (int64, one, on the
    GPU) has it. None: it is ``bound``."""

    bound: int
    number: Array | None = None


class Readback(Protocol):
    """Answers a thread's questions for numbers."""

    def read_scalar(self, array: Array | int, expected: int | None = None) -> int:
        """See `read_scalar`."""

    def read_count(self, array: Array, most: int | None, varies: bool = False) -> Count:
        """See `read_count`."""

    def read_most(self, array: Array) -> int:
        """See `read_most`."""

    def validate(self) -> None:
        """See `validate`."""


def read_scalar(array: Array | int, expected: int | None = None) -> int:
    """The integer in an array of one (NumPy or CuPy). ``expected`` is what it is but in rare cases: of what is only checked."""
    asked: Readback | None = getattr(_local, "asked", None)
    return wait_for_scalar(array) if asked is None else asked.read_scalar(array, expected)


def read_count(array: Array, most: int | None = None, varies: bool = False) -> Count:
    """How many elements there are: the integer in an array of one, which is ``most`` at most. ``varies``: it may be another one
    in each run over the same data, as it depends on the order that a GPU left rows in."""
    asked: Readback | None = getattr(_local, "asked", None)
    return Count(wait_for_scalar(array)) if asked is None else asked.read_count(array, most, varies)


def read_most(array: Array) -> int:
    """A number that the integer in an array of one does not exceed: that integer, but in a run that is recorded for other
    constants, too."""
    asked: Readback | None = getattr(_local, "asked", None)
    return wait_for_scalar(array) if asked is None else asked.read_most(array)


def wait_for_scalar(array: Array | int) -> int:
    """The integer, once it is there."""
    return array if isinstance(array, int) else int(array.item())


def validate() -> None:
    """See that every number so far is right: before the host reads what a GPU has made, other than numbers."""
    asked: Readback | None = getattr(_local, "asked", None)
    if asked is not None:
        asked.validate()


@contextmanager
def scalar_readback(asked: Readback) -> Iterator[None]:
    """Within it, ``asked`` answers this thread's questions."""
    before = getattr(_local, "asked", None)
    _local.asked = asked
    try:
        yield
    finally:
        _local.asked = before
