"""The logical plan: a closed union of frozen nodes. SQL and Relations make it, rules rewrite it, `planner.lower` reads it.

Every node knows its output ``columns`` and the ``sources`` directly below it. A node's column ids are its own or its
sources'; no two nodes make the same id.
Behaviour stands elsewhere: the recursion in `planner.logical.tree`, rewriting in `planner.rules`, printing in `profile.explain`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from operator import attrgetter
from typing import ClassVar

from gquery.columns.table import TableSource
from gquery.expression.expr import AggregateCall, Column, Exists, Expr, InSubquery, ScalarSubquery, SortKey, new_columns
from gquery.expression.frozen import frozen, frozen_open
from gquery.expression.types import BOOLEAN
from gquery.expression.windows import WindowCall
from gquery.runtime.records import cached_property, dataclass


class _Node:
    """Room for what is asked of a node most: None until somebody does. The rest is kept in its dictionary (`tree.cached`)."""

    REMEMBERED = "memo_expressions", "memo_ids", "memo_kinds", "memo_subqueries", "memo_uses"

    memo_expressions: tuple[Expr, ...] | None  # by `planner.logical.tree.expressions`
    memo_ids: frozenset[int] | None  # by `planner.logical.tree.column_ids`
    memo_kinds: int | None  # by `planner.logical.shared.kinds`
    memo_subqueries: tuple[ScalarSubquery | Exists | InSubquery, ...] | None  # by `planner.logical.tree.own_subqueries`
    memo_uses: tuple[Shared, ...] | None  # by `planner.logical.shared.uses`


@frozen_open
class Scan(_Node):
    """All rows of a table. ``fields[i]`` is the position in the source's schema of ``columns[i]``. Keeps the order."""

    source: TableSource
    columns: tuple[Column, ...]
    fields: tuple[int, ...]
    sources: ClassVar[tuple[Plan, ...]] = ()


def whole_scan(source: TableSource) -> Scan:
    """A scan of all columns of a source; ``made_of`` in its dictionary is the schema that has them."""
    schema = source.schema
    scan = Scan(source, new_columns(schema), tuple(range(len(schema))))
    scan.__dict__["made_of"] = schema
    return scan


@frozen_open
class Values(_Node):
    """Constant rows (expressions without columns); one row without columns stands for a missing FROM."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Expr, ...], ...]
    sources: ClassVar[tuple[Plan, ...]] = ()


@frozen_open
class Range(_Node):
    """``range(start, stop, step)``: BIGINTs from start, stop excluded; nothing is stored."""

    column: Column
    start: int
    stop: int
    step: int = 1
    sources: ClassVar[tuple[Plan, ...]] = ()

    @property
    def columns(self) -> tuple[Column, ...]:
        return (self.column,)

    @property
    def rows(self) -> int:
        return len(range(self.start, self.stop, self.step))


class _OverOne(_Node):
    """What reads one plan."""

    source: Plan
    sources: tuple[Plan, ...]

    def __post_init__(self) -> None:
        self.__dict__["sources"] = (self.source,)  # all nodes are asked for it


class _Passing(_OverOne):
    """What gives rows of its source as they are."""

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.source.columns


@frozen_open
class Filter(_Passing):
    """The rows for which the predicate is TRUE (not NULL). Keeps the order."""

    source: Plan
    predicate: Expr


@frozen_open
class Project(_OverOne):
    """New columns from expressions over the source's; a column is passed on as (column, column). Keeps the order."""

    source: Plan
    exprs: tuple[tuple[Column, Expr], ...]

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return tuple(c for c, _ in self.exprs)


class JoinKind(Enum):
    """What a join gives for a left row, by its matches: right rows for which the condition is TRUE."""

    __hash__ = object.__hash__  # Enum's own is a function of Python

    INNER = "inner"  # left and right columns, one row a match; CROSS is INNER with the condition TRUE
    LEFT = "left"  # as INNER, and the left row with NULLs where there is no match
    FULL = "full"  # as LEFT, and the right rows that never matched with NULLs on the left
    SEMI = "semi"  # the left row once, if there is a match
    ANTI = "anti"  # the left row once, if there is none
    MARK = "mark"  # the left row and `mark`: TRUE for a match, else NULL if the condition was NULL for some row, else FALSE
    SINGLE = "single"  # as LEFT, but two matches are a CardinalityError
    ASOF = "asof"  # as LEFT, but of the matches the nearest alone: by the condition's only comparison of both sides


