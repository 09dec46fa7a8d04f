"""A part of an array that stands for the whole of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gquery.runtime.tuples import NamedTuple

if TYPE_CHECKING:  # the interpreter comes before NumPy
    from gquery.device.array import Array


class Section(NamedTuple):
    """Elements of an array that is nowhere whole on a device: ``array`` has them there, from number ``first`` on. A kernel is
    told where the whole array would begin, so it goes on counting rows from the first of all."""

    array: Array
    first: int

    def origin(self, address: int) -> int:
        """Where the whole array would begin, when the elements lie at an address."""
        return address - self.first * int(self.array.dtype.itemsize)
