"""Searching sorted rows: where a range of them begins and ends, and which of them reach far enough.

Rows lie in ascending order of one number each, so that a binary search finds those up to a value. Whether another number
of theirs, the end of an interval say, is large enough has no order of its own: a *reach tree* holds the greatest of it below
each of its nodes. Its leaves are the rows, behind as many inner nodes: node n has 2 n and 2 n + 1 below it. So the last row
before a place that reaches a value is found in as many steps as the tree is high, however many rows there are that do not.
"""

from __future__ import annotations

from gquery.kernels.primitives.python.integers import (
    add_i64,
    and_i64,
    eq_i64,
    ge_i64,
    gt_i64,
    i64,
    lt_i64,
    min_i64,
    ne_i64,
    shl_i64,
    shr_i64,
    shr_u64,
    sub_i64,
)
from gquery.kernels.primitives.python.memory import load_i64
from gquery.kernels.primitives.python.values import Pointer


def first_at_least(keys: Pointer, low: int, high: int, value: int) -> int:
    """The first place in low..high whose key is ``value`` or more; ``high`` where there is none."""
    count = sub_i64(high, low)
    at = low
    while gt_i64(count, 1):
        half = shr_i64(count, 1)
        if lt_i64(load_i64(keys, sub_i64(add_i64(at, half), 1)), value):
            at = add_i64(at, half)
        count = sub_i64(count, half)
    if eq_i64(count, 1) and lt_i64(load_i64(keys, at), value):
        return add_i64(at, 1)
    return at


def first_above(keys: Pointer, low: int, high: int, value: int) -> int:
    """The first place in low..high whose key is more than ``value``; ``high`` where there is none."""
    count = sub_i64(high, low)
    at = low
    while gt_i64(count, 1):
        half = shr_i64(count, 1)
        if not gt_i64(load_i64(keys, sub_i64(add_i64(at, half), 1)), value):
            at = add_i64(at, half)
        count = sub_i64(count, half)
    if eq_i64(count, 1) and not gt_i64(load_i64(keys, at), value):
        return add_i64(at, 1)
    return at


def key_bucket(scale: Pointer, value: int) -> int:
    """The bucket in which a search for ``value`` begins and ends (`kernels.builtin.key_buckets`): 0 for what is less than every
    key, one more than the last for what is more than the buckets hold."""
    least = load_i64(scale, 0)
    if lt_i64(value, least):
        return i64(0)
    return add_i64(min_i64(high_bits(sub_i64(value, least), load_i64(scale, 1)), add_i64(load_i64(scale, 2), 1)), 1)


def high_bits(width: int, shift: int) -> int:
    """The bits of an unsigned number above ``shift`` of them, less than 2 ** 63: where all count, the greatest such number for
    what is more."""
    bits = shr_u64(width, shift)
    if lt_i64(bits, 0):
        return i64(9223372036854775807)
    return bits


def last_reaching(tree: Pointer, leaves: int, end: int, value: int) -> int:
    """The last place before ``end`` that has ``value`` or more in a reach tree, whose leaves begin at ``leaves``; -1 where there
    is none."""
    node = add_i64(leaves, end)
    while gt_i64(node, 1):
        if ne_i64(and_i64(node, 1), 0) and ge_i64(load_i64(tree, sub_i64(node, 1)), value):
            node = sub_i64(node, 1)
            while lt_i64(node, leaves):
                node = add_i64(shl_i64(node, 1), 1)
                if lt_i64(load_i64(tree, node), value):
                    node = sub_i64(node, 1)
            return sub_i64(node, leaves)
        node = shr_i64(node, 1)
    return i64(-1)


def last_reaching_above(tree: Pointer, leaves: int, end: int, value: int) -> int:
    """`last_reaching` for more than ``value``."""
    if eq_i64(value, 9223372036854775807):
        return i64(-1)
    return last_reaching(tree, leaves, end, add_i64(value, 1))
