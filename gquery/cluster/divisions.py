"""Where tables of files are cut among the workers: each between the values of its first sorted column, as far as it has one.

The connection knows no value. Footers tell which columns may be sorted, and a worker reads the row groups in which a cut falls.
A table is cut when it is first used, and described by that cut, before anybody knows what it is joined with; so that later
queries need no other one, it is cut at the values where another table is cut whose column has about the same bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Protocol

from gquery import tuning
from gquery.cluster.sorted_rows import ValueCut, about_even, may_be_sorted
from gquery.cluster.tables import ClusterTable, FileTable
from gquery.columns.table import TableSource
from gquery.distributed.cuts import has_values, is_about_even
from gquery.errors import InternalError
from gquery.expression.types import Bounds
from gquery.runtime import interrupt


class Asks(Protocol):
    """Asks a worker about the rows of tables, `cluster.sorted_rows`; None where a column is not sorted."""

    def value_cut(self, table: FileTable, field: int) -> ValueCut | None:
        """The rows cut evenly between values of a field."""
        ...

    def rows_below(self, table: FileTable, field: int, bounds: Sequence[int]) -> tuple[int, ...] | None:
        """How many rows of a field are below each of these values."""
        ...


class Divisions:
    """The cuts of a connection's tables among so many ``ranks``; the `Places` of its programs."""

    def __init__(self, ranks: int, asks: Asks) -> None:
        self.ranks, self._asks = ranks, asks
        self._lock = interrupt.Lock()
        self._bounds: dict[
            tuple[int, ...], Bounds
        ] = {}  # where tables are cut, and between which values their columns lie

    # ---- a table by itself ----

    def first_starts(self, table: ClusterTable) -> tuple[int, ...]:
        """The rows at which each rank begins, and their number: those of the cut that is made first."""
        first = self._first(table)
        return about_even(table.source.all_groups, self.ranks) if first is None else first.starts

    def _first(self, table: ClusterTable) -> ValueCut | None:
        """The cut by the first sorted field; None where there is none, or its values are too few."""
        with self._lock:
            known = table.cuts
            if not known.has_first:
                known.first, known.has_first = self._found(table), True
            return known.first

    def _found(self, table: ClusterTable) -> ValueCut | None:
        if self.ranks == 1:
            return None
        possible = (f for f in range(len(table.schema.fields)) if may_be_sorted(table.source, f))
        fields = list(islice(possible, tuning.cluster.sorted_fields))
        for field in fields:
            bounds = table.source.statistics(field).bounds
            like = [b for b, other in self._bounds.items() if bounds is not None and _are_alike(bounds, other)]
            cut = self._cut_at(table, field, like[0]) if like else None
            if cut is None or not is_about_even(cut.starts):
                cut = self._even_cut(table, field)
            if cut is not None and is_about_even(cut.starts):
                if bounds is not None:
                    self._bounds.setdefault(cut.bounds, bounds)
                return cut
        return None

    def _even_cut(self, table: ClusterTable, field: int) -> ValueCut | None:
        known = table.cuts.even
        if field not in known:
            known[field] = self._asks.value_cut(table.file_table, field)
        return known[field]

    def _cut_at(self, table: ClusterTable, field: int, bounds: tuple[int, ...]) -> ValueCut | None:
        known = table.cuts.below
        if (field, bounds) not in known:
            known[field, bounds] = self._asks.rows_below(table.file_table, field, bounds)
        below = known[field, bounds]
        return None if below is None else ValueCut(field, bounds, (0, *below, table.rows))

    # ---- see `Places` ----

    def bytes_of(self, source: TableSource, fields: Sequence[int]) -> int | None:
        """See `Places`; tables in memory are sent to all workers."""
        return source.bytes_of(fields) if isinstance(source, ClusterTable) else None

    def is_sorted(self, source: TableSource, field: int) -> bool:
        """See `Places`."""
        if not isinstance(source, ClusterTable) or not source.statistics(field).is_sorted:
            return False
        (column,) = source.load([field]).columns
        return has_values(column) and may_be_sorted(source.source, field)

    def starts(self, source: TableSource) -> tuple[int, ...]:
        """See `Places`."""
        return self.first_starts(_of_files(source))

    def bounds(self, source: TableSource, field: int) -> Sequence[int]:
        """See `Places`."""
        with self._lock:
            table = _of_files(source)
            first = self._first(table)
            cut = first if first is not None and first.field == field else self._even_cut(table, field)
        return _certain(cut, table).bounds

    def rows_below(self, source: TableSource, field: int, bounds: Sequence[int]) -> Sequence[int]:
        """See `Places`."""
        with self._lock:
            table, wanted = _of_files(source), tuple(bounds)
            for cut in (table.cuts.first, table.cuts.even.get(field)):
                if cut is not None and (cut.field, cut.bounds) == (field, wanted):
                    return cut.starts[1:-1]
            return _certain(self._cut_at(table, field, wanted), table).starts[1:-1]


def _of_files(source: TableSource) -> ClusterTable:
    assert isinstance(source, ClusterTable), source
    return source


def _certain(cut: ValueCut | None, table: ClusterTable) -> ValueCut:
    """A cut by a column that the workers have found to be sorted before."""
    if cut is None:
        raise InternalError(f"a column of {table.name} was sorted, and is not any more")
    return cut


def _are_alike(a: Bounds, b: Bounds) -> bool:
    """Whether two columns lie between about the same values."""
    low, high = max(a.low, b.low), min(a.high, b.high)
    return high - low + 1 >= tuning.cluster.alike * max(a.width, b.width)
