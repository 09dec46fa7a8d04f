"""The queries of a WITH, by name, and what binders of parts of a query ask of what binds whole ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any, Protocol

from sqlglot import exp

from gquery.errors import BindError, Error
from gquery.expression.expr import Column
from gquery.planner.logical.nodes import Definition, Plan, Query
from gquery.runtime.records import dataclass
from gquery.sql.binding.shared import Named
from gquery.sql.binding.subquery import QueryBinder
from gquery.sql.catalog import Catalog
from gquery.sql.definitions import View
from gquery.sql.parse import located, nodes_of
from gquery.sql.scope import Scope


@dataclass(eq=False)
class Cte:
    """A query of a WITH, in the scope and among the CTEs where it was written. It is bound at its first use (one without a
    use may say what it likes, as in DuckDB) and kept: as a definition, or as a query that depends on one around it."""

    name: str
    node: exp.Expr
    columns: tuple[str, ...]
    visible: Ctes
    parent: Scope | None
    kept: bool | None = None  # AS MATERIALIZED, AS NOT MATERIALIZED
    bound: Named | None = None
    failed: Error | None = None  # what binding it raised
    is_recursive: bool = False
    working: Query | None = None  # within the recursive part of a query: its rows, for one use

    def below(self) -> list[Cte]:
        """The CTEs that this one may use and that are not bound, those that others use first, itself last."""
        out: list[Cte] = []
        met: set[int] = set()
        stack = [(self, False)]
        while stack:
            cte, is_done = stack.pop()
            if is_done:
                out.append(cte)
            elif id(cte) not in met and cte.is_waiting:
                met.add(id(cte))
                stack.append((cte, True))
                others = {n: e for n, e in cte.visible.entries.items() if id(e) not in met and e.is_waiting}
                if others:  # else nothing in the tree can name one
                    names = {t.name.lower() for t in nodes_of(cte.node) if isinstance(t, exp.Table) and not t.db}
                    stack += [(e, False) for n, e in others.items() if n in names]
        return out

    @property
    def is_waiting(self) -> bool:
        """Whether it has to be bound."""
        return self.bound is None and self.failed is None and self.working is None


@dataclass(frozen=True)
class Ctes:
    """The CTEs that are visible, by name in lower case."""

    entries: dict[str, Cte] = field(default_factory=dict)

    def with_clause(self, node: exp.Expr | None, parent: Scope | None, sql: str) -> Ctes:
        """These and those of a WITH clause, each of which sees the ones before it."""
        if node is None:
            return self
        visible = self
        names: set[str] = set()
        for cte in node.expressions:
            alias = cte.args["alias"]
            name = alias.name.lower()
            if name in names:
                raise located(BindError(f"WITH names {alias.name!r} twice"), sql, alias)
            names.add(name)
            is_recursive = bool(node.args.get("recursive")) and reads(cte.this, name)
            columns = tuple(c.name for c in alias.columns)
            entry = Cte(alias.name, cte.this, columns, visible, parent, cte.args.get("materialized"))
            entry.is_recursive = is_recursive
            visible = Ctes({**visible.entries, name: entry})
        return visible


def reads(node: exp.Expr, name: str) -> bool:
    """Whether a table of that name (in lower case) is read somewhere in a query."""
    return any(t.name.lower() == name and not t.db for t in node.find_all(exp.Table))


class Queries(QueryBinder, Protocol):
    """What binds the queries of a statement: `binding.query.QueryScopes`."""

    catalog: Catalog
    has_columns: bool
    names_rowid: bool  # the text may name the column ``rowid`` of a table
    distinct: dict[int, Column]  # by the columns of DISTINCT those that they are of
    windows: set[int]  # the columns of window functions that were written

    @property
    def visible(self) -> Ctes: ...

    def rests_on(self, asked: Sequence[Query]) -> None: ...

    def ask(self, query: Query, node: exp.Expr) -> list[tuple[Any, ...]]: ...

    def cte(self, cte: Cte) -> Query: ...

    def view(self, view: View, tree: exp.Expr) -> Query: ...

    def is_view(self, definition: Definition) -> bool: ...

    def query(self, node: exp.Expr, parent: Scope | None, ctes: Ctes) -> Query: ...

    def values(self, node: exp.Expr, parent: Scope | None) -> Query: ...

    def limited(self, plan: Plan, node: exp.Expr) -> Plan: ...

    def sampled(self, plan: Plan, node: exp.Expr) -> Plan: ...
