"""Rows of columns, moved next to those of the same part, in their order, by the blocks of a GPU.

A block takes a tile of rows. It ranks each row among those of its part in the tile: a warp takes a group of rows, 32 at a time,
whose lanes learn by votes who has the same part. So rows keep their order, and a part that all rows have costs no more than
others. A column's values then go through shared memory, where they are put in the order of parts, and leave it in runs of
neighbouring places: each of its rows is read once and written once, whatever the number of columns ranks are computed once.

Columns come as addresses, so that one kernel serves all widths. What a launch is told stands in ``job`` (int64, see
`kernels.builtin.row_partition`). All threads of a block come here for the same tiles: there are barriers between the steps.

The words are those of the simulator, so that this file's logic is tested without a GPU (`tests/kernels/test_cudasim.py`).
"""

from __future__ import annotations

from gquery.kernels.primitives.python.integers import (
    add_i64,
    and_i64,
    div_u64,
    eq_i64,
    ge_i64,
    gt_i64,
    i64,
    lt_i64,
    min_i64,
    mul_i64,
    or_i64,
    shl_i64,
    shr_i64,
    shr_u64,
    sub_i64,
)
from gquery.kernels.primitives.python.memory import (
    load_i64,
    load_word,
    store_byte,
    store_half,
    store_quarter,
    store_u32,
    store_word,
)
from gquery.kernels.primitives.python.values import Pointer
from gquery.kernels.primitives.simulated import (
    ballot,
    block_barrier,
    block_thread,
    block_threads,
    lane,
    lane_count,
    lanes_alike,
    lanes_before,
    shared_atomic_add_u32,
    shared_load_i64,
    shared_load_u16,
    shared_load_u32,
    shared_store_i64,
    shared_store_u16,
    shared_store_u32,
    warp_barrier,
)

TILE = 4096  # rows that a block takes at once: of 64 parts, 512 bytes of a column of int64 go to neighbouring places
MOST_PARTS = 1024  # a multiprocessor has shared memory for two blocks of them
GROUP_BITS = 8
GROUPS = TILE >> GROUP_BITS  # each of so many rows that one warp ranks
LANES = 2**32 - 1

# the numbers of a job, behind them those of each column, and behind these the places that columns go to: one for all parts of a
# column, or one for each (which may lie in another GPU's memory). ``PLACE_MASK`` is 0 or -1, a part's place is at ``TARGET``, a
# position in the job, and the part that the mask leaves
LABELS, WIDE, ROWS, TILES, PARTS, PART_BITS, COPIES, COLUMNS, PLACE_MASK, FIRST_COLUMN = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
SOURCE, TARGET, SHIFT, BYTES, COLUMN_WORDS = 0, 1, 2, 3, 4

# in shared memory: a value of each row (64 bits), the place of each row and the part of each place (16 bits); behind these, for
# each group and part how many rows came before (16 bits), for each part how far its places lie from those in the tile (64 bits),
# and two arrays of sums (32 bits)
PLACES, PARTS_BY_PLACE, COUNTERS = 4 * TILE, 5 * TILE, 6 * TILE
LABEL_WORDS = TILE // 8  # 64-bit words, of a byte a row
TILE_WORDS = 3 * TILE // 2
COUNTER_WORDS = GROUPS // 4
PART_WORDS = COUNTER_WORDS + 2


def count_rows(i: int, launched: int, job: Pointer, counts: Pointer) -> None:
    """Count the rows of each part in each tile: ``counts`` (uint32) has those of all tiles for the first part, and so on."""
    tile = div_u64(i, block_threads())
    while lt_i64(tile, load_i64(job, TILES)):
        _count_tile(tile, job, counts)
        tile = add_i64(tile, div_u64(launched, block_threads()))


