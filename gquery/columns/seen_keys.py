"""The keys of a table as sets of Python values: whether rows that INSERT appends have one of them is asked in no query.

They stand beside a table (`sql.catalog`) as long as rows are only appended to it, and what appends rows adds theirs. NULL in a
column makes a key equal to no other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gquery import tuning
from gquery.columns.table import TableSource
from gquery.expression.types import DType, Kind

Places = Sequence[Sequence[int]]
"""For each key the places of its columns in a row."""
Columns = Mapping[int, Sequence[Any]]
"""Values of rows by the places of columns."""
_SAME_IN_PYTHON = frozenset((Kind.BOOLEAN, Kind.DECIMAL, Kind.DATE, Kind.TIMESTAMP, Kind.VARCHAR))


class SeenKeys:
    """The keys of one table."""

    def __init__(self, places: Places) -> None:
        self._seen: list[set[tuple[Any, ...]]] = [set() for _ in places]
        self._places = places

    def fresh(self, columns: Columns) -> list[set[tuple[Any, ...]]] | None:
        """What rows have for each key, for `add`; None where two of them, or one and a row before, agree on one."""
        made = []
        for places, seen in zip(self._places, self._seen, strict=True):
            given = [k for k in zip(*[columns[p] for p in places], strict=True) if None not in k]
            own = set(given)
            if len(own) < len(given) or not own.isdisjoint(seen):
                return None
            made.append(own)
        return made

    def add(self, fresh: Sequence[set[tuple[Any, ...]]]) -> bool:
        """Takes in what `fresh` gave of rows that the table has now; whether it is to be asked again."""
        for seen, own in zip(self._seen, fresh, strict=True):
            seen |= own
        return max(map(len, self._seen)) <= tuning.memory.seen_keys


def list_keys(
    table: TableSource, places: Places, types: Sequence[DType], values: Callable[[TableSource, Sequence[int]], Columns]
) -> SeenKeys | None:
    """The keys of a table; None where it has too many rows for a list of them, or where values are not the same in Python where
    they are in SQL, as a NaN is not."""
    used = sorted({p for key in places for p in key})
    comparable = all(types[p].is_integer or types[p].kind in _SAME_IN_PYTHON for p in used)
    if not comparable or table.rows > tuning.memory.listed_keys:
        return None
    made = SeenKeys(places)
    try:
        fresh = made.fresh(values(table, used))
    except (OverflowError, ValueError):  # a moment that Python has not
        return None
    if fresh is not None:
        made.add(fresh)
    return None if fresh is None else made
