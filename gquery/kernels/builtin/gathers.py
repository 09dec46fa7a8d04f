"""Rows taken out of columns by their numbers, strings with them.

Functions take NumPy or CuPy arrays and give arrays of the same kind. Row numbers are uint32.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from gquery import tuning
from gquery.columns.table import ColumnData, ColumnStatistics
from gquery.device.array import READ_AHEAD, Array, ElementDType
from gquery.device.buffer import Buffer
from gquery.device.device import Device, cpu_device
from gquery.expression.types import PhysicalType
from gquery.kernels.builtin.define import (
    PART,
    BuiltinKernel,
    address,
    builtin_kernel,
    element_word,
    is_interpreted,
    launch,
    namespace,
)
from gquery.kernels.builtin.elements import clear_others, contiguous, converted, hide_nulls, store
from gquery.kernels.builtin.prefix_sums import offsets_of, running_sums
from gquery.kernels.readback import read_count
from gquery.kernels.targets import get_target
from gquery.kernels.targets.base import arguments_of
from gquery.kernels.targets.morsels import run_parts

Pieces = list[tuple[int, int]]
"""The first row and the number of rows of each piece."""


def _nth(row: str, words: int, word: int) -> str:
    """The text of the index of a row's word, of which it has so many."""
    return row if words == 1 else f"add_i64(mul_i64({row}, {words}), {word})"


_ELEMENTS = {1: "u8", 2: "u16", 4: "u32", 8: "i64"}  # by bytes
GATHERS = {
    (element, row, words): builtin_kernel(
        f"rows:*{row} data:*{element} made:*{element}",
        "row = i64(rows[i])",
        *(
            f"store_{element}(made, {_nth('i64(i)', words, k)}, i64(data[row_index({_nth('row', words, k)})]))"
            for k in range(words)
        ),
    )
    for row in ("u32", "i64")
    for element, words in (("u8", 1), ("u16", 1), ("u32", 1), ("i64", 1), ("i64", 2))
}


def gather(array: Array, rows: Array, words: int = 1) -> Array:
    """``array[rows]``, of ``words`` consecutive elements a row (one, or two of 8 bytes); on a GPU for rows that are there."""
    xp = namespace(array)
    if xp is np:
        return array[rows] if words == 1 else array.reshape(-1, words)[rows].reshape(-1)
    element = _ELEMENTS[array.dtype.itemsize]
    row = "u32" if rows.dtype == np.uint32 else "i64"
    rows = contiguous(rows) if rows.dtype in (np.uint32, np.int64) else converted(rows, np.int64)
    made: Array = xp.empty(words * rows.size, array.dtype)
    launch(GATHERS[element, row, words], rows.size, made, rows, contiguous(array), made)
    return made


def concatenated(arrays: Sequence[Array], dtype: ElementDType | str | None = None) -> Array:
    """The arrays one after another, as elements of ``dtype`` (None: as they are). CuPy's own sends the addresses of many arrays
    to the GPU, which a recording cannot do."""
    xp, first = namespace(arrays[0]), arrays[0]
    if xp is np:
        joined: Array = np.concatenate(arrays)
        return joined if dtype is None else joined.astype(dtype, copy=False)
    made: Array = xp.empty(sum(int(a.size) for a in arrays), first.dtype if dtype is None else dtype)
    end = 0
    for array in arrays:
        start, end = end, end + int(array.size)
        if array.size and array.dtype == made.dtype and array.flags.c_contiguous:
            xp.copyto(made[start:end], array)  # a copy of bytes
        elif array.size:
            store(array, made[start:end])
    return made


_COPY = builtin_kernel("views:*i64 offsets:*i64 characters:i64",
                "s = view(views, i64(i))",
                "copy_bytes(str_address(s), add_i64(characters, i64(offsets[i])), str_bytes(s))")  # fmt: skip


_VIEW_LENGTHS = builtin_kernel("views:*i64 lengths:*i64", "store_i64(lengths, i64(i), str_bytes(view(views, i64(i))))")


_APPEND = builtin_kernel(
    "views:*i64 offsets:*i64 characters:i64 start:i64",
    "s = view(views, i64(i))",
    f"ahead = view(views, min_i64(add_i64(i64(i), {tuning.built_in_kernels.prefetched_texts}), sub_i64(i64(hi), 1)))",
    "prefetch_text(str_address(ahead))",  # texts of looked up rows lie anywhere
    "copy_bytes(str_address(s), add_i64(characters, end), str_bytes(s))",
    "end = add_i64(end, str_bytes(s))",
    "store_i64(offsets, add_i64(i64(i), 1), end)",
    prologue=("end = start",),
)