def _count_tile(tile: int, job: Pointer, counts: Pointer) -> None:
    parts, copies = load_i64(job, PARTS), load_i64(job, COPIES)
    k = block_thread()
    while lt_i64(k, mul_i64(parts, copies)):
        shared_store_u32(k, 0)
        k = add_i64(k, block_threads())
    block_barrier()
    _count_words(tile, job, copies)
    block_barrier()
    part = block_thread()
    while lt_i64(part, parts):
        total = k = i64(0)
        while lt_i64(k, copies):
            total = add_i64(total, shared_load_u32(add_i64(mul_i64(part, copies), k)))
            k = add_i64(k, 1)
        store_u32(counts, add_i64(mul_i64(part, load_i64(job, TILES)), tile), total)
        part = add_i64(part, block_threads())
    block_barrier()


def _count_words(tile: int, job: Pointer, copies: int) -> None:
    """Each thread takes the parts of a word of rows; neighbouring lanes have counters of their own, so that few meet."""
    wide = load_i64(job, WIDE)
    bits, mask, word_rows = shl_i64(8, wide), _label_mask(wide), shr_i64(8, wide)
    base, rows = mul_i64(tile, TILE), _rows_of(tile, job)
    words = add_i64(load_i64(job, LABELS), shl_i64(base, wide))
    copy = and_i64(block_thread(), sub_i64(copies, 1))
    n = block_thread()
    while lt_i64(mul_i64(n, word_rows), rows):
        word = load_word(add_i64(words, shl_i64(n, 3)))
        left = min_i64(word_rows, sub_i64(rows, mul_i64(n, word_rows)))
        while gt_i64(left, 0):
            shared_atomic_add_u32(add_i64(mul_i64(and_i64(word, mask), copies), copy), 1)
            word = shr_u64(word, bits)
            left = sub_i64(left, 1)
        n = add_i64(n, block_threads())


def _rows_of(tile: int, job: Pointer) -> int:
    """How many rows a tile has."""
    return min_i64(TILE, sub_i64(load_i64(job, ROWS), mul_i64(tile, TILE)))


def _label_mask(wide: int) -> int:
    return sub_i64(shl_i64(1, shl_i64(8, wide)), 1)


def move_rows(i: int, launched: int, job: Pointer, starts: Pointer) -> None:
    """Move the rows of all columns to their parts: ``starts`` (int64) says where those of a tile and part begin, in the order of
    the counts."""
    tile = div_u64(i, block_threads())
    while lt_i64(tile, load_i64(job, TILES)):
        _move_tile(tile, job, starts)
        tile = add_i64(tile, div_u64(launched, block_threads()))


def _move_tile(tile: int, job: Pointer, starts: Pointer) -> None:
    rows = _rows_of(tile, job)
    _load_labels(tile, job)
    block_barrier()
    _rank(rows, job)
    block_barrier()
    _place(rows, job, _sum_counters(tile, job, starts))
    block_barrier()
    base, column = mul_i64(tile, TILE), i64(FIRST_COLUMN)
    end = add_i64(column, mul_i64(load_i64(job, COLUMNS), COLUMN_WORDS))
    while lt_i64(column, end):
        shift = load_i64(job, add_i64(column, SHIFT))
        _read(add_i64(load_i64(job, add_i64(column, SOURCE)), shl_i64(base, shift)), shift, rows)
        block_barrier()
        _write(load_i64(job, add_i64(column, TARGET)), shift, load_i64(job, add_i64(column, BYTES)), rows, job)
        block_barrier()
        column = add_i64(column, COLUMN_WORDS)


def _load_labels(tile: int, job: Pointer) -> None:
    """The parts of a tile's rows, in 16 bits each, where its values come later; counters of 0. There is room for whole tiles."""
    wide = load_i64(job, WIDE)
    words = add_i64(load_i64(job, LABELS), shl_i64(mul_i64(tile, TILE), wide))
    n = block_thread()
    while lt_i64(n, shl_i64(LABEL_WORDS, wide)):
        word = load_word(add_i64(words, shl_i64(n, 3)))
        if eq_i64(wide, 0):
            shared_store_i64(shl_i64(n, 1), _widened(and_i64(word, LANES)))
            shared_store_i64(add_i64(shl_i64(n, 1), 1), _widened(shr_u64(word, 32)))
        else:
            shared_store_i64(n, word)
        n = add_i64(n, block_threads())
    n = block_thread()
    while lt_i64(n, mul_i64(load_i64(job, PARTS), COUNTER_WORDS)):
        shared_store_i64(add_i64(TILE_WORDS, n), 0)
        n = add_i64(n, block_threads())


