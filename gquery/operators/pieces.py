"""Rows that kernels of a CPU wrote here and there: each unit of the source's rows writes what it keeps at its own place, and
what lies between is left out in the end."""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from gquery import tuning
from gquery.device.array import Array
from gquery.device.device import Device
from gquery.kernels.builtin.gathers import Pieces
from gquery.kernels.targets.morsels import run_parts
from gquery.operators.base import FannedOutError

TOO_MANY = -1  # in place of the count of a morsel that gave more rows than it has


def pieces_of(counts: Array, unit: int) -> Pieces:
    """The pieces of units of so many rows, which wrote ``counts`` rows (int64) each; those without a gap between them are one.
    FannedOutError where a morsel gave more rows than it has."""
    if len(counts) > tuning.materialization.listed_counts:
        (units,) = np.nonzero(counts)
        found = list(zip(units.tolist(), counts[units].tolist(), strict=True))
    else:
        found = [(u, n) for u, n in enumerate(counts.tolist()) if n]
    pieces: Pieces = []
    for u, n in found:
        if n == TOO_MANY:
            raise FannedOutError
        start = u * unit
        if pieces and sum(pieces[-1]) == start:
            pieces[-1] = pieces[-1][0], pieces[-1][1] + n
        else:
            pieces.append((start, n))
    return pieces


def close_gaps(array: Array, pieces: Pieces | None, words: int, device: Device, label: str, workers: int = 1) -> Array:
    """The rows of the pieces one after another, of ``words`` elements each; the array itself where there are no gaps (None).

    The caller gives the array up. Where most of it is kept, the pieces move down in it, which touches no new page. A view of an
    array that somebody else has is copied, and so is one that an account counts: its bytes do not change.
    """
    if not pieces:
        return array if pieces is None else array[:0]
    if len(pieces) == 1 and pieces[0][0] == 0:
        return array[: pieces[0][1] * words]
    kept = sum(n for _, n in pieces) * words
    if kept >= array.size * tuning.materialization.moved_selectivity and array.flags.owndata and not device.is_counted:
        _move_down(array, pieces, words)
        array.resize(kept, refcheck=False)  # pages behind the rows go back to the system
        return array
    closed = device.empty_spillable(kept, array.dtype, label)
    starts = list(accumulate((n for _, n in pieces), initial=0))

    def copy(lo: int, hi: int) -> None:
        copied = [array[start * words : (start + n) * words] for start, n in pieces[lo:hi]]
        np.concatenate(copied, out=closed[starts[lo] * words : starts[hi] * words])

    run_parts(copy, len(pieces), -(-len(pieces) // workers), workers)
    return closed


def _move_down(array: Array, pieces: Pieces, words: int) -> None:
    """Move the pieces to the array's beginning, the first one first: none is written over before it has moved."""
    end = 0
    for start, n in pieces:
        if start * words > end:
            array[end : end + n * words] = array[start * words : (start + n) * words]
        end += n * words
