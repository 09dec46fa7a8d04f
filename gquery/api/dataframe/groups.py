"""Groups of a relation's rows, and what can be asked of each group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gquery.errors import BindError
from gquery.runtime.arguments import checked

if TYPE_CHECKING:
    from gquery.api.dataframe.expression import Expression
    from gquery.api.dataframe.verbs import Verbs
    from gquery.api.relation import Relation


@checked
class GroupedRelation:
    """Groups of a relation's rows; made by `Relation.group_by`."""

    def __init__(self, relation: Verbs, keys: list[Expression]) -> None:
        self._relation, self._keys = relation, keys

    def agg(self, *aggregates: Any, **named: Any) -> Relation:
        """A row a group: its keys and these aggregates, which may be computed with. A column without an aggregate becomes a list
        of the group's values."""
        from sqlglot import exp

        from gquery.api.dataframe.build import imploded, select
        from gquery.sql.group_all import has_aggregate

        given = [imploded(e) if self._keys else e for e in self._relation._given(aggregates, named)]
        entries = [e.node for e in (*self._keys, *given)]
        if not self._keys and not any(has_aggregate(n) for n in entries):
            raise BindError("agg takes aggregates, as in agg(col('a').sum())")
        ordinals = [exp.Literal.number(i + 1) for i in range(len(self._keys))]
        clauses: dict[str, Any] = {"group": exp.Group(expressions=ordinals)} if ordinals else {}
        return self._relation._made(select(entries, **clauses), [*self._keys, *given])

    def count(self) -> Relation:
        """How many rows each group has."""
        return self.len("count")

    def len(self, name: str = "len") -> Relation:
        """How many rows each group has, in a column of that name."""
        from gquery.api.dataframe.expression import fn

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
        from gquery.api.dataframe.expression import col

        return self.agg(*(col(n).n_unique().alias(n) for n in self._others()))

    def _each(self, name: str) -> Relation:
        from gquery.api.dataframe.expression import call, col

        return self.agg(*(call(name, col(n)).alias(n) for n in self._others()))

    def _others(self) -> list[str]:
        from gquery.sql.names import column_name

        keys = {column_name(k.node).lower() for k in self._keys}
        return [n for n in self._relation.bound_query().names if n.lower() not in keys]