def gather_strings(
    views: Array, workers: int = 1, device: Device | None = None, pieces: Pieces | None = None
) -> tuple[Array, Array]:
    """The strings of (address, length) pairs one after another: int64 offsets and their bytes; on a CPU ``device`` under a limit
    in files if they would leave too little memory. ``pieces``: of these rows alone, on a CPU."""
    xp = namespace(views)
    rows = views.size // 2 if pieces is None else sum(n for _, n in pieces)
    if xp is np and not is_interpreted(_COPY.kernel, rows):
        return _strings_of_pieces(views, [(0, rows)] if pieces is None else pieces, workers, device)
    if pieces is not None:
        views = concatenated([views[2 * first : 2 * (first + n)] for first, n in pieces] or [views[:0]])
    is_counted = device is not None and device.is_counted
    make = device.empty_spillable if device is not None and is_counted else xp.empty
    lengths = views[1::2]
    if xp is not np:
        lengths = xp.empty(rows, np.int64)
        launch(_VIEW_LENGTHS, rows, views, views, lengths)
    offsets = offsets_of(lengths, out=make(rows + 1, np.int64))
    total = read_count(offsets[-1:]).bound
    characters = make(total + READ_AHEAD, np.uint8)[:total]
    if xp is np:
        characters[:] = np.frombuffer(
            b"".join(map(ctypes.string_at, views[::2].tolist(), views[1::2].tolist())), np.uint8
        )
    elif characters.size:
        launch(_COPY, rows, views, views, offsets, address(characters))
    return offsets, characters


