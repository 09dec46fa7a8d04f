"""Groups of rows by keys of any type, on the CPU: a hash table that threads share tells the keys of rows apart.

The table is that of texts that are coded (`kernels.builtin.text_coding`): a slot has 32 bits of the hash of a row's keys, and
below them the number of a row with these keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from gquery import tuning
from gquery.columns.table import ColumnData
from gquery.device.array import Array
from gquery.device.device import Device
from gquery.kernels.builtin.define import BuiltinKernel, builtin_kernel, launch
from gquery.kernels.builtin.key_hashes import KeyKind, KeyShape, hash_rows, key_arguments, key_parameters, key_shape
from gquery.kernels.builtin.text_coding import ENDED, HALF, entering, in_blocks
from gquery.runtime.records import dataclass

_EQUAL: dict[KeyKind, str] = {
    "integer": "eq_i64(i64(c{n}[row_index({a})]), i64(c{n}[row_index({b})]))",
    "dictionary": "eq_i64(i64(c{n}[row_index({a})]), i64(c{n}[row_index({b})]))",
    "float": "eq_i64(f64_order(f64(c{n}[row_index({a})])), f64_order(f64(c{n}[row_index({b})])))",
    "i128": "eq_i128(load_i128(c{n}, {a}), load_i128(c{n}, {b}))",
    "string32": "eq_str(string32(c{n}, k{n}, {a}), string32(c{n}, k{n}, {b}))",
    "string64": "eq_str(string64(c{n}, k{n}, {a}), string64(c{n}, k{n}, {b}))",
    "view": "eq_str(view(c{n}, {a}), view(c{n}, {b}))",
}


def tells_apart(device: Device, rows: int, least: int) -> bool:
    """Whether a hash table tells groups of so many rows apart: on a CPU, from ``least`` rows on. It takes twice the memory that a
    sort takes, so not under a limit."""
    return device.is_cpu and not device.is_counted and rows >= least


def group_rows(
    keys: Sequence[ColumnData], rows: int, device: Device, workers: int, label: str = ""
) -> tuple[Array, Array]:
    """For each row the number of its group (uint32), and for each group a row of it (int64). NULL is a value of its own. Which
    number a group has, and which row stands for it, may depend on the order in which threads come."""
    hashes = hash_rows(keys, rows, device, workers)
    size = 1 << max(rows // tuning.sorting.numbered_rows, tuning.sorting.numbered_least).bit_length()
    while True:
        table = _Table(
            device.zeros(size, np.int64, label), device.empty(rows, np.uint32, label), np.zeros(1, np.uint32)
        )
        _enter(keys, hashes, table, device, workers)
        if not table.is_full:
            break
        size *= tuning.sorting.numbered_rows
    used = np.flatnonzero(table.words)
    numbers = device.empty(size, np.uint32, label)
    numbers[used] = np.arange(used.size, dtype=np.uint32)
    return numbers[table.slots], (table.words[used] & HALF) - 1


def firsts_of(numbers: Array, count: int) -> Array:
    """The first row (int64) of each of so many groups, all of which have one."""
    firsts = np.empty(count, np.int64)
    firsts[numbers[::-1]] = np.arange(numbers.size - 1, -1, -1)  # what is stored last stays
    return firsts


@dataclass(frozen=True, eq=False)
class _Table:
    """``words``: the slots; ``slots``: the slot of each row; ``entered``: how many groups there are (one uint32)."""

    words: Array
    slots: Array
    entered: Array

    @property
    def most(self) -> int:
        """Groups that have room."""
        return int(self.words.size) // 2

    @property
    def is_full(self) -> bool:
        """Whether there are more."""
        return int(self.entered[0]) > self.most


def _enter(keys: Sequence[ColumnData], hashes: Array, table: _Table, device: Device, workers: int) -> None:
    block, rows = tuning.encoding.coded_block, int(table.slots.size)
    loop = _loop(tuple([key_shape(k) for k in keys]))
    given = (hashes, table.words, int(table.words.size) - 1, table.slots, table.entered, table.most, block, rows)
    launch(loop, -(-rows // block), table.slots, *key_arguments(keys, device), *given, workers=workers, unit=block)


@lru_cache(maxsize=256)
def _loop(shapes: tuple[KeyShape, ...]) -> BuiltinKernel:
    """A block of rows: the slot of each is asked for, for some rows at once, before it is looked at."""
    compared = "\n".join(_compared(n, shape) for n, shape in enumerate(shapes))
    same = f"""
other = sub_i64(and_i64(found, {HALF}), 1)
same = i64(1)
{compared}
if ne_i64(same, 0):{ENDED}"""
    enter = f"h = and_i64(load_i64(hashes, row), {HALF})\n{entering(same)}"
    prefetches = ["prefetch(table, and_i64(load_i64(hashes, r), mask))"]
    parameters = "hashes:*i64 table:*i64 mask:i64 slots:*u32 entered:*u32 most:i64 block:i64 rows:i64"
    return builtin_kernel(" ".join([*key_parameters(shapes), parameters]), *in_blocks(prefetches, enter))


def _compared(n: int, shape: KeyShape) -> str:
    """Lines that set ``same`` to 0 where a key of two rows differs."""
    equal = _EQUAL[shape.kind].format(n=n, a="row", b="other")
    if not shape.nullable:
        return f"if not {equal}:\n    same = i64(0)"
    return f"""
if ne_i64(i64(m{n}[row_index(row)]), i64(m{n}[row_index(other)])):
    same = i64(0)
if ne_i64(i64(m{n}[row_index(row)]), 0):
    if not {equal}:
        same = i64(0)"""
