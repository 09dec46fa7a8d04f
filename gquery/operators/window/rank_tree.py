"""Ranks of positions that any range of positions can be asked about: how many are below a number, and which is the n-th least.

It is a wavelet matrix. Ranks are looked at bit by bit, the highest first: those with a 0 come before those with a 1, each in the
order that they had. For each bit and position it is known how many zeros stand before: that tells where a range of positions lies
among the zeros, and where among the ones. A question takes as many steps as ranks have bits, however long the range is.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from gquery.device.array import Array
from gquery.expression.facts import BITMAP_BITS
from gquery.kernels.builtin.define import builtin_kernel, launch
from gquery.kernels.builtin.prefix_sums import running_sums
from gquery.operators.window.frames import Ranges
from gquery.operators.window.positions import PositionKernel, Work, position_kernel
from gquery.runtime.records import dataclass

_MARK = builtin_kernel(  # a row of it is a word of a bitmap
    "ranks:*u32 rows_in_all:i64 bit:i64 to:i64 bitmaps:*u32 counts:*i64",
    "at = shl_i64(i64(i), 5)",
    "behind = min_i64(add_i64(at, 32), rows_in_all)",
    "bits = i64(0)",
    "while lt_i64(at, behind):",
    "    zero = sub_i64(1, and_i64(shr_i64(i64(ranks[row_index(at)]), bit), 1))",
    "    bits = or_i64(bits, shl_i64(zero, and_i64(at, 31)))",
    "    at = add_i64(at, 1)",
    "store_u32(bitmaps, add_i64(to, i64(i)), bits)",
    "store_i64(counts, i64(i), popcount(bits))",
)
_MOVE = builtin_kernel(
    "ranks:*u32 rows_in_all:i64 bit:i64 to:i64 counts:*i64 ends:*i64 last:i64 level:i64 before:*u32 zeros:*i64 moved:*u32",
    "at = shl_i64(i64(i), 5)",
    "behind = min_i64(add_i64(at, 32), rows_in_all)",
    "all_zeros = i64(ends[row_index(last)])",
    "found = sub_i64(i64(ends[i]), i64(counts[i]))",
    "store_u32(before, add_i64(to, i64(i)), found)",
    "if eq_i64(i64(i), 0):",
    "    store_i64(zeros, level, all_zeros)",
    "while lt_i64(at, behind):",
    "    rank = i64(ranks[row_index(at)])",
    "    if eq_i64(and_i64(shr_i64(rank, bit), 1), 0):",
    "        store_u32(moved, found, rank)",
    "        found = add_i64(found, 1)",
    "    else:",
    "        store_u32(moved, add_i64(all_zeros, sub_i64(at, found)), rank)",
    "    at = add_i64(at, 1)",
)


@dataclass(frozen=True, eq=False)
class RankTree:
    """For each bit, the highest first: a bitmap of the zeros in words of 32 bits, how many zeros stand before each word (uint32),
    and how many there are (int64). ``words``: those of a bitmap; there is one more than the positions need."""

    bits: int
    words: int
    bitmaps: Array
    before: Array
    zeros: Array


def rank_tree(ranks: Array, most: int, work: Work) -> RankTree:
    """The tree of ranks (uint32), none of which exceeds ``most``."""
    device, rows, bits = work.device, int(ranks.size), max(most.bit_length(), 1)
    words = rows // BITMAP_BITS + 1
    bitmaps, before = device.empty(bits * words, np.uint32), device.empty(bits * words, np.uint32)
    counts, zeros = device.empty(words, np.int64), device.empty(bits, np.int64)
    for level in range(bits):
        step = (rows, bits - 1 - level, level * words)
        launch(_MARK, words, ranks, ranks, *step, bitmaps, counts, workers=work.workers, unit=BITMAP_BITS)
        ends, moved = running_sums(counts, np.int64), device.empty(rows, np.uint32)
        made = (counts, ends, words - 1, level, before, zeros, moved)
        launch(_MOVE, words, ranks, ranks, *step, *made, workers=work.workers, unit=BITMAP_BITS)
        ranks = moved
    return RankTree(bits, words, bitmaps, before, zeros)


_TREE = "bits:i64 words:i64 bitmaps:*u32 before:*u32 zeros:*i64"


def _zeros_before(position: str, made: str) -> list[str]:
    """Lines that find how many zeros of a level stand before a position."""
    return [
        f"word = add_i64(base, shr_i64({position}, 5))",
        f"mask = sub_i64(shl_i64(1, and_i64({position}, 31)), 1)",
        f"{made} = add_i64(i64(before[row_index(word)]), popcount(and_i64(i64(bitmaps[row_index(word)]), mask)))",
    ]


@cache
def _counting(ranges: int) -> PositionKernel:
    """The kernel that counts, by row, the ranks below the row's limit in its ranges. A limit has no more bits than ranks."""
    lines = ["limit = i64(limits[i])", "count = i64(0)"]
    for n in range(ranges):
        lines += [
            f"low = i64(low{n}[i])",
            f"high = i64(high{n}[i])",
            "level = i64(0)",
            "base = i64(0)",
            "while lt_i64(level, bits) and lt_i64(low, high):",
            *("    " + line for line in (*_zeros_before("low", "first"), *_zeros_before("high", "last"))),
            "    if eq_i64(and_i64(shr_i64(limit, sub_i64(sub_i64(bits, 1), level)), 1), 1):",
            "        count = add_i64(count, sub_i64(last, first))",
            "        low = add_i64(i64(zeros[row_index(level)]), sub_i64(low, first))",
            "        high = add_i64(i64(zeros[row_index(level)]), sub_i64(high, last))",
            "    else:",
            "        low = first",
            "        high = last",
            "    level = add_i64(level, 1)",
            "    base = add_i64(base, words)",
        ]
    ends = " ".join(f"low{n}:*u32 high{n}:*u32" for n in range(ranges))
    return position_kernel(f"{_TREE} limits:*u32 made:*i64 {ends}", *lines, "store_i64(made, row, count)")