def _strings_of_pieces(views: Array, pieces: Pieces, workers: int, device: Device | None) -> tuple[Array, Array]:
    """The same on a CPU: threads add up the lengths of a part each, and then write its offsets and copy its strings at once."""
    device = device or cpu_device()
    parts, rows = [], 0  # the first row, that behind the last, and the row of the result
    for first, n in pieces:
        for low in range(first, first + n, PART):
            high = min(low + PART, first + n)
            parts.append((low, high, rows))
            rows += high - low
    lengths = views[1::2]
    at_once = max(1, -(-PART * len(parts) // max(rows, 1)))  # parts of many pieces are small

    def add(lo: int, hi: int) -> list[int]:
        return [int(lengths[low:high].sum()) for low, high, _ in parts[lo:hi]]

    sizes = [n for some in run_parts(add, len(parts), at_once, workers) for n in some]
    starts = list(accumulate(sizes, initial=0))
    offsets = device.empty_spillable(rows + 1, np.int64)
    offsets[0] = 0
    characters = device.empty_spillable(starts[-1] + READ_AHEAD, np.uint8)[: starts[-1]]
    target, kernel = get_target("cpu"), _APPEND.kernel
    compiled = target.compile(kernel)

    def append(lo: int, hi: int) -> None:
        for k in range(lo, hi):
            low, high, row = parts[k]
            given = (views[2 * low :], offsets[row:], address(characters), starts[k])
            target.run(compiled, 0, high - low, arguments_of(target, kernel, given))

    run_parts(append, len(parts), at_once, workers)
    return offsets, characters


def gather_views(column: ColumnData, device: Device, workers: int = 1, pieces: Pieces | None = None) -> ColumnData:
    """A column of views, whose rows lie in ``pieces`` of its data, as offsets and characters of its own."""
    strings = gather_strings(column.data.on(device), workers, device, pieces)
    return _plain_text(column, strings, column.validity, column.statistics, device)


def _plain_text(
    column: ColumnData,
    strings: tuple[Array, Array],
    validity: Buffer | None,
    statistics: ColumnStatistics,
    device: Device,
) -> ColumnData:
    offsets, characters = strings
    return ColumnData(  # always 64-bit offsets, so that the physical type is known before the bytes are counted
        column.dtype, PhysicalType.STRING64, int(offsets.size) - 1, Buffer(offsets, device), validity,
        Buffer(characters, device), column.dictionary, statistics,
    )  # fmt: skip


def string_views(column: ColumnData, device: Device, rows: Array | None = None) -> Array:
    """(address, length) pairs of a string column's rows, all of them or those given, as one int64 array."""
    data = column.data.on(device)
    if column.physical_type is PhysicalType.VIEW:
        return data if rows is None else gather(data, rows, 2)
    assert column.characters is not None
    xp = namespace(data)
    count = column.length if rows is None else int(rows.size)
    if xp is not np or count >= tuning.built_in_kernels.viewed_rows:
        return _views(column, data, address(column.characters.on(device)), rows)
    starts, ends = data[:-1], data[1:]
    if rows is not None:
        starts, ends = gather(starts, rows), gather(ends, rows)
    starts, ends = starts.astype(np.int64), ends.astype(np.int64)
    pairs: Array = xp.stack((starts + address(column.characters.on(device)), ends - starts), axis=1)
    return pairs.reshape(-1)


TEXTS = {
    PhysicalType.STRING32: ("*i32", "string32(data, characters, {row})"),
    PhysicalType.STRING64: ("*i64", "string64(data, characters, {row})"),
    PhysicalType.VIEW: ("*i64", "view(data, {row})"),
}
"""For each way in which texts lie the type of ``data``, and the text of a row in a kernel's lines."""

_STRINGS = {
    physical_type: (element, text.format(row="i64(rows[i])")) for physical_type, (element, text) in TEXTS.items()
}
LENGTHS = {
    physical_type: builtin_kernel(
        f"data:{element} characters:i64 rows:*u32 lengths:*i64",
        "if eq_i64(i64(i), 0):",
        "    store_i64(lengths, 0, 0)",
        f"store_i64(lengths, add_i64(i64(i), 1), str_bytes({string}))",
    )
    for physical_type, (element, string) in _STRINGS.items()
}
COPIES = {
    physical_type: builtin_kernel(
        f"data:{element} characters:i64 rows:*u32 offsets:*i64 copy:i64",
        f"s = {string}",
        "copy_bytes(str_address(s), add_i64(copy, i64(offsets[i])), str_bytes(s))",
    )
    for physical_type, (element, string) in _STRINGS.items()
}


VIEWS: dict[tuple[PhysicalType, str | None], BuiltinKernel] = {
    (physical_type, row): builtin_kernel(
        f"data:{element} characters:i64 rows:*{row or 'u32'} views:*i64",
        "row = i64(i)" if row is None else "row = i64(rows[i])",
        f"store_view(views, i64(i), {text.format(row='row')})",
    )
    for physical_type, (element, text) in TEXTS.items()
    if physical_type is not PhysicalType.VIEW
    for row in (None, "u32", "i64")
}


def _views(column: ColumnData, data: Array, characters: int, rows: Array | None) -> Array:
    """`string_views` of texts that lie one behind the other, by one kernel; of rows of any integers."""
    xp = namespace(data)
    if rows is not None and rows.dtype != np.uint32:
        rows = converted(rows, np.int64)
    row = None if rows is None else element_word(rows)
    views: Array = xp.empty(2 * (column.length if rows is None else rows.size), np.int64)
    given = None if rows is None else contiguous(rows)
    launch(VIEWS[column.physical_type, row], views.size // 2, views, data, characters, given, views)
    return views


def take_strings(column: ColumnData, rows: Array, device: Device, number: Array | None = None) -> tuple[Array, Array]:
    """The strings of these rows one after another, as `gather_strings` gives them: two kernels and a scan, where array
    functions would be a dozen. Behind as many as ``number`` says come empty ones."""
    xp, n = device.xp, int(rows.size)
    rows = rows if rows.dtype == np.uint32 else converted(rows, np.uint32)
    data = column.data.on(device)
    characters = 0 if column.characters is None else address(column.characters.on(device))
    offsets = running_sums(_lengths(column, rows, device, number), np.int64)
    total = read_count(offsets[-1:]).bound
    copy = xp.empty(total + READ_AHEAD, np.uint8)[:total]
    if total:
        launch(COPIES[column.physical_type], n, copy, data, characters, rows, offsets, address(copy), number=number)
    return offsets, copy


def _lengths(column: ColumnData, rows: Array, device: Device, number: Array | None = None) -> Array:
    """0, and how many bytes the strings of these rows have (int64)."""
    xp, n = device.xp, int(rows.size)
    data = column.data.on(device)
    characters = 0 if column.characters is None else address(column.characters.on(device))
    lengths: Array = xp.empty(n + 1, np.int64) if n and number is None else xp.zeros(n + 1, np.int64)
    launch(LENGTHS[column.physical_type], n, lengths, data, characters, rows, lengths, number=number)
    return lengths


def text_lengths(column: ColumnData, rows: Array, device: Device) -> Array:
    """How many bytes the strings of these rows have, of a column with offsets."""
    if device.is_cpu:
        data = column.data.on(device)
        lengths: Array = data[1:][rows] - data[:-1][rows]
        return lengths
    return _lengths(column, rows, device)[1:]


def take(
    column: ColumnData, rows: Array, device: Device, number: Array | None = None, there: Array | None = None
) -> ColumnData:
    """The column's rows of these numbers, in their order; strings are copied out. As many count as ``number`` (int64, one, on the
    GPU) says; None: all. Those that are not ``there`` (uint8) are NULL, and nothing lies under any NULL: a sort takes what does
    for a part of the key."""
    flags = None if column.validity is None else gather(column.validity.on(device), rows)
    if there is not None and flags is None:
        flags = there
    elif there is not None and flags is not None:
        clear_others(flags, there)
    validity = None if flags is None else Buffer(flags, device)
    statistics = ColumnStatistics(column.statistics.bounds, 0 if validity is None else None)
    if column.physical_type.is_string:
        if device.is_cpu or there is not None:
            views = string_views(column, device, rows)
            if flags is not None and there is not None:
                hide_nulls(views, flags, 2)
            taken = gather_strings(views, device=device)
        else:
            taken = take_strings(column, rows, device, number)
        return _plain_text(column, taken, validity, statistics, device)
    words = 2 if column.physical_type is PhysicalType.I128 else 1
    data = gather(column.data.on(device), rows, words)
    if flags is not None and there is not None:
        hide_nulls(data, flags, words)
    return ColumnData(
        column.dtype, column.physical_type, int(rows.size), Buffer(data, device), validity, None, column.dictionary, statistics,
        column.owners,
    )  # fmt: skip
