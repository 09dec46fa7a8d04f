"""Arrays of several ranks whose slots mean the same, combined slot by slot: on a GPU by one kernel for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np

from gquery import tuning
from gquery.device.array import Array, ElementDType
from gquery.device.buffer import device_of
from gquery.device.copies import brought
from gquery.device.device import Device
from gquery.device.peer import is_in_reach
from gquery.kernels.builtin.combining import Combination, can_combine, combine_together
from gquery.kernels.builtin.grouping import combine_into
from gquery.planner.aggregates import Accumulator
from gquery.runtime.tuples import NamedTuple


def combined(parts: Sequence[Sequence[Array]], ops: Sequence[str], own: int, device: Device) -> list[Array]:
    """The arrays that all ranks handed over, combined so in rank order; fresh arrays on ``device``. Rank ``own`` is this one:
    its arrays are read where they lie, if that is ``device``; on a GPU those of others, too."""
    merged: dict[int, Array] = {}
    together = []
    for n, op in enumerate(ops):
        arrays = [part[n] for part in parts]
        if is_for_a_kernel(op, arrays, device):
            merged[n] = device.empty(int(arrays[0].size), arrays[0].dtype)
            together.append(Combination(op, arrays, merged[n]))
        else:
            merged[n] = _one(arrays, op, own, device)
    if together:
        combine_together(together, device)
    return [merged[n] for n in range(len(ops))]


def add_to(totals: Sequence[Array], others: Sequence[Sequence[Array]], ops: Sequence[str], device: Device) -> None:
    """Combine arrays of a rank on ``device`` with those of each of the others, into its own, which nobody else reads."""
    together = []
    for n, (total, op) in enumerate(zip(totals, ops, strict=True)):
        arrays = [total, *[part[n] for part in others]]
        if is_for_a_kernel(op, arrays, device):
            together.append(Combination(op, arrays, total))
        else:
            for other in arrays[1:]:
                combine_into(total, brought(other, device_of(other), device), op)
    if together:
        combine_together(together, device)


def is_for_a_kernel(op: str, of_ranks: Sequence[Array], device: Device) -> bool:
    """Whether arrays are not too long, and lie where a kernel of a GPU reads them: then it combines them with others at once."""
    is_short = all(a.nbytes <= tuning.transfers.combined_bytes and can_combine(op, a) for a in of_ranks)
    return is_short and all(reads_there(device, device_of(a)) for a in of_ranks)


def reads_there(device: Device, other: Device) -> bool:
    """Whether kernels of a GPU read what lies on a device."""
    return device.is_cuda and (device == other or is_in_reach(device, other))


def _one(arrays: Sequence[Array], op: str, own: int, device: Device) -> Array:
    shares = len(arrays) > 1
    stays = shares and (device.is_cpu or device_of(arrays[own]) == device)  # what a GPU interprets lies on the host
    here = [a if stays and r == own else brought(a, device_of(a), device) for r, a in enumerate(arrays)]
    total, is_fresh = here[0], not (stays and own == 0)
    for other in here[1:]:  # into memory of this rank's own, but for what others read
        into = total if is_fresh else other
        combine_into(into, other if is_fresh else total, op)
        total, is_fresh = into, True
    return total


class Stretch(NamedTuple):
    """Neighbouring slots that are combined alike: those of the ``array``-th array of each rank, from ``first`` to the one before
    ``end``, taken as elements of ``dtype``."""

    array: int
    first: int
    end: int
    op: str
    dtype: ElementDType

    def of(self, arrays: Sequence[Array]) -> Array:
        """These slots of a rank's arrays."""
        found: Array = arrays[self.array][self.first : self.end].view(self.dtype)
        return found


def word_stretches(accumulators: Sequence[Accumulator], slots: int) -> list[Stretch]:
    """The stretches of the first array of each rank, which has a word a slot for each accumulator, one behind the other."""
    found, first = [], 0
    for (op, word), alike in groupby(accumulators, lambda a: (a.op, a.word)):
        end = first + slots * len(list(alike))
        found.append(Stretch(0, first, end, op, np.dtype(np.int64 if word == "i64" else np.float64)))
        first = end
    return found


def combined_stretches(parts: Sequence[Sequence[Array]], stretches: Sequence[Stretch], device: Device) -> list[Array]:
    """The arrays that all ranks handed over, which consist of ``stretches``, combined in rank order; fresh on ``device``."""
    if all(is_for_a_kernel(s.op, [s.of(part) for part in parts], device) for s in stretches):
        made = [device.empty(int(a.size), a.dtype) for a in parts[0]]
        combine_together([Combination(s.op, [s.of(p) for p in parts], s.of(made)) for s in stretches], device)
        return made
    total, *others = [[brought(a, device_of(a), device) for a in part] for part in parts]
    for other in others:
        for stretch in stretches:
            combine_into(stretch.of(total), stretch.of(other), stretch.op)
    return total