def _widened(x: int) -> int:
    """Four numbers of 8 bits as four of 16."""
    x = and_i64(or_i64(x, shl_i64(x, 16)), 0x0000FFFF0000FFFF)
    return and_i64(or_i64(x, shl_i64(x, 8)), 0x00FF00FF00FF00FF)


def _rank(rows: int, job: Pointer) -> None:
    """The place of each row is how many of its group and part come before it; counters say how many there are."""
    group, parts = shr_i64(block_thread(), 5), load_i64(job, PARTS)
    bits = load_i64(job, PART_BITS)
    while lt_i64(group, GROUPS):
        counters = add_i64(COUNTERS, mul_i64(group, parts))
        row = add_i64(shl_i64(group, GROUP_BITS), lane())
        end = shl_i64(add_i64(group, 1), GROUP_BITS)
        while lt_i64(row, end):
            _rank_row(row, rows, counters, bits)
            row = add_i64(row, 32)
        group = add_i64(group, shr_i64(block_threads(), 5))


def _rank_row(row: int, rows: int, counters: int, bits: int) -> None:
    """What a lane does for its row. All lanes of a warp come here, those behind the last row, too."""
    is_row, label, bit = lt_i64(row, rows), i64(0), i64(0)
    if is_row:
        label = shared_load_u16(row)
    peers = ballot(LANES, is_row)
    while lt_i64(bit, bits):
        peers = lanes_alike(peers, label, bit)
        bit = add_i64(bit, 1)
    counter = add_i64(counters, label)
    before = shared_load_u16(counter)
    warp_barrier()
    if is_row:
        rank = lanes_before(peers)
        shared_store_u16(add_i64(PLACES, row), add_i64(before, rank))
        if eq_i64(rank, 0):
            shared_store_u16(counter, add_i64(before, lane_count(peers)))
    warp_barrier()


def _sum_counters(tile: int, job: Pointer, starts: Pointer) -> int:
    """Counters become those of the groups before; behind the last barrier there are, for each part, its first place in the tile
    (32 bits, from the index on that is returned) and how far its places lie from those."""
    parts = load_i64(job, PARTS)
    deltas = add_i64(TILE_WORDS, mul_i64(parts, COUNTER_WORDS))
    sums = shl_i64(add_i64(deltas, parts), 1)
    _sum_groups(parts, sums)
    block_barrier()
    sums = _running_sums(parts, sums)
    other = _other_sums(parts, deltas, sums)
    part = block_thread()
    while lt_i64(part, parts):
        first = i64(0)
        if gt_i64(part, 0):
            first = shared_load_u32(add_i64(sums, sub_i64(part, 1)))
        shared_store_u32(add_i64(other, part), first)
        start = load_i64(starts, add_i64(mul_i64(part, load_i64(job, TILES)), tile))
        shared_store_i64(add_i64(deltas, part), sub_i64(start, first))
        part = add_i64(part, block_threads())
    block_barrier()
    return other


def _sum_groups(parts: int, sums: int) -> None:
    part = block_thread()
    while lt_i64(part, parts):
        total, group, counter = i64(0), i64(0), add_i64(COUNTERS, part)
        while lt_i64(group, GROUPS):
            count = shared_load_u16(counter)
            shared_store_u16(counter, total)
            total = add_i64(total, count)
            counter = add_i64(counter, parts)
            group = add_i64(group, 1)
        shared_store_u32(add_i64(sums, part), total)
        part = add_i64(part, block_threads())


