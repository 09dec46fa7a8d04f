"""Which windows over the same rows share a sort.

Rows that are sorted by ``a, b, c`` lie in order for PARTITION BY a ORDER BY b, c and for PARTITION BY b, a ORDER BY c: partition
keys are a set, in any direction, and order keys follow them as they stand. PARTITION BY a ORDER BY b is served, too, but rows
with equal b come by their c, and not as they come in the source: a window shares such a sort if no call of it sees the order of
peers. As in "Optimization of Analytic Window Functions" (Cao et al., 2012), the windows with the most keys are sorted for, and
every other one joins the first of them whose sort can be made to serve it too.
"""

from __future__ import annotations

from collections.abc import Sequence

from gquery.expression.expr import Column, SortKey
from gquery.expression.windows import WindowCall
from gquery.functions.aggregate_record import Accumulated, AtFraction, Reduced
from gquery.functions.windows import aggregate_by
from gquery.runtime.records import dataclass

_Block = SortKey | frozenset[Column]
"""A key of a sort, or columns that stand there in any order and direction."""
_RANKS = frozenset(("rank", "dense_rank", "percent_rank", "cume_dist"))


@dataclass(frozen=True)
class Over:
    """A window: its keys, and whether its calls see in which order peers come."""

    partition: tuple[Column, ...]
    order: tuple[SortKey, ...]
    sees_ties: bool


def sees_ties(call: WindowCall) -> bool:
    """Whether the value of a call depends on the order in which peers come."""
    if call.order:
        return True
    by = aggregate_by(call)
    if by is None:
        return call.function not in _RANKS
    return call.frame.unit == "rows" or not isinstance(by, Accumulated | AtFraction | Reduced)


def shared_sorts(windows: Sequence[Over]) -> list[tuple[int, tuple[SortKey, ...]]]:
    """The windows by their numbers, in the order in which they are computed, and the keys of the sort that each shares with its
    neighbours; none where it has one of its own."""
    groups: list[tuple[list[_Block], list[int]]] = []
    for n in sorted(range(len(windows)), key=lambda n: (-_length(windows[n]), n)):
        for group, (blocks, members) in enumerate(groups):
            refined = _refined(blocks, windows[n]) if _length(windows[n]) else None  # no key, no sort
            if refined is not None:
                groups[group] = refined, [*members, n]
                break
        else:
            groups.append((_blocks(windows[n]), [n]))
    groups.sort(key=lambda group: min(group[1]))
    return [(n, _keys(blocks) if len(members) > 1 else ()) for blocks, members in groups for n in members]


def _own_order(window: Over) -> list[SortKey]:
    """The keys that order a partition: those that are not the same in all of it."""
    told, kept = set(window.partition), []
    for key in window.order:
        if isinstance(key.expr, Column) and key.expr not in told:
            told.add(key.expr)
            kept.append(key)
    return kept


def _length(window: Over) -> int:
    return len(set(window.partition)) + len(_own_order(window))


def _blocks(window: Over) -> list[_Block]:
    first: list[_Block] = [frozenset(window.partition)] if window.partition else []
    return [*first, *_own_order(window)]


def _keys(blocks: Sequence[_Block]) -> tuple[SortKey, ...]:
    keys: list[SortKey] = []
    for block in blocks:
        keys += [block] if isinstance(block, SortKey) else [SortKey(c) for c in sorted(block, key=lambda c: c.id)]
    return tuple(keys)


def _refined(blocks: Sequence[_Block], window: Over) -> list[_Block] | None:
    """The blocks of a sort that serves a window too; None where there is none."""
    left, made = list(blocks), list[_Block]()
    partition = frozenset(window.partition)
    while partition:
        if not left:
            return None
        block = left.pop(0)
        found = partition & (frozenset((block.expr,)) if isinstance(block, SortKey) else block)
        if not found:
            return None
        partition -= found
        if isinstance(block, SortKey):
            made.append(block)
            continue
        made.append(found)
        if block - found:
            if partition:
                return None
            left.insert(0, block - found)
    for key in _own_order(window):
        if not left:
            return None
        block = left.pop(0)
        if isinstance(block, SortKey):
            if block != key:
                return None
        elif key.expr in block:
            if len(block) > 1:
                left.insert(0, block - {key.expr})
        else:
            return None
        made.append(key)
    return None if left and window.sees_ties else [*made, *left]
