"""Late fetch: columns that a query does nothing with but give them out are read for the rows of its result alone.

    Sort top 10 by time                              Sort top 10 by time
      Filter url LIKE '%a%'                     =>     Filter url LIKE '%a%'
        Scan hits (time, url, and 100 others)            Scan hits (time, url, row number)
                                                     then the 100 others of hits, by row number

A column of a table in memory is encoded when it is first read as a whole, which takes longer than most queries; fetched columns
are not. Those that are encoded already are fetched where they lie on the host and many rows get to the sort, which would carry
them all. Runs behind the optimizer, where the query is a top-k over one table.
"""

from __future__ import annotations

from collections.abc import Sequence

from gquery import tuning
from gquery.columns.numbered import FetchingSource, can_be_numbered
from gquery.columns.table import TableSource
from gquery.expression.expr import Column, new_column
from gquery.expression.frozen import frozen_open
from gquery.expression.types import BIGINT, DType
from gquery.planner.logical.cardinality import Estimator
from gquery.planner.logical.nodes import Filter, Plan, Project, Query, Scan, Sort
from gquery.planner.logical.shared import definitions
from gquery.planner.logical.tree import used_columns
from gquery.runtime.records import dataclass, replace

_ROW = "row number"


@frozen_open
class FetchedOutput:
    """A column of the result: a fetched field of the table, or a column that the program's stages make (``place`` counts the
    fetched ones, or those of the stages)."""

    name: str
    dtype: DType
    nullable: bool
    is_fetched: bool
    place: int


@frozen_open
class LateFetch:
    """What is fetched when the stages of a program have run, whose last column is the number of each row in the table."""

    source: FetchingSource
    name: str  # the table's
    fields: tuple[int, ...]
    outputs: tuple[FetchedOutput, ...]

    @property
    def text(self) -> str:
        """What EXPLAIN says of it."""
        return f"then fetch {len(self.fields)} column{'s' * (len(self.fields) > 1)} of {self.name} by row number"


@dataclass(frozen=True)
class LateQuery:
    """A query that gives row numbers in place of the columns that are fetched."""

    query: Query
    fetch: LateFetch


def late_query(query: Query, on_host: bool) -> LateQuery | None:
    """The query with a late fetch, where it is a top-k over one table whose other columns are not loaded, or, where they lie
    ``on_host``, are many values in all."""
    above = _above_scan(query.plan)
    if above is None or definitions(query.plan):
        return None
    nodes, scan = above
    source = scan.source
    limits = tuning.late_fetch
    if source.rows < limits.least_rows or not can_be_numbered(source) or not _is_short(nodes):
        return None
    origin, needed = _traced(nodes, scan)
    fields = {c.id: f for c, f in zip(scan.columns, scan.fields, strict=True)}
    passed = {origin[c.id] for c in query.outputs if c.id in origin} - needed
    wanted = [fields[i] for i in passed]
    fetched = frozenset(source.fetchable(wanted, loaded=False))
    if on_host and _sorts_many(nodes):
        loaded = source.fetchable(wanted, loaded=True)
        fetched |= frozenset(loaded if len(loaded) > 1 else ())  # the row's number would be one, too
    late = frozenset(i for i in passed if fields[i] in fetched)
    if not late:
        return None
    row = new_column(_ROW, BIGINT, False)
    plan = _without_late(query.plan, frozenset(i for i, o in origin.items() if o in late), row, source.numbered())
    kept = [n for n, c in enumerate(query.outputs) if origin.get(c.id) not in late]
    columns = (*[query.outputs[n] for n in kept], row)
    names = (*[query.names[n] for n in kept], _ROW)
    order = sorted({fields[i] for i in late})
    outputs: list[FetchedOutput] = []
    for n, c in enumerate(query.outputs):
        is_fetched = origin.get(c.id) in late
        place = order.index(fields[origin[c.id]]) if is_fetched else kept.index(n)
        outputs.append(FetchedOutput(query.names[n], c.dtype, c.nullable, is_fetched, place))
    fetch = LateFetch(source, source.name, tuple(order), tuple(outputs))
    return LateQuery(Query(plan, columns, names), fetch)


def _above_scan(plan: Plan) -> tuple[list[Plan], Scan] | None:
    """What lies above the scan of a plan, from there on, if these are sorts, filters and projections alone."""
    nodes: list[Plan] = []
    while not isinstance(plan, Scan):
        if not isinstance(plan, Sort | Filter | Project):
            return None
        nodes.insert(0, plan)
        plan = plan.source
    return nodes, plan


def _is_short(nodes: Sequence[Plan]) -> bool:
    """Whether a sort keeps few rows."""
    most = tuning.late_fetch.most_rows
    return any(isinstance(n, Sort) and n.limit is not None and n.limit + n.offset <= most for n in nodes)


def _sorts_many(nodes: Sequence[Plan]) -> bool:
    """Whether so many rows get to the first sort that fetching a column takes less time than carrying it there."""
    first = next(n for n in nodes if isinstance(n, Sort))
    return Estimator().rows(first.source) >= tuning.late_fetch.sorted_rows


def _traced(nodes: Sequence[Plan], scan: Scan) -> tuple[dict[int, int], frozenset[int]]:
    """By the id of a column that passes on a column of the scan the id of that; and the columns of the scan that are used in
    another way."""
    origin = {c.id: c.id for c in scan.columns}
    used: set[int] = set()
    for node in nodes:
        match node:
            case Filter(_, predicate):
                used |= used_columns(predicate)
            case Sort(_, keys):
                used = used.union(*[used_columns(k.expr) for k in keys])
            case Project(_, exprs):
                used = used.union(*[used_columns(e) for _, e in exprs if not isinstance(e, Column)])
                origin |= {c.id: origin[e.id] for c, e in exprs if isinstance(e, Column) and e.id in origin}
            case _:
                raise AssertionError(node)
    return origin, frozenset(origin[i] for i in used if i in origin)


def _without_late(plan: Plan, late: frozenset[int], row: Column, source: TableSource) -> Plan:
    """The plan without the late columns, with the row's number."""
    match plan:
        case Scan(_, columns, fields):
            kept = [(c, f) for c, f in zip(columns, fields, strict=True) if c.id not in late]
            number = len(source.schema.fields) - 1
            return Scan(source, (*[c for c, _ in kept], row), (*[f for _, f in kept], number))
        case Project(below, exprs):
            exprs = (*[(c, e) for c, e in exprs if c.id not in late], (row, row))
            return Project(_without_late(below, late, row, source), exprs)
        case Filter(below) | Sort(below):
            return replace(plan, source=_without_late(below, late, row, source))
        case _:
            raise AssertionError(plan)