def count_below(tree: RankTree, limits: Array, ranges: Sequence[Ranges], work: Work) -> Array:
    """By row how many ranks in its ranges are below a limit (uint32, by position)."""
    made: Array = work.device.empty(work.ordered.count, np.int64)
    parts = (tree.bits, tree.words, tree.bitmaps, tree.before, tree.zeros)
    ends = [end for r in ranges for end in r]
    _counting(len(ranges)).run(work.ordered, work.workers, *parts, limits, made, *ends)
    return made


@cache
def _selecting(ranges: int) -> PositionKernel:
    """The kernel that finds, by row, the n-th least rank in its ranges; -1 where there are fewer."""
    lines = ["left = sub_i64(i64(amounts[row_index(row)]), 1)", "count = i64(0)", "rank = i64(0)"]
    for n in range(ranges):
        lines += [
            f"low{n}_ = i64(low{n}[i])",
            f"high{n}_ = i64(high{n}[i])",
            f"count = add_i64(count, sub_i64(high{n}_, low{n}_))",
        ]
    steps = ["zeros_in = i64(0)"]
    for n in range(ranges):
        steps += [
            *_zeros_before(f"low{n}_", f"first{n}"),
            *_zeros_before(f"high{n}_", f"last{n}"),
            f"zeros_in = add_i64(zeros_in, sub_i64(last{n}, first{n}))",
        ]
    steps += ["all_zeros = i64(zeros[row_index(level)])", "if lt_i64(left, zeros_in):"]
    steps += [line for n in range(ranges) for line in (f"    low{n}_ = first{n}", f"    high{n}_ = last{n}")]
    steps += ["else:", "    left = sub_i64(left, zeros_in)", "    rank = add_i64(rank, 1)"]
    for n in range(ranges):
        steps += [
            f"    low{n}_ = add_i64(all_zeros, sub_i64(low{n}_, first{n}))",
            f"    high{n}_ = add_i64(all_zeros, sub_i64(high{n}_, last{n}))",
        ]
    lines += [
        "if lt_i64(left, 0) or ge_i64(left, count):",
        "    store_i64(made, row, -1)",
        "else:",
        "    level = i64(0)",
        "    base = i64(0)",
        "    while lt_i64(level, bits):",
        "        rank = shl_i64(rank, 1)",
        *("        " + line for line in steps),
        "        level = add_i64(level, 1)",
        "        base = add_i64(base, words)",
        "    store_i64(made, row, rank)",
    ]
    ends = " ".join(f"low{n}:*u32 high{n}:*u32" for n in range(ranges))
    return position_kernel(f"{_TREE} amounts:*i64 made:*i64 {ends}", *lines)


def select_rank(tree: RankTree, amounts: Array, ranges: Sequence[Ranges], work: Work) -> Array:
    """By row the n-th least rank in its ranges (``amounts``: int64, by row, from 1 on); -1: there are fewer."""
    made: Array = work.device.empty(work.ordered.count, np.int64)
    parts = (tree.bits, tree.words, tree.bitmaps, tree.before, tree.zeros)
    ends = [end for r in ranges for end in r]
    _selecting(len(ranges)).run(work.ordered, work.workers, *parts, amounts, made, *ends)
    return made
