"""What can be done to a relation: each method gives a new one, and nothing runs until rows are asked for.

Wherever an expression is taken, so is SQL text. A name means a column of the relation; SQL text and expressions may use
``self`` for the relation itself (``other`` for the second one of a join), and tables of the connection in subqueries.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from gquery.api.dataframe.rows import Names, Rows
from gquery.api.dataframe.totals import Totals
from gquery.errors import BindError, InterfaceError, did_you_mean
from gquery.runtime.arguments import checked
from gquery.runtime.boundary import boundary

if TYPE_CHECKING:
    from sqlglot import exp

    from gquery.api.connection import Connection
    from gquery.api.dataframe.expression import Expression
    from gquery.api.dataframe.groups import GroupedRelation
    from gquery.api.relation import Relation
    from gquery.planner.logical.nodes import Query

How = Literal["inner", "left", "right", "full", "outer", "semi", "anti", "cross", "asof"]
Strategy = Literal["backward", "forward"]


@checked
class Verbs(Rows, Totals, ABC):
    """The methods of a `Relation` that give another one. Errors in what they are given are raised at once."""

    _connection: Connection

    @abstractmethod
    def bound_query(self) -> Query:
        """The logical plan of the relation's rows."""

    # ---- rows ------------------------------------------------------------------------------------------------------

    def filter(self, *predicates: Any, **equal: Any) -> Relation:
        """The rows for which all predicates are TRUE: ``rel.filter(col("a") > 3, "b LIKE 'x%'", c="y")``. Aggregates and windows
        in them see all rows."""
        from sqlglot import exp

        from gquery.api.dataframe.broadcast import broadcast, has_window
        from gquery.api.dataframe.build import conjunction, select
        from gquery.api.dataframe.expression import col

        named = [col(self._known(name)) == value for name, value in equal.items()]
        given = broadcast([*self._given(predicates), *named])
        if not given:
            raise InterfaceError("filter takes a predicate")
        test = conjunction([e.node.this if isinstance(e.node, exp.Alias) else e.node for e in given])
        if has_window(test):
            return self._made(select([exp.Star()], qualify=exp.Qualify(this=test)), given)
        return self._made(select([exp.Star()], where=exp.Where(this=test)), given)

    def sort(
        self,
        *by: Any,
        descending: bool | Sequence[bool] = False,
        nulls_first: bool = False,
        nulls_last: bool | Sequence[bool] | None = None,
    ) -> Relation:
        """The rows in order of the keys: ``rel.sort("a", col("b").desc())``; NULLs come last unless said otherwise, by
        ``nulls_first`` or, as Polars has it, ``nulls_last=False``, for all keys or each."""
        from sqlglot import exp

        from gquery.api.dataframe.broadcast import broadcast
        from gquery.api.dataframe.build import select, sort_terms

        by = tuple(k for b in by for k in (b if isinstance(b, list | tuple) else [b]))
        flags = [descending] * len(by) if isinstance(descending, bool) else list(descending)
        last = not nulls_first if nulls_last is None else nulls_last
        ends = [last] * len(by) if isinstance(last, bool) else list(last)
        if not by or len(flags) != len(by) or len(ends) != len(by):
            raise InterfaceError("sort takes at least one key, and a direction for each where there is a list of them")
        names = self.bound_query().names
        keys = [k for b, d, e in zip(by, flags, ends, strict=True) for k in sort_terms(b, names, d, not e)]
        keys = broadcast(keys)
        return self._made(select([exp.Star()], order=exp.Order(expressions=[k.node for k in keys])), keys)

    order = sort

    def limit(self, n: int, offset: int = 0) -> Relation:
        """The first ``n`` rows after skipping ``offset``."""
        from sqlglot import exp

        from gquery.api.dataframe.build import select

        counts: dict[str, Any] = {"limit": exp.Limit(expression=exp.Literal.number(n))}
        if offset:
            counts["offset"] = exp.Offset(expression=exp.Literal.number(offset))
        if n < 0 or offset < 0:
            raise BindError("LIMIT and OFFSET cannot be negative")
        return self._made(select([exp.Star()], **counts), [])

    def head(self, n: int = 5) -> Relation:
        """The first rows."""
        return self.limit(n)

    def distinct(self) -> Relation:
        """Each row once."""
        from sqlglot import exp

        from gquery.api.dataframe.build import select

        return self._made(select([exp.Star()], distinct=exp.Distinct()), [])

    def union(self, other: Any, distinct: bool = False, by_name: bool = False) -> Relation:
        """The rows of both, columns matched by place, or by name; ``distinct`` gives each row once."""
        from sqlglot import exp

        from gquery.api.dataframe.build import select

        sides = [select([exp.Star()], table) for table in ("self", "other")]
        return self._made(exp.Union(this=sides[0], expression=sides[1], distinct=distinct, by_name=by_name), [], other)

    # ---- columns ---------------------------------------------------------------------------------------------------

    def select(self, *exprs: Any, **named: Any) -> Relation:
        """These columns: ``rel.select("a", col("b") + 1, total=col("c") * 2)``. Aggregates alone give one row; one beside other
        columns is the same in every row."""
        from gquery.api.dataframe.broadcast import beside_rows
        from gquery.api.dataframe.build import select

        given = beside_rows(self._given(exprs, named))
        if not given:
            raise InterfaceError("select takes a column")
        return self._made(select([e.node for e in given]), given)

    def with_columns(self, *exprs: Any, **named: Any) -> Relation:
        """All columns, and these: one that has a column's name takes its place. An aggregate is the same in every row."""
        from gquery.api.dataframe.broadcast import broadcast
        from gquery.api.dataframe.build import column, select
        from gquery.sql.names import column_name

        given = broadcast(self._given(exprs, named))
        new: dict[str, Any] = {column_name(e.node).lower(): e.node for e in given}
        entries = [new.pop(n.lower(), None) or column(n, "self") for n in self.bound_query().names]
        return self._made(select([*entries, *new.values()]), given)

    def rename(self, names: Mapping[str, str] | None = None, **more: str) -> Relation:
        """The same columns, some under other names: ``rel.rename({"old": "new"})`` or ``rel.rename(old="new")``."""
        from gquery.api.dataframe.build import select
        from gquery.api.dataframe.expression import col

        new = {self._known(old).lower(): name for old, name in {**(names or {}), **more}.items()}
        entries = [
            col(n, of="self").alias(new[n.lower()]) if n.lower() in new else col(n, of="self")
            for n in self.bound_query().names
        ]
        return self._made(select([e.node for e in entries]), [])

    def drop(self, *columns: str | Sequence[str], strict: bool = True) -> Relation:
        """All columns but these, which are there unless it is not ``strict``."""
        from gquery.api.dataframe.build import columns_of, select

        gone = {(self._known(name) if strict else name).lower() for c in columns for name in _list(c)}
        kept = tuple(n for n in self.bound_query().names if n.lower() not in gone)
        if not kept:
            raise BindError("a relation keeps at least one column")
        return self._made(select(columns_of(kept)), [])

    # ---- groups and joins ------------------------------------------------------------------------------------------

    def group_by(self, *keys: Any, maintain_order: bool = False, **named: Any) -> GroupedRelation:
        """Groups of rows with equal keys, for `GroupedRelation.agg`; by ``maintain_order`` in the order of their first rows."""
        from gquery.api.dataframe.groups import GroupedRelation

        given = self._given(keys, named)
        if not given:
            raise InterfaceError("group_by takes a key; agg aggregates all rows")
        return GroupedRelation(self, given, maintain_order)

    def agg(self, *aggregates: Any, **named: Any) -> Relation:
        """Aggregates of all rows, in one row: ``rel.agg(col("a").sum(), n=fn.count())``."""
        from gquery.api.dataframe.groups import GroupedRelation

        return GroupedRelation(self, [], in_order=False).agg(*aggregates, **named)

    def join(
        self,
        other: Any,
        on: Any = None,
        how: How = "inner",
        left_on: Names = None,
        right_on: Names = None,
        suffix: str = "_right",
    ) -> Relation:
        """Rows of both sides that belong together.

        ``on`` is the name of a column that both have, a list of those (they come once in the result; the last is compared by an
        ``asof`` join), or a condition over the columns of both; ``left_on`` and ``right_on`` name columns that have to be equal
        and are all kept. A column of the right side whose name the left side has, too, gets the suffix.
        """
        from gquery.api.dataframe.join import SIDES, join

        if how not in SIDES:
            raise InterfaceError(
                f"there is no join {how!r}.{did_you_mean(str(how), SIDES)} There are {', '.join(SIDES)}"
            )
        if (left_on is None) != (right_on is None) or ((how == "cross") != (on is None and left_on is None)):
            raise InterfaceError("a join takes on, or left_on and right_on; a cross join takes neither")
        pairs = [] if left_on is None or right_on is None else list(zip(_list(left_on), _list(right_on), strict=True))
        tree, given = join((self, self._relation(other)), on, pairs, how, suffix)
        return self._made(tree, given, other)

    def join_asof(
        self,
        other: Any,
        on: str | tuple[str, str],
        by: Names = None,
        strategy: Strategy = "backward",
        how: Literal["left", "inner"] = "left",
        suffix: str = "_right",
    ) -> Relation:
        """Each row beside the other side's whose key ``on`` (a name, or one on each side) is the greatest not above, or for
        ``forward`` the least that is not less, of those with equal columns ``by``. Rows without one have NULLs, or go (inner)."""
        from gquery.api.dataframe.asof import join_asof

        keys = (on, on) if isinstance(on, str) else on
        tree = join_asof((self, self._relation(other)), keys, [] if by is None else _list(by), (strategy, how), suffix)
        return self._made(tree, [], other)

    # ---- SQL -------------------------------------------------------------------------------------------------------

    def sql(self, text: str, name: str = "self") -> Relation:
        """A query over the relation, which it calls ``self``: ``rel.sql("SELECT a, count(*) FROM self GROUP BY a")``."""
        from gquery.sql.bind import bind_query

        catalog = self._connection.catalog.over({name: self})
        return self._connection.relation(bind_query(text, catalog))

    def query(self, name: str, text: str) -> Relation:
        """`sql` with a name for the relation, as DuckDB has it."""
        return self.sql(text, name)

    def describe(self) -> Relation:
        """A row a column: its type, how many values and NULLs it has, how many differ, the least, the greatest, the mean.
        Runs the query."""
        from gquery.api.dataframe.describe import describe

        return describe(self)

    # ---- inside ----------------------------------------------------------------------------------------------------

    @boundary
    def _given(
        self, exprs: Sequence[Any], named: Mapping[str, Any] | None = None, but: Sequence[str] = ()
    ) -> list[Expression]:
        """The expressions of a method's arguments. What stands for several columns stands for none of those in ``but``."""
        from gquery.api.dataframe.build import expressions

        names = tuple(n for n in self.bound_query().names if n.lower() not in but)
        given = [e for x in exprs for e in expressions(x, names)]
        for name, x in (named or {}).items():
            found = expressions(x, names)
            if len(found) != 1:
                raise InterfaceError(f"{len(found)} columns cannot all be called {name!r}")
            given.append(found[0].alias(name))
        return given

    def _known(self, name: str) -> str:
        names = self.bound_query().names
        if not isinstance(name, str):
            raise InterfaceError(f"a column's name is a str, not {name!r}")
        if name.lower() not in (n.lower() for n in names):
            raise BindError(f"the relation has no column {name!r}.{did_you_mean(name, names)}")
        return name

    @boundary
    def _relation(self, other: Any) -> Verbs:
        if isinstance(other, Verbs) and other._connection is self._connection:
            return other
        return self._connection.from_data(other)  # what another connection has is computed there

    @boundary
    def _made(self, tree: exp.Expr, given: Sequence[Expression], other: Any = None) -> Relation:
        from gquery.api.dataframe.build import bind_tree
        from gquery.api.dataframe.expression import merged

        names: dict[str, Any] = {"self": self}
        if other is not None:
            names["other"] = self._relation(other)
        for name, value in merged(e.names for e in given).items():
            names[name] = self._relation(value) if isinstance(value, Verbs) else value
        return self._connection.relation(bind_tree(tree, names, self._connection.catalog))


def _list(names: str | Sequence[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)
