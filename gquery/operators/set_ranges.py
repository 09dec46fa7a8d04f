"""A join table that is an array over one key of which each rank's rows have a range of values: no rank sets what another has set.

So a rank hands over the elements of its own range alone, and those of others come to their place in its own array, which has
nothing there yet. Bits of two ranks may share a word, so words are combined. While a rank puts those of others into its array,
others may still read its own range: that stays as it is, but for bits of others in the words at its ends, which they may have.
"""

from __future__ import annotations

from collections.abc import Sequence

from gquery.device.array import Array
from gquery.device.buffer import device_of
from gquery.device.copies import brought, copy_into
from gquery.device.device import Device
from gquery.device.peer import in_step
from gquery.kernels.builtin.grouping import combine_into
from gquery.operators.cut_keys import CutKeys
from gquery.planner.layouts import KeyEncoding
from gquery.runtime.tuples import NamedTuple


class SetRange(NamedTuple):
    """The elements of an array that a rank may have set: from ``first`` to the one before ``end``."""

    first: int
    end: int

    def of(self, array: Array) -> Array:
        """These elements, in the memory of the array."""
        return array[self.first : self.end]


def set_ranges(keys: CutKeys, encoding: KeyEncoding, ranks: int, slots_an_element: int) -> list[SetRange]:
    """What each rank may have set of an array over one key, with so many slots an element."""
    (part,) = encoding.parts
    found = []
    for rank in range(ranks):
        low, high = keys.slots(rank, part.base, part.width)
        first = low // slots_an_element
        found.append(SetRange(first, -(-high // slots_an_element) if low < high else first))
    return found


def put_ranges(total: Array, parts: Sequence[Array], ranges: Sequence[SetRange], own: int, device: Device) -> None:
    """Put what other ranks have set to its place in an array of rank ``own`` on ``device``."""
    for rank, (part, at) in enumerate(zip(parts, ranges, strict=True)):
        if rank == own or at.first == at.end:
            continue
        if any(at.first < other.end and other.first < at.end for n, other in enumerate(ranges) if n != rank):
            combine_into(at.of(total), brought(part, device_of(part), device), "or")
        else:
            with in_step():
                copy_into(at.of(total), device, part, device_of(part))