class _OverTwo(_Node):
    """What reads two plans."""

    left: Plan
    right: Plan
    sources: tuple[Plan, ...]

    def __post_init__(self) -> None:
        self.__dict__["sources"] = (self.left, self.right)


@frozen_open
class _Pairs(_OverTwo):
    """What gives rows of two plans side by side."""

    left: Plan
    right: Plan
    kind: JoinKind
    condition: Expr
    mark: Column | None = None

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return join_columns(self.left, self.right, self.kind, self.mark)


@frozen_open
class Join(_Pairs):
    """Pairs of rows for which the condition is TRUE, as the kind says. Keeps the left side's order; the matches of a left
    row come in the right side's order. Columns are nullable on the side that a kind fills with NULLs."""


@frozen_open
class Apply(_Pairs):
    """A dependent join: for each left row the right plan, which may use the left's columns. Gone after decorrelation."""


def join_columns(left: Plan, right: Plan, kind: JoinKind, mark: Column | None) -> tuple[Column, ...]:
    match kind:
        case JoinKind.INNER:
            return left.columns + right.columns
        case JoinKind.LEFT | JoinKind.SINGLE | JoinKind.ASOF:
            return left.columns + _nullable(right.columns)
        case JoinKind.FULL:
            return _nullable(left.columns) + _nullable(right.columns)
        case JoinKind.SEMI | JoinKind.ANTI:
            return left.columns
        case JoinKind.MARK:
            assert mark is not None and mark.dtype == BOOLEAN
            return (*left.columns, mark)


def _nullable(columns: tuple[Column, ...]) -> tuple[Column, ...]:
    return tuple(c if c.nullable else Column(c.id, c.name, c.dtype, True) for c in columns)


@frozen
class GroupingSets:
    """The sets of keys by which the rows are grouped, each for itself: positions of keys. A set may come twice. ``mask`` is made
    for each group: bit i is 1 where key i is not in its set. Such a key is NULL there."""

    sets: tuple[tuple[int, ...], ...]
    mask: Column


@frozen_open
class Aggregate(_OverOne):
    """One row a group of equal keys (NULLs are equal). Without keys one row, also for no input. Promises no order. With
    ``sets`` the groups of each set; gone after the rule `expand_grouping_sets`."""

    source: Plan
    keys: tuple[tuple[Column, Expr], ...]
    aggregates: tuple[tuple[Column, AggregateCall], ...]
    sets: GroupingSets | None = None

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        made = tuple(c for c, _ in self.keys) + tuple(c for c, _ in self.aggregates)
        return made if self.sets is None else (*made, self.sets.mask)


@frozen_open
class Window(_OverOne):
    """The rows of its source, and for each the values of window functions. All calls have one partition (without: all rows;
    NULLs are equal) and one order in it; rows that agree on both come in the source's order. Keeps the order. With ``first``
    rows whose rank in their partition is greater may be left out: no one looks at them (see `limit_windows`)."""

    source: Plan
    partition: tuple[Expr, ...]
    order: tuple[SortKey, ...]
    calls: tuple[tuple[Column, WindowCall], ...]
    first: int | None = None

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return self.source.columns + tuple(c for c, _ in self.calls)


@frozen_open
class Unnest(_OverOne):
    """For each row of its source as many as the longest of its lists has elements, each with an element of every list: NULL of a
    shorter list, or of one that is NULL. A row without elements has none, or one with NULLs if it is ``kept``. ``ordinal`` counts
    a row's elements from 1. Keeps the order."""

    source: Plan
    lists: tuple[tuple[Column, Expr], ...]
    ordinal: Column | None = None
    kept: bool = False

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return (*self.source.columns, *self.made)

    @cached_property
    def made(self) -> tuple[Column, ...]:
        """The columns that it adds."""
        return tuple(c for c, _ in self.lists) + (() if self.ordinal is None else (self.ordinal,))


@frozen_open
class Sort(_Passing):
    """The rows in order of the keys, stable; with ``limit`` only the first ``limit`` rows after ``offset`` (top-k)."""

    source: Plan
    keys: tuple[SortKey, ...]
    limit: int | None = None
    offset: int = 0


