"""Rows of columns, moved to their parts by the threads of a CPU; see `kernels.builtin.row_partition`.

A thread takes a unit of rows and knows, for each part, the place of the first of them: so it writes to as many runs as there are
parts, and what it reads lies one behind the other. A permutation to gather by would have to be written and read, and reads each
line of a column as often as it has parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from gquery import tuning
from gquery.columns.table import ColumnData
from gquery.device.array import READ_AHEAD, Array
from gquery.device.device import Device
from gquery.expression.types import PhysicalType
from gquery.kernels.bindings import Argument
from gquery.kernels.builtin.define import BuiltinKernel, address, builtin_kernel, is_interpreted
from gquery.kernels.targets import get_target
from gquery.kernels.targets.morsels import run_parts
from gquery.runtime.records import dataclass

_LABELS = {1: "u8", 2: "u16"}  # by bytes
_NEXT = ("part = i64(labels[i])", "place = load_i64(places, part)", "store_i64(places, part, add_i64(place, 1))")
_COUNT = {
    label: builtin_kernel(
        f"labels:*{label} counts:*i64",
        "part = i64(labels[i])",
        "store_i64(counts, part, add_i64(load_i64(counts, part), 1))",
    )
    for label in _LABELS.values()
}
_MOVE = {
    (label, element): builtin_kernel(
        f"labels:*{label} places:*i64 data:*{element} made:*{element}",
        *_NEXT,
        f"store_{element}(made, place, i64(data[i]))",
    )
    for label in _LABELS.values()
    for element in ("u8", "u16", "u32", "i64")
}
_MOVE_WIDE = {
    label: builtin_kernel(
        f"labels:*{label} places:*i64 data:*i64 made:*i64", *_NEXT, "store_i128(made, place, load_i128(data, i64(i)))"
    )
    for label in _LABELS.values()
}
_TEXTS = {
    PhysicalType.STRING32: ("i32", "string32(data, characters, i64(i))"),
    PhysicalType.STRING64: ("i64", "string64(data, characters, i64(i))"),
    PhysicalType.VIEW: ("i64", "view(data, i64(i))"),
}
_LENGTHS = {
    (label, physical_type): builtin_kernel(
        f"labels:*{label} places:*i64 data:*{element} characters:i64 offsets:*i64",
        *_NEXT,
        f"store_i64(offsets, add_i64(place, 1), str_bytes({text}))",
    )
    for label in _LABELS.values()
    for physical_type, (element, text) in _TEXTS.items()
}
_TEXT = {
    (label, physical_type): builtin_kernel(
        f"labels:*{label} places:*i64 data:*{element} characters:i64 offsets:*i64 made:i64",
        *_NEXT,
        f"text = {text}",
        "copy_bytes(str_address(text), add_i64(made, load_i64(offsets, place)), str_bytes(text))",
    )
    for label in _LABELS.values()
    for physical_type, (element, text) in _TEXTS.items()
}


@dataclass(frozen=True, eq=False)
class Units:
    """Rows by their labels in units, and for each unit and part the place of its first row (int64, a row a unit)."""

    labels: Array
    places: Array
    workers: int

    @property
    def label(self) -> str:
        """The element type of the labels."""
        return _LABELS[self.labels.dtype.itemsize]

    def run(self, builtin: BuiltinKernel, *values: Argument) -> None:
        """Run a kernel that counts places up over all units, a copy of whose places it gets."""
        places = self.places.copy()
        _by_units(builtin, self.labels, self.workers, lambda unit: (places[unit], *values))


def _by_units(
    builtin: BuiltinKernel, labels: Array, workers: int, arguments: Callable[[int], Sequence[Argument]]
) -> None:
    """Run a kernel over all rows, whose first argument are their labels; the others are those of the unit."""
    kernel, rows = builtin.kernel, int(labels.size)
    target = get_target("python" if is_interpreted(kernel, rows) else "cpu")
    compiled, unit_rows = target.compile(kernel), tuning.partitioning.unit_rows

    def run(low: int, high: int) -> None:
        values = (labels, *arguments(low // unit_rows))
        given = [target.argument(p, v) for p, v in zip(kernel.parameters, values, strict=True)]
        target.run(compiled, low, high, given)

    run_parts(run, rows, unit_rows, workers if target.name == "cpu" else 1)


def count_units(labels: Array, parts: int, workers: int) -> tuple[Units, list[int]]:
    """Rows by their labels, and where the rows of each part begin, with the end of all."""
    units = -(-int(labels.size) // tuning.partitioning.unit_rows)
    counts = np.zeros((units, parts), np.int64)
    _by_units(_COUNT[_LABELS[labels.dtype.itemsize]], labels, workers, lambda unit: (counts[unit],))
    starts = np.zeros(parts + 1, np.int64)
    np.cumsum(counts.sum(axis=0), out=starts[1:])
    places = starts[:-1] + np.cumsum(counts, axis=0) - counts
    return Units(labels, places, workers), [int(n) for n in starts]


def move_fixed(units: Units, data: Array, words: int, device: Device, label: str) -> Array:
    """Values of ``words`` elements a row (one, or two of 64 bits), each at its new place."""
    made = device.empty_spillable(data.size, data.dtype, label)
    if words > 1:
        units.run(_MOVE_WIDE[units.label], data, made)
    else:
        element = "i64" if data.itemsize == 8 else f"u{8 * data.itemsize}"
        units.run(_MOVE[units.label, element], data, made)  # whatever the elements are, bytes of that size
    return made


def move_text(units: Units, column: ColumnData, device: Device, label: str) -> tuple[Array, Array]:
    """The texts of a column, each at its new place: int64 offsets and their bytes."""
    key = units.label, column.physical_type
    characters = 0 if column.characters is None else address(column.characters.on(device))
    data = column.data.on(device)
    offsets = device.empty_spillable(column.length + 1, np.int64, label)
    offsets[0] = 0
    units.run(_LENGTHS[key], data, characters, offsets)
    np.cumsum(offsets, out=offsets)
    made = device.empty_spillable(int(offsets[-1]) + READ_AHEAD, np.uint8, label)[: int(offsets[-1])]
    if made.size:
        units.run(_TEXT[key], data, characters, offsets, address(made))
    return offsets, made
