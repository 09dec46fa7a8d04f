"""Of which table a column of a plan is, for DESCRIBE: columns of queries and views have the key and default of their table's.

As in DuckDB, a column is its table's through filters, joins of all kinds, orders, limits, DISTINCT, subqueries and views; what
groups, windows, set operations and CTEs give is of no table.
"""

from __future__ import annotations

from gquery.expression.expr import Column
from gquery.planner.logical.nodes import Aggregate, Filter, Join, Limit, Plan, Project, Scan, Shared, Sort, Window
from gquery.sql.constraints import NONE, Constraints
from gquery.sql.ctes import Queries


class Origins:
    """The tables of a query's catalog, by what their scans read."""

    def __init__(self, query: Queries) -> None:
        self._query, self._catalog = query, query.catalog
        self._names = {id(self._catalog.lookup(name)): name for name in self._catalog.tables()}

    def of(self, plan: Plan, column: Column) -> tuple[Constraints, str]:
        """What the column's table asks of its rows, and the column's name there; of no table nothing."""
        match plan:
            case Scan(source=source, columns=columns, fields=fields):
                (n,) = (n for n, c in enumerate(columns) if c.id == column.id)
                name = self._names.get(id(source))
                return (NONE if name is None else self._catalog.constraints(name)), source.schema.fields[fields[n]].name
            case Filter() | Sort() | Limit():
                return self.of(plan.source, column)
            case Aggregate() if column.id in self._query.distinct:
                return self.of(plan.source, self._query.distinct[column.id])
            case Window(calls=calls) if self._query.windows.isdisjoint(c.id for c, _ in calls):  # numbers for LIMIT, rowid, ...
                return self.of(plan.source, column) if column not in [c for c, _ in calls] else (NONE, "")
            case Project(source=source, exprs=exprs):
                (e,) = (e for c, e in exprs if c.id == column.id)
                return self.of(source, e) if isinstance(e, Column) else (NONE, "")
            case Join(left=Window(), right=Window()):  # POSITIONAL, by the numbers of rows
                return NONE, ""
            case Join(left=left, right=right):
                sides = [side for side in (left, right) if any(c.id == column.id for c in side.columns)]
                return self.of(sides[0], column) if sides else (NONE, "")
            case Shared(definition=definition, columns=columns) if self._query.is_view(definition):
                (n,) = (n for n, c in enumerate(columns) if c.id == column.id)
                return self.of(definition.plan, plan.outputs[n])
            case _:
                return NONE, ""
