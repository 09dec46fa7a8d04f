"""Whole-array operations: scans, compaction, grouping, gathers, strings.

What operators do between two kernels. Every function takes NumPy or CuPy arrays and gives arrays of the same kind;
loops that neither library has are handwritten `Kernel`s, compiled and cached like generated ones. Row numbers are
uint32.
"""

from __future__ import annotations

import ctypes
import sys
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from gquery.device import READ_AHEAD, Device
from gquery.dtypes import Carrier
from gquery.errors import OperationalError
from gquery.kernels.batch import batched
from gquery.kernels.kernel import ElementType, Kernel, Parameter
from gquery.kernels.numbers import number
from gquery.kernels.targets import get_target
from gquery.kernels.targets.morsels import run_parts
from gquery.table import Buffer, Column

NOT_IN = 0xFFFFFFFF
"""The slot of a row that belongs to no group."""
MOST_ROWS = 2**32 - 2
_INTERPRETED_ROWS = 2_000
_WORTH_COMPILING = 100_000  # rows that the interpreter takes some 0.3 s for, as a compiler would
_interpreted: dict[str, int] = {}  # rows by the digest of a kernel
_MASK_32 = 0xFFFFFFFF
_BATCH_ROWS = 4
_PART = 2**17  # rows that one thread of several takes at once


def namespace(array: Any) -> Any:
    """The module that an array is from: numpy or cupy."""
    return np if isinstance(array, np.ndarray) else sys.modules[type(array).__module__.partition(".")[0]]


def launch(kernel: Kernel, rows: int, like: Any, *values: Any, workers: int = 1) -> None:
    """Run a kernel over all rows where the arrays lie; on a CPU by so many threads, if its rows do not meet in memory."""
    name = "cuda" if namespace(like) is not np else "python" if _is_interpreted(kernel, rows) else "cpu"
    target = get_target(name)
    arguments = [target.argument(p, v) for p, v in zip(kernel.parameters, values, strict=True)]
    compiled = target.compile(kernel)
    if name == "cpu" and workers > 1:
        run_parts(lambda lo, hi: target.run(compiled, lo, hi, arguments), rows, _PART, workers)
    else:
        target.run(compiled, 0, rows, arguments)


def _is_interpreted(kernel: Kernel, rows: int) -> bool:
    """Whether the interpreter is quicker than a compiler, counting what it has done with the kernel before."""
    if rows >= _INTERPRETED_ROWS or _interpreted.get(kernel.digest, 0) >= _WORTH_COMPILING:
        return False
    _interpreted[kernel.digest] = _interpreted.get(kernel.digest, 0) + rows
    return True


def handwritten(parameters: str, *body: str, ahead: tuple[str, ...] = ()) -> Kernel:
    """A handwritten kernel; ``parameters`` as in ``slots:*u32 base:i64``. Loads of the variables ``ahead`` come first for
    several rows at once (see `kernels.batch`)."""
    parsed = []
    for word in parameters.split():
        name, _, type_ = word.partition(":")
        element: ElementType = type_.removeprefix("*")  # type: ignore[assignment]
        parsed.append(Parameter(name, element, type_.startswith("*")))
    kernel = Kernel(tuple(parsed), (), body, (), frozenset())
    return replace(kernel, batch=batched(body, _BATCH_ROWS, ahead)) if ahead else kernel


FILLS = {
    word: handwritten(f"values:*{word} value:i64", f"store_{word}(values, i64(i), value)") for word in ("u32", "i64")
}


def _nth(row: str, words: int, word: int) -> str:
    """The text of the index of a row's word, of which it has so many."""
    return row if words == 1 else f"add_i64(mul_i64({row}, {words}), {word})"


def fill(values: Any, value: int) -> None:
    """Set all of an array of int64 or uint32."""
    if namespace(values) is np:
        values.fill(value)
    else:
        launch(FILLS[_word(values)], values.size, values, values, value)


def full(device: Device, size: int, value: int, dtype: str, context: str, workers: int) -> Any:
    """An array of one value, uint32 or int64; so many threads of a CPU write it."""
    made = device.empty(size, dtype, context)
    if workers == 1 or not device.is_cpu:
        fill(made, value)
        return made
    run_parts(lambda lo, hi: made[lo:hi].fill(value), size, 4 * _PART, workers)
    return made


# ---- scans and groups --------------------------------------------------------------------------------------------