def _running_sums(parts: int, sums: int) -> int:
    """The sums up to each part, in one of two arrays: where it begins."""
    here, there, step = sums, add_i64(sums, parts), i64(1)
    while lt_i64(step, parts):
        part = block_thread()
        while lt_i64(part, parts):
            total = shared_load_u32(add_i64(here, part))
            if ge_i64(part, step):
                total = add_i64(total, shared_load_u32(add_i64(here, sub_i64(part, step))))
            shared_store_u32(add_i64(there, part), total)
            part = add_i64(part, block_threads())
        block_barrier()
        before = here
        here = there
        there = before
        step = shl_i64(step, 1)
    return here


def _other_sums(parts: int, deltas: int, sums: int) -> int:
    """The array of sums that is not in use."""
    first = shl_i64(add_i64(deltas, parts), 1)
    if eq_i64(sums, first):
        return add_i64(first, parts)
    return first


def _place(rows: int, job: Pointer, firsts: int) -> None:
    """The place of each row in the tile's order of parts, and the part of each place."""
    parts, row = load_i64(job, PARTS), block_thread()
    while lt_i64(row, rows):
        label, at = shared_load_u16(row), add_i64(PLACES, row)
        group = add_i64(COUNTERS, mul_i64(shr_i64(row, GROUP_BITS), parts))
        place = add_i64(shared_load_u32(add_i64(firsts, label)), shared_load_u16(add_i64(group, label)))
        place = add_i64(place, shared_load_u16(at))
        shared_store_u16(at, place)
        shared_store_u16(add_i64(PARTS_BY_PLACE, place), label)
        row = add_i64(row, block_threads())


def _read(source: int, shift: int, rows: int) -> None:
    """The tile's values of a column, each to its place: four loads of a thread are under way at once."""
    step, row = block_threads(), block_thread()
    while lt_i64(add_i64(row, mul_i64(step, 3)), rows):
        second = add_i64(row, step)
        third = add_i64(second, step)
        fourth = add_i64(third, step)
        a = _load(add_i64(source, shl_i64(row, shift)))
        b = _load(add_i64(source, shl_i64(second, shift)))
        c = _load(add_i64(source, shl_i64(third, shift)))
        d = _load(add_i64(source, shl_i64(fourth, shift)))
        shared_store_i64(shared_load_u16(add_i64(PLACES, row)), a)
        shared_store_i64(shared_load_u16(add_i64(PLACES, second)), b)
        shared_store_i64(shared_load_u16(add_i64(PLACES, third)), c)
        shared_store_i64(shared_load_u16(add_i64(PLACES, fourth)), d)
        row = add_i64(fourth, step)
    while lt_i64(row, rows):
        shared_store_i64(shared_load_u16(add_i64(PLACES, row)), _load(add_i64(source, shl_i64(row, shift))))
        row = add_i64(row, step)


def _load(address: int) -> int:
    """The element at an address in the lowest bytes of a word; the others are any. A branch for each width would take longer."""
    return shr_u64(load_word(and_i64(address, -8)), shl_i64(and_i64(address, 7), 3))


def _write(targets: int, shift: int, size: int, rows: int, job: Pointer) -> None:
    """A tile's values, in the order of parts, to where the parts go on."""
    deltas = add_i64(TILE_WORDS, mul_i64(load_i64(job, PARTS), COUNTER_WORDS))
    mask, place = load_i64(job, PLACE_MASK), block_thread()
    while lt_i64(place, rows):
        label = shared_load_u16(add_i64(PARTS_BY_PLACE, place))
        row = add_i64(shared_load_i64(add_i64(deltas, label)), place)
        target = load_i64(job, add_i64(targets, and_i64(label, mask)))
        _store(add_i64(target, shl_i64(row, shift)), size, shared_load_i64(place))
        place = add_i64(place, block_threads())


def _store(address: int, size: int, v: int) -> None:
    if eq_i64(size, 8):
        store_word(address, v)
    elif eq_i64(size, 4):
        store_half(address, v)
    elif eq_i64(size, 2):
        store_quarter(address, v)
    else:
        store_byte(address, v)
