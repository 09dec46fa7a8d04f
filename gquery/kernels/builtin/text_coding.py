"""Texts of a column, entered into a hash table that threads share.

A slot has 32 bits of a text's hash, and below them the number of a row, plus 1, whose text it is; 0 is empty. A text is compared
with that row's where the hashes agree. A thread that enters more texts than there may be stops, and so do others at the next one
that they enter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import indent

import numpy as np

from gquery import tuning
from gquery.columns.loops import TextSlots
from gquery.device.array import Array
from gquery.expression.types import PhysicalType
from gquery.kernels.builtin.define import BuiltinKernel, address, builtin_kernel, launch
from gquery.runtime.threads import core_count

HALF = 2**32 - 1
_AT_ONCE = 32  # rows whose memory is asked for before the first is waited for


ENDED = "\n    is_looked_for = i64(0)"


def entering(same: str) -> str:
    """Lines that enter a row whose hash is ``h``, or find the slot of a row that is the same. Those of ``same`` say whether the
    row in the slot ``found`` is: they end the search then (`ENDED`)."""
    return f"""slot = and_i64(h, mask)
is_looked_for = i64(1)
while ne_i64(is_looked_for, 0):
    found = load_i64(table, slot)
    if eq_i64(found, 0):
        mine = or_i64(shl_i64(h, 32), add_i64(row, 1))
        found = cas_i64(table, slot, 0, mine)
        if eq_i64(found, 0):
            found = mine
            if ge_i64(i64(atomic_add_u32(entered, 0, 1)), most):
                end = row
    if eq_i64(shr_u64(found, 32), h):
{indent(same, "        ")}
    if ne_i64(is_looked_for, 0):
        slot = and_i64(add_i64(slot, 1), mask)
store_u32(slots, row, slot)"""


def in_blocks(prefetches: Sequence[str], enter: str) -> Iterator[str]:
    """The lines of a block of rows, which are entered one after another. ``prefetches`` ask for the memory of a row ``r``: each
    of them for some rows at once."""
    stages = "\n".join(
        f"r = row\nwhile lt_i64(r, last):\n{indent(lines, '    ')}\n    r = add_i64(r, 1)" for lines in prefetches
    )
    lines = f"""
row = mul_i64(i64(i), block)
end = min_i64(add_i64(row, block), rows)
if gt_i64(i64(load_u32(entered, 0)), most):
    end = i64(0)
while lt_i64(row, end):
    last = min_i64(add_i64(row, {_AT_ONCE}), end)
{indent(stages, "    ")}
    while lt_i64(row, min_i64(last, end)):
{indent(enter, "        ")}
        row = add_i64(row, 1)"""
    return (line for line in lines.splitlines() if line)


def _loop(element: str, string: str, has_nulls: bool) -> BuiltinKernel:
    """A block of rows. Three looks into memory wait for one another: the slot, the offsets of its row, that row's text. Each is
    asked for in a loop of its own, for some rows at once."""
    text, size = f"{string}(offsets, characters, {{}})", PhysicalType(element).bytes
    home = "and_i64(i64(load_u32(slots, r)), mask)"
    other = f"max_i64(sub_i64(and_i64(load_i64(table, {home}), {HALF}), 1), 0)"
    prefetches = [
        f"store_u32(slots, r, and_i64(hash_str({text.format('r')}), {HALF}))\nprefetch(table, {home})",
        f"prefetch_bytes(offsets, mul_i64({other}, {size}))",
        f"prefetch_text(str_address({text.format(other)}))",
    ]
    same = f"eq_str(s, {text.format(f'sub_i64(and_i64(found, {HALF}), 1)')})"
    enter = f"""
h = i64(load_u32(slots, row))
s = {text.format("row")}
{entering(f"if {same}:{ENDED}")}"""
    if has_nulls:
        enter = f"if ne_i64(i64(valid[row_index(row)]), 0):{indent(enter, '    ')}"
    valid = "valid:*u8 " if has_nulls else ""
    return builtin_kernel(
        f"offsets:*{element} characters:i64 {valid}table:*i64 mask:i64 slots:*u32 entered:*u32 most:i64 block:i64 rows:i64",
        *in_blocks(prefetches, enter),
    )


LOOPS = {
    (type_, has_nulls): _loop(element, string, has_nulls)
    for type_, element, string in (("int32", "i32", "string32"), ("int64", "i64", "string64"))
    for has_nulls in (False, True)
}


def code_texts(offsets: Array, characters: Array, valid: Array | None, size: int, most: int) -> TextSlots | None:
    """See `columns.loops.Loops`."""
    rows, block = len(offsets) - 1, tuning.encoding.coded_block
    table, slots, entered = np.zeros(size, np.int64), np.empty(rows, np.uint32), np.zeros(1, np.uint32)
    flags = () if valid is None else (valid,)
    arguments = (offsets, address(characters), *flags, table, size - 1, slots, entered, most, block, rows)
    loop = LOOPS[offsets.dtype.name, valid is not None]
    launch(loop, -(-rows // block), offsets, *arguments, workers=core_count(), unit=block)
    if int(entered[0]) > most:
        return None
    used = np.flatnonzero(table != 0)  # what was compared is gone through faster
    return TextSlots(slots, used, (table[used] & HALF) - 1, size)