def check_rows(rows: int) -> None:
    """Refuse what would need row numbers of more than 32 bits."""
    if rows > MOST_ROWS:
        raise OperationalError(
            f"Sorts, join tables and groups of text take at most {MOST_ROWS} rows at once, not {rows}: filter or aggregate "
            "them first"
        )


def exclusive_scan(counts: Any) -> tuple[Any, int]:
    """Where each run starts when runs of these lengths lie one after another (int64), and the length of all."""
    xp = namespace(counts)
    ends = xp.cumsum(counts, dtype=np.int64)
    total = number(ends[-1]) if ends.size else 0
    return xp.subtract(ends, counts, out=ends), total  # in place: the arrays may have billions of rows


ROWS_A_START = 8
"""Rows of which a scan of counts by row keeps one start: what lies between is added up where it is wanted."""
_SUM_COUNTS = handwritten("counts:*u32 sums:*i64", "store_i64(sums, i64(i), sum_of_rows(counts, i64(i)))")


def zeros_by_row(rows: int, device: Device, context: str = "") -> Any:
    """Counts of rows, all 0, as `starts_by_row` takes them."""
    return device.zeros(-(-rows // ROWS_A_START) * ROWS_A_START, np.uint32, context)


def starts_by_row(counts: Any) -> tuple[Any, int]:
    """Where the rows of every `ROWS_A_START` start when each takes as many places as its count says, and all places."""
    sums = namespace(counts).empty(counts.size // ROWS_A_START, np.int64)
    launch(_SUM_COUNTS, sums.size, counts, counts, sums)
    return exclusive_scan(sums)


_COUNT_BITS = handwritten("bits:*u32 counts:*i64", "store_i64(counts, i64(i), popcount(i64(bits[i])))")
VOTES = {
    np.dtype(name): handwritten(
        f"c0:*{word} none:i64 bits:*u32",
        "v0 = i64(c0[i])",
        "v1 = ballot(members(i, hi), ne_i64(v0, none))",
        "if eq_i64(lane(), 0):",
        "    store_u32(bits, word_index(i), v1)",
        ahead=("v0",),
    )
    for name, word in (("bool", "u8"), ("uint8", "u8"), ("uint32", "u32"), ("int64", "i64"))
}
_PLACE = handwritten(
    "s0:*u32 s1:*i64 rows:*u32",
    "v0 = i64(s0[word_index(i)])",
    "v1 = i64(s1[word_index(i)])",
    "if bit_at(v0, i):",
    "    store_u32(rows, sub_i64(v1, bits_from(v0, i)), i64(i))",
    ahead=("v0", "v1"),
)


def bits_up_to(bits: Any) -> tuple[Any, int]:
    """How many bits of a bitmap in words of 32 are set up to the end of each word (int64), and in all."""
    xp = namespace(bits)
    counts = xp.empty(bits.size, np.int64)
    launch(_COUNT_BITS, bits.size, bits, bits, counts)
    ends = xp.cumsum(counts)
    return ends, number(ends[-1]) if ends.size else 0


def compact(flags: Any, none: int = 0) -> Any:
    """The row numbers whose flag is not ``none``, ascending (uint32)."""
    check_rows(flags.size)
    if namespace(flags) is np:
        return np.flatnonzero(flags if none == 0 else flags != none).astype(np.uint32)
    return rows_of_bits(bits_of(flags, none))


_INTEGERS = ("u8", "i8", "i16", "u16", "i32", "u32", "i64")


def _folding(parameters: str, *body: str) -> Kernel:
    """A handwritten kernel that adds up ``n`` over all rows, into the first word of ``total``."""
    kernel = handwritten(f"{parameters} total:*i64", "v0 = i64(c0[i])", *body, ahead=("v0",))
    return replace(kernel, prologue=("n = i64(0)",), epilogue=("reduce_add_i64(total, 0, n)",))


COUNTS = {
    word: _folding(f"c0:*{word} none:i64", "if ne_i64(v0, none):", "    n = add_i64(n, i64(1))") for word in _INTEGERS
}
SUMS = {word: _folding(f"c0:*{word}", "n = add_i64(n, v0)") for word in ("u32", "i64")}


def count_others(values: Any, none: int = 0) -> Any:
    """How many of an array's integers are not ``none``: an array of one int64."""
    xp = namespace(values)
    if xp is np:
        return np.array([np.count_nonzero(values != none)], np.int64)
    total = xp.zeros(1, np.int64)
    if values.size:
        launch(COUNTS[_word(values)], values.size, values, xp.ascontiguousarray(values), none, total)
    return total


def sum_of(values: Any) -> Any:
    """The sum of uint32 or int64: an array of one int64. (CuPy compiles a reduction for seconds when it is first used.)"""
    xp = namespace(values)
    if xp is np:
        return values.sum(dtype=np.int64).reshape(1)
    total = xp.zeros(1, np.int64)
    if values.size:
        launch(SUMS[_word(values)], values.size, values, xp.ascontiguousarray(values), total)
    return total


def _word(values: Any) -> str:
    """The element type of an array of integers or booleans."""
    return f"{values.dtype.kind.replace('b', 'u')}{8 * values.dtype.itemsize}"


def bits_of(flags: Any, none: int = 0) -> Any:
    """The bitmap of the flags that are not ``none``, in words of 32 bits (uint32). Bytes, uint32 or int64, on a GPU."""
    xp = namespace(flags)
    bits = xp.empty(-(-flags.size // 32), np.uint32)
    launch(VOTES[flags.dtype], flags.size, bits, xp.ascontiguousarray(flags), none, bits)
    return bits


_VOTES_OF_EVERY = handwritten(
    "c0:*i64 stride:i64 bits:*u32",
    "v0 = i64(c0[row_index(mul_i64(i64(i), stride))])",
    "v1 = ballot(members(i, hi), ne_i64(v0, 0))",
    "if eq_i64(lane(), 0):",
    "    store_u32(bits, word_index(i), v1)",
)


def bits_of_every(flags: Any, stride: int) -> Any:
    """The bitmap of every ``stride``-th flag that is not 0, from the first on, in words of 32 bits (uint32)."""
    size = -(-flags.size // stride)
    if namespace(flags) is np:
        bits = np.zeros(-(-size // 32) * 4, np.uint8)
        packed = np.packbits(flags[::stride] != 0, bitorder="little")
        bits[: packed.size] = packed
        return bits.view(np.uint32)
    if stride == 1:
        return bits_of(flags)
    bits = namespace(flags).empty(-(-size // 32), np.uint32)
    launch(_VOTES_OF_EVERY, size, flags, flags, stride, bits)
    return bits


_FLAGS = handwritten(
    "s0:*u32 flags:*u8", "v0 = i64(s0[word_index(i)])", "store_bool(flags, i, bit_at(v0, i))", ahead=("v0",)
)


def flags_of_bits(bits: Any, size: int) -> Any:
    """The first ``size`` bits of a bitmap in words of 32 as a byte each."""
    xp = namespace(bits)
    if xp is np:
        return np.unpackbits(bits.view(np.uint8), count=size, bitorder="little")
    flags = xp.empty(size, np.uint8)
    launch(_FLAGS, size, bits, bits, flags)
    return flags


def rows_of_bits(bits: Any) -> Any:
    """The numbers of the bits that are set in a bitmap in words of 32, ascending (uint32)."""
    ends, total = bits_up_to(bits)
    rows = namespace(bits).empty(total, np.uint32)
    if total:
        launch(_PLACE, 32 * bits.size, bits, bits, ends, rows)
    return rows


_ELEMENTS = {1: "u8", 2: "u16", 4: "u32", 8: "i64"}  # by bytes
GATHERS = {
    (element, row, words): handwritten(
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


def gather(array: Any, rows: Any, words: int = 1) -> Any:
    """``array[rows]``, of ``words`` consecutive elements a row (one, or two of 8 bytes); on a GPU for rows that are there."""
    xp = namespace(array)
    if xp is np:
        return array[rows] if words == 1 else array.reshape(-1, words)[rows].reshape(-1)
    element = _ELEMENTS[array.dtype.itemsize]
    row = "u32" if rows.dtype == np.uint32 else "i64"
    rows = xp.ascontiguousarray(rows if row == "u32" else rows.astype(np.int64, copy=False))
    made = xp.empty(words * rows.size, array.dtype)
    launch(GATHERS[element, row, words], rows.size, made, rows, xp.ascontiguousarray(array), made)
    return made


_COUNT = handwritten("slots:*u32 counts:*u32", f"if ne_i64(i64(slots[i]), {NOT_IN}):",
                 "    fold_add_u32(counts, add_i64(i64(slots[i]), 1), 1)")  # fmt: skip
_SCATTER = handwritten(
    "slots:*u32 places:*u32 rows:*u32",
    f"if ne_i64(i64(slots[i]), {NOT_IN}):",
    "    place = row_index(places[row_index(slots[i])])",
    "    store_u32(rows, place, i64(i))",
    "    fold_add_u32(places, i64(slots[i]), 1)",
)


_PAIRS = handwritten("slots:*u32 pairs:*i64",
                     "store_i64(pairs, i64(i), or_i64(shl_i64(i64(slots[i]), 32), i64(i)))")  # fmt: skip
_RUNS = handwritten(  # of equal slots: where one starts is taken from its count, where it ends is added
    "slots:*u32 stride:i64 first:i64 rows:i64 counts:*u32",
    "here = add_i64(mul_i64(i64(i), stride), first)",
    "slot = i64(slots[row_index(here)])",
    f"if ne_i64(slot, {NOT_IN}):",
    "    if eq_i64(i64(i), 0) or ne_i64(slot, i64(slots[row_index(sub_i64(here, stride))])):",
    "        fold_add_u32(counts, add_i64(slot, 1), sub_i64(0, i64(i)))",
    "    if eq_i64(add_i64(i64(i), 1), rows) or ne_i64(slot, i64(slots[row_index(add_i64(here, stride))])):",
    "        fold_add_u32(counts, add_i64(slot, 1), add_i64(i64(i), 1))",
)


_STARTS = handwritten(  # each row says where the slots begin that come behind the last row's, up to its own
    "slots:*u32 starts:*u32",
    "slot = i64(0)",
    "if gt_i64(i64(i), 0):",
    "    slot = add_i64(i64(slots[row_index(sub_i64(i64(i), 1))]), 1)",
    "while le_i64(slot, i64(slots[i])):",
    "    store_u32(starts, slot, i64(i))",
    "    slot = add_i64(slot, 1)",
)


def group_rows(slots: Any, size: int, is_sorted: bool = False, workers: int = 1) -> tuple[Any, Any | None]:
    """Rows by slot: ``rows[starts[s]:starts[s + 1]]`` are those of slot s, ascending. `NOT_IN` rows are left out.

    ``is_sorted``: the slots of the rows that take part never decrease, so that the rows are in their order as they stand. Where
    all take part, too, ``rows`` is None: each place is its row. ``workers`` threads of a CPU work at it then.
    """
    xp = namespace(slots)
    check_rows(slots.size)
    if is_sorted:
        rows = None
        if _count(slots, NOT_IN, workers):
            rows = compact(slots, NOT_IN)
            slots = gather(slots, rows)
        if xp is np:
            return _starts_of_sorted(slots, size, workers), rows
    counts = xp.zeros(size + 1, np.uint32)
    if is_sorted:
        launch(_RUNS, slots.size, slots, slots, 1, 0, slots.size, counts)
        return xp.cumsum(counts, dtype=np.uint32), rows
    if xp is np:  # a counting sort: one thread, so that rows stay in order
        launch(_COUNT, slots.size, slots, slots, counts)
        starts = np.cumsum(counts, dtype=np.uint32)
        rows = np.empty(int(starts[-1]), np.uint32)
        launch(_SCATTER, slots.size, slots, slots, starts[:-1].copy(), rows)
        return starts, rows
    return rows_by_sorting(slots, counts)


_ROW_PAIRS = handwritten(
    "places:*u32 slots:*u32 pairs:*i64",
    "place = i64(places[i])",
    "row = sub_i64(i64(slots[row_index(place)]), 1)",
    "store_i64(pairs, i64(i), or_i64(shl_i64(row, 32), place))",
)
_HALVES = handwritten(
    "c0:*u64 high:*u32 low:*u32",
    "v0 = i64(c0[i])",
    "store_u32(high, i64(i), shr_u64(v0, 32))",
    "store_u32(low, i64(i), v0)",
    ahead=("v0",),
)


def rows_in_order(slots: Any) -> tuple[Any, Any]:
    """The row numbers in a table whose slots have a number more than their row, or 0: ascending, and the place of each."""
    places = compact(slots)
    xp = namespace(slots)
    if xp is np:
        pairs = slots[places].astype(np.uint64) - np.uint64(1) << np.uint64(32) | places.astype(np.uint64)
        pairs.sort()
        return (pairs >> np.uint64(32)).astype(np.uint32), pairs.astype(np.uint32)
    pairs = xp.empty(places.size, np.uint64)
    launch(_ROW_PAIRS, places.size, pairs, places, slots, pairs)
    pairs.sort()
    rows = xp.empty(places.size, np.uint32)
    launch(_HALVES, places.size, rows, pairs, rows, places)
    return rows, places


def _count(values: Any, wanted: int, workers: int) -> int:
    """How many values are ``wanted``."""
    if namespace(values) is not np:
        return int(values.size) - number(count_others(values, wanted)[0])
    return sum(run_parts(lambda lo, hi: int(np.count_nonzero(values[lo:hi] == wanted)), values.size, _PART, workers))


def _starts_of_sorted(slots: Any, size: int, workers: int) -> Any:
    """Where each slot's rows start, and the last one's end; ``slots`` never decrease and are on the host."""
    starts = np.empty(size + 1, np.uint32)
    starts[int(slots[-1]) + 1 if slots.size else 0 :] = slots.size
    launch(_STARTS, slots.size, slots, slots, starts, workers=workers)
    return starts


_LONGEST = replace(
    handwritten("starts:*u32 longest:*i64", "n = max_i64(n, sub_i64(i64(starts[next_index(i)]), i64(starts[i])))"),
    prologue=("n = i64(0)",),
    epilogue=("reduce_max_i64(longest, 0, n)",),
)


def longest_range(starts: Any) -> int:
    """The most rows of a slot, of those whose rows begin at ``starts`` (uint32); the last one is the end of all."""
    xp, slots = namespace(starts), starts.size - 1
    if slots < 1:
        return 0
    if xp is np:
        return int((starts[1:] - starts[:-1]).max())
    longest = xp.zeros(1, np.int64)
    launch(_LONGEST, slots, starts, starts, longest)
    return number(longest)


def rows_by_sorting(slots: Any, counts: Any) -> tuple[Any, Any]:
    """`group_rows` for GPUs: sorting is contiguous work, where counting goes to memory anew for each row. (slot, row) pairs are
    sorted faster than slots with a permutation beside them. ``counts`` are zeros, one more than there are slots."""
    xp = namespace(slots)
    pairs = xp.empty(slots.size, np.uint64)
    launch(_PAIRS, slots.size, slots, slots, pairs)
    pairs.sort()
    halves = pairs.view(np.uint32)
    launch(_RUNS, slots.size, slots, halves, 2, 1, slots.size, counts)
    starts = xp.cumsum(counts, dtype=np.uint32)
    return starts, xp.ascontiguousarray(halves[: 2 * number(starts[-1]) : 2])


def fold_at(total: Any, slots: Any, values: Any, op: Literal["add", "min", "max"]) -> None:
    """Fold each value into its slot of ``total`` (both int64, or both float64 and added)."""
    if namespace(total) is np:
        {"add": np.add, "min": np.minimum, "max": np.maximum}[op].at(total, slots, values)
        return
    word = "f64" if total.dtype == np.float64 else "i64"  # CuPy has no such minimum of 64-bit integers
    kernel = handwritten(
        f"slots:*i64 values:*{word} total:*{word}", f"fold_{op}_{word}(total, i64(slots[i]), {word}(values[i]))"
    )
    launch(kernel, values.size, total, slots.astype(np.int64, copy=False), values, total)


# ---- columns -----------------------------------------------------------------------------------------------------

_COPY = handwritten("views:*i64 offsets:*i64 characters:i64",
                "s = view(views, i64(i))",
                "copy_bytes(str_address(s), add_i64(characters, i64(offsets[i])), str_bytes(s))")  # fmt: skip


def gather_strings(views: Any, workers: int = 1) -> tuple[Any, Any]:
    """The strings of (address, length) pairs one after another: int64 offsets and their bytes."""
    xp = namespace(views)
    rows = views.size // 2
    offsets = xp.zeros(rows + 1, np.int64)
    xp.cumsum(views[1::2], out=offsets[1:])
    total = number(offsets[-1])
    characters = xp.empty(total + READ_AHEAD, np.uint8)[:total]
    if xp is np and _is_interpreted(_COPY, rows):
        characters[:] = np.frombuffer(
            b"".join(map(ctypes.string_at, views[::2].tolist(), views[1::2].tolist())), np.uint8
        )
    elif characters.size:
        launch(_COPY, rows, views, views, offsets, address(characters), workers=workers)
    return offsets, characters


def address(array: Any) -> int:
    """Where an array's first element lies in its device's memory."""
    return int(array.ctypes.data if isinstance(array, np.ndarray) else array.data.ptr)


def gather_views(column: Column, device: Device, workers: int = 1) -> Column:
    """A column of views as offsets and characters of its own."""
    return _plain_text(column, gather_strings(column.data.on(device), workers), column.validity, column.length, device)


def _plain_text(
    column: Column, strings: tuple[Any, Any], validity: Buffer | None, length: int, device: Device
) -> Column:
    offsets, characters = strings
    return replace(  # always 64-bit offsets, so that the carrier is known before the bytes are counted
        column, carrier=Carrier.STRING64, length=length, data=Buffer(offsets, device),
        characters=Buffer(characters, device), validity=validity, owners=(),
    )  # fmt: skip


def string_views(column: Column, device: Device, rows: Any = None) -> Any:
    """(address, length) pairs of a string column's rows, all of them or those given, as one int64 array."""
    data = column.data.on(device)
    if column.carrier is Carrier.VIEW:
        return data if rows is None else gather(data, rows, 2)
    assert column.characters is not None
    starts, ends = data[:-1], data[1:]
    if rows is not None:
        starts, ends = gather(starts, rows), gather(ends, rows)
    starts, ends = starts.astype(np.int64), ends.astype(np.int64)
    xp = namespace(data)
    return xp.stack((starts + address(column.characters.on(device)), ends - starts), axis=1).reshape(-1)


_STRINGS = {
    Carrier.STRING32: ("*i32", "string32(data, characters, i64(rows[i]))"),
    Carrier.STRING64: ("*i64", "string64(data, characters, i64(rows[i]))"),
    Carrier.VIEW: ("*i64", "view(data, i64(rows[i]))"),
}
LENGTHS = {
    carrier: handwritten(
        f"data:{element} characters:i64 rows:*u32 lengths:*i64",
        "if eq_i64(i64(i), 0):",
        "    store_i64(lengths, 0, 0)",
        f"store_i64(lengths, add_i64(i64(i), 1), str_bytes({string}))",
    )
    for carrier, (element, string) in _STRINGS.items()
}
COPIES = {
    carrier: handwritten(
        f"data:{element} characters:i64 rows:*u32 offsets:*i64 copy:i64",
        f"s = {string}",
        "copy_bytes(str_address(s), add_i64(copy, i64(offsets[i])), str_bytes(s))",
    )
    for carrier, (element, string) in _STRINGS.items()
}


def take_strings(column: Column, rows: Any, device: Device) -> tuple[Any, Any]:
    """The strings of these rows one after another, as `gather_strings` gives them: two kernels and a scan, where array
    functions would be a dozen."""
    xp, n = device.xp, int(rows.size)
    rows = rows.astype(np.uint32, copy=False)
    data = column.data.on(device)
    characters = 0 if column.characters is None else address(column.characters.on(device))
    lengths = xp.empty(n + 1, np.int64) if n else xp.zeros(1, np.int64)
    launch(LENGTHS[column.carrier], n, lengths, data, characters, rows, lengths)
    offsets = xp.cumsum(lengths)
    total = number(offsets[-1])
    copy = xp.empty(total + READ_AHEAD, np.uint8)[:total]
    if total:
        launch(COPIES[column.carrier], n, copy, data, characters, rows, offsets, address(copy))
    return offsets, copy


def take(column: Column, rows: Any, device: Device) -> Column:
    """The column's rows of these numbers, in their order; strings are copied out."""
    validity = None if column.validity is None else Buffer(gather(column.validity.on(device), rows), device)
    statistics = replace(column.statistics, distinct=None, is_sorted=False, is_unique=False,
                         null_count=0 if column.validity is None else None)  # fmt: skip
    column = replace(column, statistics=statistics)
    if column.carrier.is_string:
        taken = (
            gather_strings(string_views(column, device, rows)) if device.is_cpu else take_strings(column, rows, device)
        )
        return _plain_text(column, taken, validity, int(rows.size), device)
    words = 2 if column.carrier is Carrier.I128 else 1
    data = gather(column.data.on(device), rows, words)
    return replace(column, length=int(rows.size), data=Buffer(data, device), validity=validity)
