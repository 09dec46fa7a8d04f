"""Groups of a relation's rows, and what can be asked of each group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gquery.api.dataframe.expression import Expression, call, col, fn
from gquery.errors import BindError, InterfaceError
from gquery.runtime.arguments import checked
from gquery.sql.names import column_name

if TYPE_CHECKING:
    from gquery.api.dataframe.verbs import Verbs
    from gquery.api.relation import Relation

_ROW = "gquery_row"  # a column that is not in any result


@checked
class GroupedRelation:
    """Groups of a relation's rows; made by `Relation.group_by`."""

    def __init__(
        self, relation: Verbs, keys: Sequence[Expression], in_order: bool, having: Sequence[Expression] = ()
    ) -> None:
        self._relation, self._keys, self._in_order, self._having = relation, list(keys), in_order, list(having)

    def agg(self, *aggregates: Any, **named: Any) -> Relation:
        """A row a group: its keys and these aggregates, which may be computed with, and which may be of aggregates of the group:
        ``(col("a") - col("a").mean()).abs().max()``. A column without an aggregate becomes a list of the group's values."""
        from sqlglot import exp

        from gquery.api.dataframe.broadcast import with_inner
        from gquery.api.dataframe.build import imploded, select
        from gquery.sql.group_all import has_aggregate

        given = [imploded(e) if self._keys else e for e in self._relation._given(aggregates, named, self._key_names())]
        if not self._keys and not any(has_aggregate(e.node) for e in given):
            raise BindError("agg takes aggregates, as in agg(col('a').sum())")
        relation, asked = with_inner(self._relation, self._keys, [*given, *self._having])
        clauses: dict[str, Any] = {}
        if self._keys:
            clauses["group"] = exp.Group(expressions=[exp.Literal.number(i + 1) for i in range(len(self._keys))])
        if self._having:
            clauses["having"] = exp.Having(this=exp.and_(*(e.node.unalias() for e in asked[len(given) :]), copy=False))
        if self._in_order:
            relation = relation.with_columns(fn.row_number().over().alias(_ROW))
            clauses["order"] = exp.Order(expressions=[col(_ROW).min().asc().node])
        entries = [e.node for e in (*self._keys, *asked[: len(given)])]
        made: Relation = relation._made(select(entries, **clauses), [*self._keys, *asked])
        return made

    def having(self, *predicates: Any) -> GroupedRelation:
        """The groups for which all predicates are TRUE: ``rel.group_by("a").having(fn.count() > 1).agg(...)``."""
        given = self._relation._given(predicates, None, self._key_names())
        return GroupedRelation(self._relation, self._keys, self._in_order, [*self._having, *given])

    def head(self, n: int = 5) -> Relation:
        """The first rows of each group, its keys first."""
        return self._some(fn.row_number().over(*self._bare()) <= n)

    def tail(self, n: int = 5) -> Relation:
        """The last rows of each group, its keys first."""
        keys = self._bare()
        return self._some(fn.count().over(*keys) - fn.row_number().over(*keys) < n)

    def count(self) -> Relation:
        """How many rows each group has."""
        return self.len("count")

    def len(self, name: str = "len") -> Relation:
        """How many rows each group has, in a column of that name."""
        return self.agg(fn.count().alias(name))

    def sum(self) -> Relation:
        """The sum of each column that is no key."""
        return self._each("sum")

    def mean(self) -> Relation:
        """The mean of each column that is no key."""
        return self._each("avg")

    def min(self) -> Relation:
        """The least value of each column that is no key."""
        return self._each("min")

    def max(self) -> Relation:
        """The greatest value of each column that is no key."""
        return self._each("max")

    def first(self) -> Relation:
        """The first value of each column that is no key."""
        return self._each("first")

    def last(self) -> Relation:
        """The last value of each column that is no key."""
        return self._each("last")

    def median(self) -> Relation:
        """The median of each column that is no key."""
        return self._each("median")

    def n_unique(self) -> Relation:
        """How many different values each column has that is no key; NULL is one."""
        return self.agg(*(col(n).n_unique().alias(n) for n in self._others()))

    def _each(self, name: str) -> Relation:
        return self.agg(*(call(name, col(n)).alias(n) for n in self._others()))

    def _some(self, test: Expression) -> Relation:
        if self._having:
            raise InterfaceError("groups that are left out by having give aggregates, not rows")
        return self._relation.filter(test).select(*self._keys, *(col(n) for n in self._others()))

    def _bare(self) -> list[Expression]:
        return [Expression(k.node.unalias(), k.names) for k in self._keys]

    def _key_names(self) -> list[str]:
        return [column_name(k.node).lower() for k in self._keys]

    def _others(self) -> list[str]:
        keys = self._key_names()
        return [n for n in self._relation.bound_query().names if n.lower() not in keys]
