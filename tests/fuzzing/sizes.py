"""How many rows the relations of a random query have, about, so that no query is drawn that takes an interpreter minutes.

Products of three tables are wanted; a join of several of these is not: no engine answers that at once, DuckDB no faster than any.
The grammar asks before it writes a join down, and leaves out what is too much.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

TABLE = 30.0  # rows
_EQUAL = 0.25  # of the pairs have equal keys: columns have few values
_IN_ORDER = 0.5  # of the pairs are in a range
_MOST_ROWS = 50_000.0  # of a relation
_MOST_PAIRS = 1_000_000.0  # of rows that a condition is tested for
_GROUPS = 900.0


class Sizes:
    """Rows of what has been drawn, and of all that stands around what is being drawn."""

    def __init__(self) -> None:
        self.last = TABLE  # rows of the relation or query drawn last
        self.ctes: dict[str, float] = {}
        self._around = 1.0  # rows that a subquery is looked at for

    @contextmanager
    def within(self, rows: float) -> Iterator[None]:
        """Draws subqueries of a query that looks at so many rows."""
        before, self._around = self._around, self._around * max(rows, 1.0)
        try:
            yield
        finally:
            self._around = before

    def fit(self, rows: float) -> bool:
        """Whether a relation of so many rows may stand here; a table always may."""
        return rows <= TABLE or rows <= min(_MOST_ROWS, _MOST_PAIRS / self._around)

    def joined(self, left: float, right: float, how: str, on: str) -> float | None:
        """Rows of a join; None where they, or the pairs that are looked at, are too many."""
        pairs = left * right
        by_key = (" = " in on or "IS NOT DISTINCT FROM" in on) and " OR " not in on
        in_order = any(sign in on for sign in (" BETWEEN ", " < ", " > ", " <= ", " >= ")) and " OR " not in on
        found = pairs * (_EQUAL if by_key else _IN_ORDER if in_order else 1.0)
        if how in ("SEMI JOIN", "ANTI JOIN"):
            return left if by_key or pairs * self._around <= _MOST_PAIRS else None
        rows = max(found, left if "LEFT" in how or "FULL" in how else 0.0, right if "RIGHT" in how or "FULL" in how else 0.0)
        return rows if self.fit(rows) else None

    def recursive(self, first: float, growth: float, rounds: int) -> float:
        """Rows of a recursive CTE that keeps rows that come twice."""
        return first * sum(max(growth, 1.0) ** n for n in range(rounds + 1))


def grouped(rows: float, keys: int) -> float:
    """Groups of so many rows by so many keys."""
    return min(rows, _GROUPS) if keys else 1.0
