"""Arrays of several ranks whose slots mean the same, combined slot by slot by one kernel, which reads them where they lie.

What ranks merge is often a few words: sums of few groups, a filter of keys, a count. By themselves each array takes a copy from
the other GPU, one of a rank's own and an addition, 2 to 18 us each in a graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from gquery import tuning
from gquery.device.array import Array
from gquery.device.device import Device
from gquery.expression.facts import INT64_BYTES
from gquery.kernels.builtin.define import address, builtin_kernel, launch
from gquery.kernels.builtin.elements import copy_together
from gquery.kernels.readback import read_scalar
from gquery.runtime.tuples import NamedTuple

_WORDS: Final = {how: n for n, how in enumerate([("add", "i8"), ("min", "i8"), ("max", "i8"), ("add", "f8")])}
_OR_WORDS = len(_WORDS)
_MAX_BYTES = _OR_WORDS + 1  # those of bytes come last
_OR_BYTES = _MAX_BYTES + 1
_OWN = len(("how it is combined", "rows", "the address of what is made"))  # words of a piece before the addresses that it reads
_ALIGNED = tuning.transfers.together_alignment // INT64_BYTES


def _combining(indent: str) -> list[str]:
    """Lines that make ``word`` of it and ``next``, as ``op`` says."""
    lines: list[str] = []
    for how, made in (
        (("add", "i8"), "add_i64(word, next)"),
        (("min", "i8"), "min_i64(word, next)"),
        (("max", "i8"), "max_i64(word, next)"),
        (("add", "f8"), "bits_f64(add_f64(f64_from_bits(word), f64_from_bits(next)))"),
    ):
        lines += [f"{indent}{'elif' if lines else 'if'} eq_i64(op, {_WORDS[how]}):", f"{indent}    word = {made}"]
    return [*lines, f"{indent}else:", f"{indent}    word = or_i64(word, next)"]


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
    *_combining("        "),
    "        first = add_i64(first, 1)",
    "    store_word(add_i64(to, at), word)",
)
FIRSTS = builtin_kernel(  # whether no element before has the same key
    "keys:*i64 first:*u8",
    "key = i64(keys[i])",
    "at = i64(0)",
    "while lt_i64(at, i64(i)) and ne_i64(i64(keys[row_index(at)]), key):",
    "    at = add_i64(at, 1)",
    "store_bool(first, i64(i), eq_i64(at, i64(i)))",
)
FEW_GROUPS = builtin_kernel(  # the first element of each key finds its place among all keys, and goes through those with the same
    "keys:*i64 first:*u8 words:*i64 ops:*i64 rows:i64 stride:i64 accumulators:i64 made:*i64 totals:*i64 count:*i64",
    "if ne_i64(i64(first[i]), 0):",
    "    key = i64(keys[i])",
    "    place = i64(0)",
    "    at = i64(0)",
    "    while lt_i64(at, rows):",
    "        if ne_i64(i64(first[row_index(at)]), 0) and lt_i64(i64(keys[row_index(at)]), key):",
    "            place = add_i64(place, 1)",
    "        at = add_i64(at, 1)",
    "    store_i64(made, place, key)",
    "    accumulate_add_i64(count, 0, 1)",
    "    number = i64(0)",
    "    while lt_i64(number, accumulators):",
    "        begin = mul_i64(number, stride)",
    "        op = i64(ops[row_index(number)])",
    "        word = i64(words[row_index(add_i64(begin, i64(i)))])",
    "        at = add_i64(i64(i), 1)",
    "        while lt_i64(at, rows):",
    "            if eq_i64(i64(keys[row_index(at)]), key):",
    "                next = i64(words[row_index(add_i64(begin, at))])",
    *_combining("                "),
    "            at = add_i64(at, 1)",
    "        store_i64(totals, add_i64(begin, place), word)",
    "        number = add_i64(number, 1)",
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
    return (op == "or" and array.dtype.kind in "iub") or (op, _kind(array)) in _WORDS


def combine_together(combinations: Sequence[Combination], device: Device) -> None:
    """Combine arrays of all ranks in rank order, by one kernel of a device that has access to where they lie; see `can_combine`.
    This is queued: the arrays stay until it ends."""
    job: list[int] = []
    rows = ranks = 0
    for op, of_ranks, made in combinations:
        ranks, size = len(of_ranks), int(made.nbytes)
        addresses = [address(made), *map(address, of_ranks)]
        kind = _WORDS.get((op, _kind(made)))
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


def merge_few(
    keys: Sequence[Array], words: Sequence[Sequence[Array]], ops: Sequence[str], device: Device
) -> tuple[Array, list[Array]]:
    """The different keys (int64) of some arrays, ascending, and for each array of words, in the order of ``ops``, those of a key
    combined in the order of the arrays: ``words[n]`` has an array for each of ``keys``, of int64 or float64. Each key is compared
    with all others, so there should be few. Arrays of other devices are read where they lie."""
    rows = sum(int(k.size) for k in keys)
    stride = -(-rows // _ALIGNED) * _ALIGNED  # kernels read several elements of what is made at once
    given, own = device.empty(rows, np.int64), device.empty(max(len(ops), 1) * stride, np.int64)
    pieces, at = [], 0
    for n, array in enumerate(keys):
        end = at + int(array.size)
        pieces += [(array, given[at:end]), *[(w[n], own[k * stride + at : k * stride + end]) for k, w in enumerate(words)]]
        at = end
    copy_together(pieces, device)
    first, made, totals = device.empty(rows, np.uint8), device.empty(rows, np.int64), device.empty(own.size, np.int64)
    count, kinds = device.zeros(1, np.int64), [_WORDS[op, _kind(w[0])] for op, w in zip(ops, words, strict=True)]
    numbers = device.from_host(np.array([*kinds, 0], np.int64))
    launch(FIRSTS, rows, given, given, first)
    launch(FEW_GROUPS, rows, given, given, first, own, numbers, rows, stride, len(ops), made, totals, count)
    groups = read_scalar(count)
    found = [totals[k * stride : k * stride + groups].view(w[0].dtype) for k, w in enumerate(words)]
    return made[:groups], found


def _kind(array: Array) -> str:
    return f"{array.dtype.kind}{array.dtype.itemsize}"
