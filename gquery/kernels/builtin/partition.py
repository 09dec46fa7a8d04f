"""Filling arrays that are larger than a GPU's cache: entries are radix-partitioned over the parts of the array first.

Entering rows in any order goes to memory for each of them, a sector back and forth: 100 million in 6 ms on an H200.
Moved next to those that go near the same place, which is a pass over contiguous memory, they find that part of the
array in the cache. Functions take NumPy or CuPy arrays; an array on the CPU is filled so in tests.
"""

from __future__ import annotations

import numpy as np

from gquery import tuning
from gquery.device.array import Array
from gquery.expression.types import PhysicalType
from gquery.kernels.bindings import Argument
from gquery.kernels.builtin.define import BuiltinKernel, builtin_kernel, launch, namespace
from gquery.kernels.primitives.partition import ENTRIES_A_THREAD, PARTS
from gquery.kernels.targets import get_target
from gquery.kernels.targets.base import arguments_of
from gquery.runtime.records import dataclass

WORDS = builtin_kernel(
    "entries:i64 words:*i64 out:*i64 counters:*u32 room:i64 shift:i64",
    "radix_partition(i64(i), entries, words, out, counters, room, shift)",
    uses_block=True,
)
# in the order of parts, and no more blocks than run at once: each would go through all parts anew
_HERE = (
    "part = div_u64(i64(i), room)",
    "if lt_i64(sub_i64(i64(i), mul_i64(part, room)), i64(counters[row_index(part)])):",
)
ENTER_WORDS = {
    physical_type: builtin_kernel(
        f"words:*i64 counters:*u32 room:i64 table:*{physical_type.value}", *_HERE,
        "    word = i64(words[i])",
        "    if ne_i64(word, 0):",
        f"        store_{physical_type.value}(table, shr_u64(word, 32), and_i64(word, {2**32 - 1}))", uses_block=True)
    for physical_type in (PhysicalType.U8, PhysicalType.U16, PhysicalType.U32)
}  # fmt: skip


@dataclass(frozen=True)
class RadixPartitions:
    """Entries in the rooms of their parts: of each part the first ``counters[part]`` positions of ``room``."""

    entries: Array
    counters: Array
    room: int
    parts: int

    @property
    def slots(self) -> int:
        """Slots of the rooms of all parts, used or not."""
        return self.room * self.parts


def word_shift(slots: int) -> int:
    """From which bit of a slot number on its part is told, so that there are at most `PARTS`."""
    return max(0, (slots - 1).bit_length() - (PARTS - 1).bit_length())


def radix_partition(words: Array, rows: int, slots: int) -> RadixPartitions:
    """Words whose upper 32 bits are a slot of an array of so many, by the part of the array. A part has room for each of its
    slots once."""
    xp, shift = namespace(words), word_shift(slots)
    room, parts = 1 << shift, ((slots - 1) >> shift) + 1
    out, counters = xp.empty(room * parts, np.int64), xp.zeros(PARTS, np.uint32)
    if xp is np:
        _move(words, words != 0, words >> (32 + shift), out, counters, room)
    else:
        _run(WORDS, rows, rows, words, out, counters, room, 32 + shift)
    return RadixPartitions(out, counters, room, parts)


def _move(entries: Array, is_entry: Array, part: Array, out: Array, counters: Array, room: int) -> None:
    for p in range(PARTS):
        mine = entries[is_entry & (part == p)]
        counters[p] = len(mine)
        out[p * room : p * room + min(room, len(mine))] = mine[:room]


def _run(builtin: BuiltinKernel, entries: int, *values: Argument) -> None:
    target, kernel = get_target("cuda"), builtin.kernel
    arguments = arguments_of(target, kernel, values)
    block = tuning.launches.most_threads  # a launch of a multiple of them has whole blocks only
    rows = -(-entries // (ENTRIES_A_THREAD * block)) * block
    target.run(target.compile(kernel), 0, rows, arguments, PARTS // 2)


def enter_words(partitions: RadixPartitions, table: Array, physical_type: PhysicalType) -> None:
    """Store the lower halves of words in the slots that their upper halves say."""
    launch(
        ENTER_WORDS[physical_type],
        partitions.slots,
        table,
        partitions.entries,
        partitions.counters,
        partitions.room,
        table,
    )
