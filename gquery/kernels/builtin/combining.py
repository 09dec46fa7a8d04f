"""Arrays of several ranks whose slots mean the same, combined slot by slot by one kernel, which reads them where they lie.

What ranks merge is often a few words: sums of few groups, a filter of keys, a count. By themselves each array takes a copy from
the other GPU, one of a rank's own and an addition, 2 to 18 us each in a graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from gquery.device.array import Array
from gquery.device.device import Device
from gquery.expression.facts import INT64_BYTES
from gquery.kernels.builtin.define import address, builtin_kernel, launch
from gquery.runtime.tuples import NamedTuple

_WORDS: Final = {how: n for n, how in enumerate([("add", "i8"), ("min", "i8"), ("max", "i8"), ("add", "f8")])}
_OR_WORDS = len(_WORDS)
_MAX_BYTES = _OR_WORDS + 1  # those of bytes come last
_OR_BYTES = _MAX_BYTES + 1
_OWN = len(("how it is combined", "rows", "the address of what is made"))  # words of a piece before the addresses that it reads

COMBINED = builtin_kernel(  # a piece of a job: how it is combined, its rows, the address of what is made, and those of all ranks
    "job:*i64 ranks:i64",
    "row = i64(i)",
    "piece = i64(0)",
    "while ge_i64(row, i64(job[row_index(add_i64(piece, 1))])):",
    "    row = sub_i64(row, i64(job[row_index(add_i64(piece, 1))]))",
    f"    piece = add_i64(piece, add_i64(ranks, {_OWN}))",
    "op = i64(job[row_index(piece)])",
    "to = i64(job[row_index(add_i64(piece, 2))])",
    f"first = add_i64(piece, {_OWN})",
    "end = add_i64(first, ranks)",
    f"if ge_i64(op, {_MAX_BYTES}):",
    "    byte = load_u8(add_i64(i64(job[row_index(first)]), row))",
    "    first = add_i64(first, 1)",
    "    while lt_i64(first, end):",
    "        other = load_u8(add_i64(i64(job[row_index(first)]), row))",
    f"        if eq_i64(op, {_OR_BYTES}):",
    "            byte = or_i64(byte, other)",
    "        else:",
    "            byte = max_i64(byte, other)",
    "        first = add_i64(first, 1)",
    "    store_byte(add_i64(to, row), byte)",
    "else:",
    "    at = mul_i64(row, 8)",
    "    word = load_word(add_i64(i64(job[row_index(first)]), at))",
    "    first = add_i64(first, 1)",
    "    while lt_i64(first, end):",
    "        next = load_word(add_i64(i64(job[row_index(first)]), at))",
    f"        if eq_i64(op, {_WORDS['add', 'i8']}):",
    "            word = add_i64(word, next)",
    f"        elif eq_i64(op, {_WORDS['min', 'i8']}):",
    "            word = min_i64(word, next)",
    f"        elif eq_i64(op, {_WORDS['max', 'i8']}):",
    "            word = max_i64(word, next)",
    f"        elif eq_i64(op, {_WORDS['add', 'f8']}):",
    "            word = bits_f64(add_f64(f64_from_bits(word), f64_from_bits(next)))",
    "        else:",
    "            word = or_i64(word, next)",
    "        first = add_i64(first, 1)",
    "    store_word(add_i64(to, at), word)",
)


class Combination(NamedTuple):
    """Arrays of one type and size, one a rank, and what becomes of them by ``op``: "add", "min", "max", "or"."""

    op: str
    of_ranks: Sequence[Array]
    made: Array


def can_combine(op: str, array: Array) -> bool:
    """Whether `combine_together` has that operation for arrays like this."""
    if not array.flags.c_contiguous or array.ndim != 1:
        return False
    if op == "max" and array.dtype.itemsize == 1 and array.dtype.kind in "ub":
        return True
    return (op == "or" and array.dtype.kind in "iub") or (op, f"{array.dtype.kind}{array.dtype.itemsize}") in _WORDS


def combine_together(combinations: Sequence[Combination], device: Device) -> None:
    """Combine arrays of all ranks in rank order, by one kernel of a device that has access to where they lie; see `can_combine`.
    This is queued: the arrays stay until it ends."""
    job: list[int] = []
    rows = ranks = 0
    for op, of_ranks, made in combinations:
        ranks, size = len(of_ranks), int(made.nbytes)
        addresses = [address(made), *map(address, of_ranks)]
        kind = _WORDS.get((op, f"{made.dtype.kind}{made.dtype.itemsize}"))
        if kind is None and op == "or":
            words = 0 if any(a % INT64_BYTES for a in addresses) else size // INT64_BYTES
            parts = [(_OR_WORDS, words, 0), (_OR_BYTES, size - words * INT64_BYTES, words * INT64_BYTES)]
        else:
            parts = [(_MAX_BYTES, size, 0) if kind is None else (kind, size // INT64_BYTES, 0)]
        for number, count, begin in parts:
            if count:
                job += [number, count, *[a + begin for a in addresses]]
                rows += count
    if rows:
        given = device.from_host(np.array(job, np.int64))
        launch(COMBINED, rows, given, given, ranks)
