"""Flags and values element by element on a GPU: which of two values a row has, whether it has both, whether it is less.

Functions take arrays of a GPU, and those of the host for tests. Flags are uint8, 0 or 1.
"""

from __future__ import annotations

import numpy as np

from gquery.device.array import Array
from gquery.kernels.builtin.define import builtin_kernel, fill, launch, namespace

_PLAIN = {"u8": "uint8", "u16": "uint16", "u32": "uint32", "i64": "int64"}
_ELEMENTS = {np.dtype(dtype).itemsize: element for element, dtype in _PLAIN.items()}

BOTH = builtin_kernel("flags:*u8 others:*u8 made:*u8", "store_u8(made, i64(i), and_i64(i64(flags[i]), i64(others[i])))")
OTHERS = {
    (element, words): builtin_kernel(
        f"there:*u8 others:*{element} values:*{element}",
        "if eq_i64(i64(there[i]), 0):",
        *(
            f"    store_{element}(values, {at}, i64(others[row_index({at})]))"
            for at in (f"add_i64(mul_i64(i64(i), {words}), {k})" for k in range(words))
        ),
    )
    for element, words in (("u8", 1), ("u16", 1), ("u32", 1), ("i64", 1), ("i64", 2))
}
LESS = {
    word: builtin_kernel(
        f"values:*{word} bound:{word} valid:*u8 is_nullable:i64 made:*u8",
        f"is_less = lt_{word}({word}(values[i]), bound)",
        "if ne_i64(is_nullable, 0):",
        "    is_less = is_less and ne_i64(i64(valid[i]), 0)",
        "store_bool(made, i64(i), is_less)",
    )
    for word in ("i64", "f64")
}
NUMBER = builtin_kernel(
    "there:*u8 number:i64 values:*i64", "if eq_i64(i64(there[i]), 0):", "    store_i64(values, i64(i), number)"
)
MULTIPLIED = builtin_kernel("values:*i64 by:i64 made:*i64", "store_i64(made, i64(i), mul_i64(i64(values[i]), by))")
COMPLEMENTS = builtin_kernel(
    "values:*i64 mask:i64 made:*i64", "store_i64(made, i64(i), sub_i64(mask, and_i64(i64(values[i]), mask)))"
)
CHANGED = {
    element: builtin_kernel(
        f"values:*{element} flags:*u8",
        "is_first = eq_i64(i64(i), 0)",
        "if not is_first:",
        "    is_first = ne_i64(i64(values[i]), i64(values[row_index(sub_i64(i64(i), 1))]))",
        "store_bool(flags, i64(i), is_first)",
    )
    for element in _PLAIN
}
BOUND_LABELS = {
    element: builtin_kernel(
        f"values:*i64 bounds:*i64 count:i64 labels:*{element}",
        f"store_{element}(labels, i64(i), first_above(bounds, 0, count, i64(values[i])))",
    )
    for element in ("u8", "u16")
}
RANGE_LABELS = {
    element: builtin_kernel(
        f"values:*i64 base:i64 width:i64 labels:*{element}",
        f"store_{element}(labels, i64(i), floor_div_i64(sub_i64(i64(values[i]), base), width))",
    )
    for element in ("u8", "u16")
}
REPEATED = {
    element: builtin_kernel(
        f"words:*{element} count:i64 made:*{element}",
        f"store_{element}(made, i64(i), i64(words[row_index(floor_mod_i64(i64(i), count))]))",
    )
    for element in _PLAIN
}
PARTS = builtin_kernel(  # the words of 128-bit integers, in halves
    "pairs:*i64 present:*u8 is_nullable:i64 bits:i64 made0:*i64 made1:*i64 made2:*i64 made3:*i64",
    "low = i64(pairs[row_index(shl_i64(i64(i), 1))])",
    "high = i64(pairs[row_index(add_i64(shl_i64(i64(i), 1), 1))])",
    "if ne_i64(is_nullable, 0):",
    "    if eq_i64(i64(present[i]), 0):",
    "        low = i64(0)",
    "        high = i64(0)",
    "mask = sub_i64(shl_i64(1, bits), 1)",
    "store_i64(made0, i64(i), and_i64(low, mask))",
    "store_i64(made1, i64(i), and_i64(shr_i64(low, bits), mask))",
    "store_i64(made2, i64(i), and_i64(high, mask))",
    "store_i64(made3, i64(i), shr_i64(high, bits))",
)


