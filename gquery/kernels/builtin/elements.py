"""Array functions of numbers, element by element. CuPy's own are C++, of which it compiles each for the types that it meets,
headers and all: a tenth of a second of whoever waits. These are built-in kernels; on a CPU they are NumPy's.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from gquery.device.array import Array, ElementDType
from gquery.device.device import Device
from gquery.kernels.builtin.define import (
    PLAIN,
    BuiltinKernel,
    address,
    builtin_kernel,
    element_word,
    launch,
    namespace,
    plain_word,
)

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

ROW_NUMBERS = builtin_kernel("made:*u32", "store_u32(made, i64(i), i64(i))")
OR_SHIFTED = builtin_kernel(
    "words:*u64 c0:*u64 left:i64", "v0 = i64(c0[i])", "store_u64(words, i, or_i64(i64(words[i]), shl_i64(v0, left)))"
)
AT_MOST = builtin_kernel(
    "c0:*u64 bound:*u64 flags:*u8", "v0 = i64(c0[i])", "store_bool(flags, i64(i), not lt_u64(load_i64(bound, 0), v0))"
)
EVERY = {
    word: builtin_kernel(
        f"c0:*{word} first:i64 stride:i64 made:*{word}",
        f"store_{word}(made, i64(i), i64(c0[row_index(add_i64(first, mul_i64(i64(i), stride)))]))",
    )
    for word in ("u8", "u16", "u32", "i64")
}
POSITIVE = builtin_kernel("c0:*i64 flags:*u8", "v0 = i64(c0[i])", "store_bool(flags, i64(i), gt_i64(v0, 0))")
SUBTRACTED = builtin_kernel(
    "values:*i64 c0:*i64", "v0 = i64(c0[i])", "store_i64(values, i64(i), sub_i64(i64(values[i]), v0))"
)
DIFFERENCES = {
    word: builtin_kernel(
        f"c0:*{word} made:*i64",
        "v0 = i64(c0[i])",
        "store_i64(made, i64(i), sub_i64(i64(c0[row_index(add_i64(i64(i), 1))]), v0))",
    )
    for word in ("i32", "i64")
}
ADDED = {
    f"{source} {made}": builtin_kernel(
        f"c0:*{source} by:i64 made:*{made}", "v0 = i64(c0[i])", f"store_{made}(made, i64(i), add_i64(v0, by))"
    )
    for source in ("i32", "i64")
    for made in ("i32", "i64")
}
RENUMBERED = builtin_kernel(
    "c0:*i64 starts:*i64 arrays:i64 bits:i64 made:*i64",
    "v0 = i64(c0[i])",
    "array = shr_i64(v0, bits)",
    "if ge_i64(array, 0) and lt_i64(array, arrays):",
    "    v0 = add_i64(v0, i64(starts[row_index(array)]))",
    "store_i64(made, i64(i), v0)",
)
PUTS = {
    word: builtin_kernel(f"rows:*u32 values:*{word} made:*{word}", f"store_{word}(made, i64(rows[i]), i64(values[i]))")
    for word in ("u8", "u32", "u64")
}

COPIED = (
    builtin_kernel(  # eight bytes a row; for each piece a job has its address, that of its copy, its rows and its bytes
        "job:*i64",
        "row = i64(i)",
        "piece = i64(0)",
        "while ge_i64(row, i64(job[row_index(add_i64(piece, 2))])):",
        "    row = sub_i64(row, i64(job[row_index(add_i64(piece, 2))]))",
        "    piece = add_i64(piece, 4)",
        "first = mul_i64(row, 8)",
        "left = sub_i64(i64(job[row_index(add_i64(piece, 3))]), first)",
        "source = add_i64(i64(job[row_index(piece)]), first)",
        "copy_bytes(source, add_i64(i64(job[row_index(add_i64(piece, 1))]), first), min_i64(left, 8))",
    )
)


@cache
def _cast(source: str, made: str) -> BuiltinKernel:
    taken = "f64" if source.startswith("f") else "i64"
    value = "v0" if taken == "f64" or not made.startswith("f") else "f64_from_u64(v0)" if source == "u64" else "f64(v0)"
    return builtin_kernel(f"c0:*{source} made:*{made}", f"v0 = {taken}(c0[i])", f"store_{made}(made, i64(i), {value})")


CASTS = {
    f"{source} {made}": _cast(source, made)
    for source, made in (("u8", "i64"), ("u8", "u32"), ("i64", "i32"), ("i64", "i64"), ("f32", "f64"))
}
"""Those that are compiled before anybody asks for them."""


def row_numbers(xp: ModuleType, count: int) -> Array:
    """0, 1, 2 and so on (uint32)."""
    if xp is np:
        return np.arange(count, dtype=np.uint32)
    made: Array = xp.empty(count, np.uint32)
    launch(ROW_NUMBERS, count, made, made)
    return made


def contiguous(values: Array) -> Array:
    """The values one after another: where they lie, if they do so there."""
    xp = namespace(values)
    if xp is np or values.ndim != 1 or values.flags.c_contiguous:
        whole: Array = xp.ascontiguousarray(values)
        return whole
    step = values.strides[0] // values.itemsize
    ascending = values if step >= 0 else values[::-1]
    room = xp.lib.stride_tricks.as_strided(ascending, (abs(step) * (values.size - 1) + 1,), (values.itemsize,))
    return _taken(room, 0 if step >= 0 else room.size - 1, step, values.size)


def _taken(values: Array, first: int, stride: int, count: int) -> Array:
    """So many values, from the ``first`` on, ``stride`` apart."""
    made: Array = namespace(values).empty(count, values.dtype)
    word = plain_word(values)
    plain = np.dtype(PLAIN[word])
    launch(EVERY[word], count, made, values.view(plain), first, stride, made.view(plain))
    return made


def _is_cast(source: ElementDType, made: ElementDType) -> bool:
    """Whether there is a kernel that makes numbers of one type those of another."""
    if made.kind == "f":
        return source.kind == "f" or (source.kind in "iub" and made == np.float64)
    return source.kind in "iub" and made.kind in "iu"


def converted(values: Array, dtype: DTypeLike) -> Array:
    """Numbers or booleans as numbers of another type, in memory of their own; higher bits of integers are cut off. Of floats as
    integers CuPy compiles."""
    xp, wanted = namespace(values), np.dtype(dtype)
    if xp is np or not _is_cast(values.dtype, wanted):
        return values.astype(wanted)
    made: Array = xp.empty(values.size, wanted)
    given = contiguous(values)
    launch(_cast(element_word(values), element_word(made)), values.size, made, given, made)
    return made.reshape(values.shape)


def subtract(values: Array, others: Array) -> None:
    """Take int64 off int64, in place."""
    if namespace(values) is np:
        np.subtract(values, others, out=values)
    else:
        launch(SUBTRACTED, values.size, values, values, others)


def differences(values: Array) -> Array:
    """By how much each element is greater than the one before, but for the first (int32 or int64): int64 on a GPU."""
    xp = namespace(values)
    if xp is np:
        made: Array = values[1:] - values[:-1]
        return made
    made = xp.empty(max(values.size - 1, 0), np.int64)
    launch(DIFFERENCES[element_word(values)], made.size, made, values, made)
    return made


def added(values: Array, by: int) -> Array:
    """Integers, each by so much greater."""
    xp = namespace(values)
    if xp is np or values.dtype not in (np.int32, np.int64):
        greater: Array = values + by
        return greater
    made: Array = xp.empty(values.size, values.dtype)
    store_added(values, by, made)
    return made


def renumber(values: Array, starts: Array, bits: int) -> Array:
    """Each number (int64), which has an array's place among ``starts`` (int64) above so many bits, greater by that one's start.
    What stands under NULL may be no such number, and means nothing."""
    xp = namespace(values)
    if xp is np:
        array = values >> bits
        there = (array >= 0) & (array < starts.size)
        found: Array = values + np.where(there, starts[np.where(there, array, 0)], 0)
        return found
    made: Array = xp.empty(values.size, np.int64)
    launch(RENUMBERED, values.size, made, values, starts, int(starts.size), bits, made)
    return made


def store_added(values: Array, by: int, made: Array) -> None:
    """Write integers (int32 or int64), each by so much greater, into an array of these types."""
    if namespace(values) is np:
        np.add(values, made.dtype.type(by), out=made, dtype=made.dtype, casting="same_kind")
    else:
        launch(ADDED[f"{element_word(values)} {element_word(made)}"], values.size, made, contiguous(values), by, made)


def store(values: Array, made: Array) -> None:
    """Write numbers into an array of the same type or of another, or a part of one."""
    if namespace(values) is np:
        made[:] = values
    else:
        assert _is_cast(values.dtype, made.dtype) or values.dtype == made.dtype
        launch(_cast(element_word(values), element_word(made)), values.size, made, contiguous(values), made)


def put(array: Array, rows: Array, values: Array) -> None:
    """``array[rows] = values``; row numbers are uint32, elements have 1, 4 or 8 bytes and are of one type."""
    if namespace(array) is np:
        array[rows] = values
        return
    assert array.dtype == values.dtype and rows.dtype == np.uint32
    launch(PUTS[f"u{8 * array.dtype.itemsize}"], rows.size, array, rows, values, array)


def copy_together(pieces: Sequence[tuple[Array, Array]], device: Device) -> None:
    """Copy arrays, each to another of as many bytes, by one kernel of a device, which reads memory of others that it has access
    to. This is queued: the arrays stay until it ends."""
    sizes = [int(source.nbytes) for source, _ in pieces]
    job = [w for (a, b), n in zip(pieces, sizes, strict=True) for w in (address(a), address(b), -(-n // 8), n)]
    given = device.from_host(np.array(job, np.int64))
    launch(COPIED, sum(-(-n // 8) for n in sizes), given, given)


def or_shifted(words: Array, others: Array, left: int) -> None:
    """Set the bits of other words of 64 bits, so many places further left, in place."""
    if namespace(words) is np:
        words |= others << np.uint64(left)
    else:
        launch(OR_SHIFTED, words.size, words, words, others, left)


def are_at_most(values: Array, bound: Array) -> Array:
    """Flags of the uint64 that are not greater than the only one of ``bound``."""
    xp = namespace(values)
    if xp is np:
        found: Array = values <= bound
        return found
    flags: Array = xp.empty(values.size, np.uint8)
    launch(AT_MOST, values.size, flags, values, bound.reshape(1), flags)
    return flags.view(np.bool_)


def every(values: Array, stride: int) -> Array:
    """Every so many-th of integers, from the first on, in memory of their own or of the values."""
    xp = namespace(values)
    if xp is np or stride == 1:
        return np.ascontiguousarray(values[::stride]) if xp is np else values
    return _taken(values, 0, stride, -(-values.size // stride))


def clear_others(values: Array, flags: Array) -> None:
    """Set integers whose flag (uint8) is 0 to 0, in place."""
    if namespace(values) is np:
        values *= flags
    else:
        hide_nulls(values, flags, 1)


_HIDING = {  # what lies under a NULL is 0, in one word a row or in two
    (np.dtype(dtype).itemsize, words): builtin_kernel(
        f"valid:*u8 values:*{element}",
        "if eq_i64(i64(valid[i]), 0):",
        *(f"    store_{element}(values, add_i64(mul_i64(i64(i), {words}), {k}), 0)" for k in range(words)),
    )
    for element, dtype in PLAIN.items()
    for words in (1, 2)
}


def hide_nulls(values: Array, flags: Array, words: int, workers: int = 1) -> None:
    """Set what lies under a NULL, whose flag (uint8) is 0, to 0, in place; a value has so many ``words`` of the array."""
    count = values.size // words
    launch(_HIDING[values.dtype.itemsize, words], count, values, flags, values, workers=workers)


def are_positive(values: Array) -> Array:
    """Flags (uint8) of integers that are greater than 0, on a GPU of int64 and what int64 holds."""
    xp = namespace(values)
    if xp is np:
        return (values > 0).astype(np.uint8)
    flags: Array = xp.empty(values.size, np.uint8)
    given = values if values.dtype == np.int64 else converted(values, np.int64)
    launch(POSITIVE, values.size, flags, contiguous(given), flags)
    return flags