@frozen_open
class Limit(_Passing):
    """At most ``limit`` rows (all for None) after skipping ``offset``, in the source's order."""

    source: Plan
    limit: int | None
    offset: int = 0


@frozen_open
class UnionAll(_Node):
    """The rows of all sources, one after another. ``inputs[k][i]`` is the column of source k that ``columns[i]`` takes; the
    types are equal."""

    sources: tuple[Plan, ...]
    inputs: tuple[tuple[Column, ...], ...]
    columns: tuple[Column, ...]


@dataclass(frozen=True, eq=False)
class Definition:
    """A subplan that a query computes once: that of a CTE or a view, or one that `common_subplans` found. It uses no
    column of a query around it. The ``number`` says which it is, whatever rules make of its plan. ``kept``: the user asked for
    it to be computed once (AS MATERIALIZED) or at each use (AS NOT MATERIALIZED)."""

    number: int
    plan: Plan
    outputs: tuple[Column, ...]
    name: str = ""
    kept: bool | None = None

    @cached_property
    def query(self) -> Query:
        """The definition as a query of its own: rules take it so, one after another."""
        return Query(self.plan, self.outputs, tuple([c.name for c in self.outputs]))


@frozen_open
class Shared(_Node):
    """One use of a definition: its rows under columns of this use's own, so that two uses never share a column.
    ``fields[i]`` is the position of ``columns[i]`` in the definition's outputs. Keeps the order. What it reads is no source of
    the node: rules take each definition by itself, once."""

    definition: Definition
    columns: tuple[Column, ...]
    fields: tuple[int, ...]
    sources: ClassVar[tuple[Plan, ...]] = ()

    @property
    def outputs(self) -> tuple[Column, ...]:
        """The definition's columns behind this use's."""
        return tuple(self.definition.outputs[f] for f in self.fields)


@frozen_open
class WorkingTable(_Node):
    """Within the recursive part of the `Fixpoint` of that number: the rows of the round before; with a ``level``, that level
    of all rows so far, which are in one level each (see `execution.recursion`).
    ``fields[i]`` is the position of ``columns[i]`` in the recursion's columns."""

    number: int
    columns: tuple[Column, ...]
    fields: tuple[int, ...]
    level: int | None = None
    sources: ClassVar[tuple[Plan, ...]] = ()


@frozen_open
class Fixpoint(_OverOne):
    """The source's rows, and those of ``step`` for the rows of each round, until a round has none. The step is a query of its
    own, which rules take by itself; no column of it is one of this plan. With ``enough`` so many rows will do."""

    source: Plan
    inputs: tuple[Column, ...]
    step: Query
    columns: tuple[Column, ...]
    number: int
    enough: int | None = None


Plan = (
    Scan
    | Values
    | Range
    | Shared
    | WorkingTable
    | Filter
    | Project
    | Join
    | Apply
    | Aggregate
    | Window
    | Unnest
    | Sort
    | Limit
    | UnionAll
    | Fixpoint
)


@frozen_open
class Drawn:
    """Values of a sequence that each row of a query draws: from the first on, so many a row."""

    name: str
    first: int
    calls: int


@frozen_open
class Query:
    """A bound SELECT: the plan, and its result columns in order under the names that the user sees. ``asked``: queries that were
    run while it was bound, and whose answers it rests on, as a PIVOT does on the values that there are. ``drawn``: what its rows
    draw of sequences."""

    plan: Plan
    outputs: tuple[Column, ...]
    names: tuple[str, ...]
    asked: tuple[Query, ...] = ()
    drawn: tuple[Drawn, ...] = ()


_id_of = attrgetter("id")


def output_ids(plan: Plan, ids: Callable[[Plan], frozenset[int]]) -> frozenset[int]:
    """Ids of a node's columns. ``ids`` gives those of its sources, which most nodes pass on: dozens, before they are pruned."""
    match plan:
        case Filter(source=source) | Sort(source=source) | Limit(source=source):
            return ids(source)
        case Join(left=left, right=right, kind=JoinKind.INNER):
            return ids(left) | ids(right)
        case Join(left=left, kind=JoinKind.SEMI | JoinKind.ANTI):
            return ids(left)
        case _:
            return frozenset(map(_id_of, plan.columns))