def all_set(like: Array, size: int) -> Array:
    """So many flags that are 1, where an array lies."""
    flags: Array = namespace(like).empty(size, np.uint8)
    fill(flags, 1)
    return flags


def both_set(flags: Array, others: Array) -> Array:
    """Flags that are 1 where two are. Of the host: NumPy's."""
    if namespace(flags) is np:
        found: Array = flags & others
        return found
    return both_flags(flags, others)


def both_flags(flags: Array, others: Array) -> Array:
    """The same by a kernel."""
    made: Array = namespace(flags).empty(flags.size, np.uint8)
    launch(BOTH, flags.size, flags, flags, others, made)
    return made


def put_others(values: Array, others: Array, there: Array, words: int = 1) -> None:
    """Write other values over those that are not ``there``, in place; a value has so many ``words``, elements of any type."""
    element = _ELEMENTS[values.dtype.itemsize]
    plain = _PLAIN[element]
    launch(OTHERS[element, words], there.size, there, there, others.view(plain), values.view(plain))


def are_less(values: Array, bound: int, valid: Array | None = None) -> Array:
    """Flags of numbers (int64 or float64) that are ``valid``, and less than a bound. Of the host: NumPy's."""
    if namespace(values) is np:
        less: Array = (values < bound).view(np.uint8)
        return less if valid is None else less & valid
    return less_flags(values, bound, valid)


def less_flags(values: Array, bound: int, valid: Array | None) -> Array:
    """The same by a kernel."""
    made: Array = namespace(values).empty(values.size, np.uint8)
    word = f"{values.dtype.kind}{8 * values.dtype.itemsize}"
    launch(LESS[word], values.size, values, values, bound, valid, int(valid is not None), made)
    return made


def put_number(values: Array, number: int, there: Array) -> None:
    """Write a number over values (int64) that are not ``there``, in place."""
    launch(NUMBER, values.size, values, there, number, values)


def multiplied(values: Array, by: int) -> Array:
    """Numbers (int64), each so many times. Of the host: NumPy's."""
    if namespace(values) is np:
        products: Array = values * by
        return products
    return multiplied_words(values, by)


def multiplied_words(values: Array, by: int) -> Array:
    """The same by a kernel."""
    made: Array = namespace(values).empty(values.size, np.int64)
    launch(MULTIPLIED, values.size, values, values, by, made)
    return made


def complements_of(values: Array, mask: int) -> Array:
    """The bits of a mask that are not set in each number (int64)."""
    made: Array = namespace(values).empty(values.size, np.int64)
    launch(COMPLEMENTS, values.size, values, values, mask, made)
    return made


def changes_of(values: Array) -> Array:
    """Flags of elements of any type whose bits are not those of the one before; of the first, too."""
    flags: Array = namespace(values).empty(values.size, np.uint8)
    element = _ELEMENTS[values.dtype.itemsize]
    launch(CHANGED[element], values.size, values, values.view(_PLAIN[element]), flags)
    return flags


def label_by_bounds(values: Array, bounds: Array, labels: Array) -> None:
    """Say of each value (int64) how many of the ``bounds`` (int64), which ascend, are not above it: uint8 or uint16."""
    launch(BOUND_LABELS[f"u{8 * labels.dtype.itemsize}"], values.size, values, values, bounds, bounds.size, labels)


def label_by_ranges(values: Array, base: int, width: int, labels: Array) -> None:
    """Say of each value (int64), none less than ``base``, in which range of so many from there on it lies: uint8 or uint16."""
    launch(RANGE_LABELS[f"u{8 * labels.dtype.itemsize}"], values.size, values, values, base, width, labels)


def repeated_words(words: Array, times: int) -> Array:
    """Some elements of any type so many times."""
    made: Array = namespace(words).empty(words.size * times, words.dtype)
    element = _ELEMENTS[words.dtype.itemsize]
    plain = _PLAIN[element]
    launch(REPEATED[element], made.size, words, words.view(plain), words.size, made.view(plain))
    return made


def parts_of_pairs(pairs: Array, present: Array | None, bits: int) -> list[Array]:
    """128-bit integers, two words (int64) each, in four words of so many ``bits``, half of a word: low first, the last one has
    the sign. 0 where a value is not ``present``."""
    xp, rows = namespace(pairs), pairs.size // 2
    made: list[Array] = [xp.empty(rows, np.int64) for _ in range(2 * 2)]
    launch(PARTS, rows, pairs, pairs, present, int(present is not None), bits, *made)
    return made
