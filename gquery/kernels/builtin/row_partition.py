"""Rows of columns by the part that each is to go to: counted, scanned, and written once to where the parts lie.

The part of each row is a *label*, a byte or two. Columns are moved in tiles of rows, so that what goes to one part is written
in runs: on a GPU by blocks, through shared memory (`primitives.row_partition`), on a CPU by threads, of which each takes some
rows and knows where those begin in every part (`builtin.row_scatter`). Rows of a part keep their order. On a GPU parts need not
lie one after another: each may go to a place of its own, in the memory of another GPU, too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gquery import tuning
from gquery.device.array import Array
from gquery.device.device import Device
from gquery.device.profile import get_profile
from gquery.kernels.bindings import Argument
from gquery.kernels.builtin.define import BuiltinKernel, address, builtin_kernel
from gquery.kernels.builtin.prefix_sums import offsets_of
from gquery.kernels.primitives import row_partition as words
from gquery.kernels.readback import read_scalar
from gquery.kernels.targets import get_target

COUNT_ROWS = builtin_kernel("job:*i64 counts:*u32", "count_rows(i64(i), i64(hi), job, counts)", uses_block=True)
MOVE_ROWS = builtin_kernel("job:*i64 starts:*i64", "move_rows(i64(i), i64(hi), job, starts)", uses_block=True)

Move = tuple[int, int | Sequence[int], int, int]
"""A column to be moved: the addresses of its rows and of their new place, bytes of an element, elements of a row. Where each part
has a place of its own: that of row 0, by part. A row's number is that among the rows of all parts."""


MOST_PARTS = words.MOST_PARTS


def label_type(parts: int) -> str:
    """The NumPy type of labels of so many parts."""
    return "uint8" if parts <= 2**8 else "uint16"


def labels_for(rows: int, parts: int, device: Device, label: str) -> Array:
    """Room for the labels of so many rows; on a GPU there is more behind them, which kernels read and ignore."""
    size = rows if device.is_cpu else _tiles(rows) * words.TILE
    return device.empty_spillable(size, label_type(parts), label)[:rows]


def job_of(labels: int, dtype: np.dtype[np.generic], rows: int, parts: int, moves: Sequence[Move]) -> Array:
    """What kernels are told, as they find it. ``labels`` is an address."""
    copies = max(
        1, min(tuning.partitioning.counter_copies, 1 << (tuning.partitioning.counters // parts).bit_length() - 1)
    )
    part_bits = (parts - 1).bit_length()
    columns = sum(elements for *_, elements in moves)
    has_places = bool(moves) and not isinstance(moves[0][1], int)
    job = [labels, dtype.itemsize - 1, rows, _tiles(rows), parts, part_bits, copies, columns, -has_places]
    places: list[int] = []
    behind = words.FIRST_COLUMN + columns * words.COLUMN_WORDS
    for source, target, size, elements in moves:
        row_bytes, to = size * elements, (target,) if isinstance(target, int) else target
        for k in range(elements):  # of a row of two words first one and then the other, a row apart
            job += [source + k * size, behind + len(places), row_bytes.bit_length() - 1, size]
            places += [place + k * size for place in to]
    return np.array(job + places, np.int64)


def _tiles(rows: int) -> int:
    return -(-rows // words.TILE)


def count_on_gpu(labels: Array, parts: int, device: Device, label: str) -> Array:
    """Where the rows of each part and tile begin (int64): those of the first part's tiles, and so on; at last the end of all."""
    rows = int(labels.size)
    counts = device.empty(parts * _tiles(rows), np.uint32, label)
    job = device.from_host(job_of(address(labels), labels.dtype, rows, parts, ()))
    _run(COUNT_ROWS, rows, tuning.partitioning.counters // 2, device, job, counts)
    return offsets_of(counts, out=device.empty(counts.size + 1, np.int64, label))


def move_on_gpu(labels: Array, starts: Array, parts: int, moves: Sequence[Move], device: Device) -> None:
    """Move columns by labels; ``starts`` are those of `count_on_gpu`."""
    rows = int(labels.size)
    job = device.from_host(job_of(address(labels), labels.dtype, rows, parts, moves))
    _run(MOVE_ROWS, rows, words.TILE_WORDS + words.PART_WORDS * parts, device, job, starts)


def starts_of_parts(starts: Array, rows: int) -> list[int]:
    """Where each part begins, and the end of the last."""
    begins = starts[:: _tiles(rows)]
    inner = [read_scalar(begins[p : p + 1]) for p in range(1, begins.size - 1)]
    return [0, *inner, rows]


def _run(builtin: BuiltinKernel, rows: int, shared_words: int, device: Device, *values: Argument) -> None:
    """Launch whole blocks: no more than there are tiles or than run at once several times over, so that all end together."""
    target, kernel = get_target("cuda"), builtin.kernel
    arguments = [target.argument(p, v) for p, v in zip(kernel.parameters, values, strict=True)]
    blocks = min(_tiles(rows), get_profile(device).processors * tuning.partitioning.blocks_a_processor)
    target.run(target.compile(kernel), 0, blocks * tuning.launches.most_threads, arguments, shared_words)
