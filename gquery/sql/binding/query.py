"""Binding of queries: which binder takes SELECT, set operations, VALUES; CTEs; ORDER BY and LIMIT of what is no SELECT."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from sqlglot import exp

from gquery.errors import BindError, DataError, FileError, NotSupportedError, ProgrammingError
from gquery.expression.expr import Column, Expr, SortKey, new_column
from gquery.expression.types import JSON, NULL, UUID, VARCHAR
from gquery.functions import unified
from gquery.functions.casts import is_text_literal
from gquery.functions.user import UserFunction
from gquery.planner.logical.nodes import (
    Definition,
    Plan,
    Query,
    Sort,
)
from gquery.sql.binding.expr import ExprBinder
from gquery.sql.binding.from_clause import holds_join
from gquery.sql.binding.interned import Interned
from gquery.sql.binding.limits import ROWID, limited, sampled
from gquery.sql.binding.select import SelectBinder
from gquery.sql.binding.sets import chain, combined
from gquery.sql.binding.shared import Named, named, one_use
from gquery.sql.catalog import Catalog
from gquery.sql.collation import sort_node
from gquery.sql.ctes import Cte, Ctes
from gquery.sql.cut import TextSlots
from gquery.sql.definitions import View
from gquery.sql.order_keys import ordinal, sort_key
from gquery.sql.parse import located
from gquery.sql.reshaped_rows import value_rows
from gquery.sql.scope import Calls, Scope
from gquery.sql.types import Parameters

_OF_TEXTS = (ProgrammingError, NotSupportedError, DataError, FileError)  # errors of what a query says
_QUOTED = re.compile(r"'(?:[^']|'')*'")
_ROWID = re.compile(rf"\b{ROWID}\b")


def _names_rowid(sql: str) -> bool:
    """Whether a text may name that column: in quotes it is none, as in the path of a file."""
    lower = sql.lower()
    return ROWID in lower and _ROWID.search(_QUOTED.sub("", lower)) is not None


class QueryScopes:
    """Binds the queries of one statement: its text (errors point into it), the catalog and the parameters."""

    def __init__(
        self,
        sql: str,
        catalog: Catalog,
        parameters: Parameters,
        slots: TextSlots | None = None,
        around: QueryScopes | None = None,
    ) -> None:
        """``slots``: where constants were cut out of the text. ``around``: what binds the query in which this one is a view."""
        self.sql, self.catalog, self.parameters, self.slots = sql, catalog, parameters, slots
        self.has_columns = True  # whether COLUMNS may stand in the statement
        self.calls: Calls = {}
        self.interned = Interned()
        self.drawing: dict[str, str] = {}
        self.names_rowid = _names_rowid(sql)
        self._visible: list[Ctes] = [Ctes()]
        self.asked: list[Query] = [] if around is None else around.asked
        self._views: dict[View, Named] = around._views if around is not None else {}
        self.distinct: dict[int, Column] = {} if around is None else around.distinct
        self.windows: set[int] = set() if around is None else around.windows

    def cte(self, cte: Cte) -> Query:
        """One use of a CTE."""
        if cte.working is not None:
            from gquery.sql.binding.recursion import working_use

            return working_use(cte.working)
        for other in cte.below()[:-1]:  # before it: a long chain is no deep recursion
            with suppress(*_OF_TEXTS):  # they come again where it is used, if it is
                self._bind_cte(other)
        return one_use(self._bind_cte(cte))

    def _bind_cte(self, cte: Cte) -> Named:
        if cte.failed is not None:
            raise cte.failed
        if cte.bound is None:
            try:
                if cte.is_recursive:
                    from gquery.sql.binding.recursion import recursive_query

                    query = recursive_query(self, cte)
                else:
                    query = self.query(cte.node, cte.parent, cte.visible)
                cte.bound = named(query, cte.name, cte.kept)
            except _OF_TEXTS as error:
                cte.failed = error
                raise
        return cte.bound

    def view(self, view: View, tree: exp.Expr) -> Query:
        """One use of a view. It is bound for itself: it sees neither CTEs nor names of the query that uses it."""
        if view not in self._views:
            inner = QueryScopes(view.sql, self.catalog.stored(view.schema), None, around=self)
            self._views[view] = named(inner.query(tree, None, Ctes()), view.name)
        return one_use(self._views[view])

    def is_view(self, definition: Definition) -> bool:
        """Whether it is that of a view, and of no CTE."""
        return any(v.definition is definition for v in self._views.values())

    @property
    def visible(self) -> Ctes:
        """The CTEs of the query that is being bound."""
        return self._visible[-1]

    def rests_on(self, asked: Sequence[Query]) -> None:
        """The statement depends on the answers of queries, as a relation does that it reads."""
        self.asked += [q for q in asked if all(q is not known for known in self.asked)]

    def ask(self, query: Query, node: exp.Expr) -> list[tuple[Any, ...]]:
        """The rows of a query that is run now, as another is made of what it gives: that one is for these constants alone."""
        if self.catalog.rows is None:
            error = BindError("a view rests on no answer of another query: the values of a PIVOT have to be named here")
            raise located(error, self.sql, node)
        if self.slots is not None:
            self.slots.pin()
        self.asked.append(query)
        return self.catalog.rows(query)

    def function(self, name: str) -> UserFunction | None:
        """The Python function that a name means."""
        return self.catalog.function(name)

    def subquery(self, node: exp.Expr, scope: Scope) -> Query:
        """A subquery inside an expression: it sees the scope around it, and the CTEs of the query being bound."""
        return self.query(node, scope, self._visible[-1])

    def query(self, node: exp.Expr, parent: Scope | None, ctes: Ctes) -> Query:
        """Any query, its plan and its result columns."""
        ctes = ctes.with_clause(node.args.get("with_"), parent, self.sql)
        self._visible.append(ctes)
        try:
            match node:
                case exp.Select():
                    return SelectBinder(self, node, parent, ctes).bind()
                case exp.SetOperation():
                    sides = [self.query(side, parent, ctes) for side in chain(node)]
                    return self._modified(combined(node, sides, self.sql), node, parent)
                case exp.Subquery() if holds_join(node):
                    inner = exp.select("*").from_(node.this)
                    return self._modified(self.query(inner, parent, ctes), node, parent)
                case exp.Subquery():
                    return self._modified(self.query(node.this, parent, ctes), node, parent)
                case exp.Values():
                    return self._modified(self.values(node, parent), node, parent)
                case exp.Table():
                    return self.query(exp.select("*").from_(node), parent, ctes)
                case exp.Paren():
                    return self.query(node.this, parent, ctes)
                case _:
                    raise located(NotSupportedError(f"not supported: {node.key.upper()}"), self.sql, node)
        finally:
            self._visible.pop()

    # ---- VALUES --------------------------------------------------------------------------------------------

    def values(self, node: exp.Expr, parent: Scope | None) -> Query:
        """VALUES lists: each column has the common type of its values."""
        binder = ExprBinder(self, Scope(parent), "VALUES")
        rows = [
            [binder.bind(e) for e in (r.expressions if isinstance(r, exp.Tuple) else [r])] for r in node.expressions
        ]
        if any(len(r) != len(rows[0]) for r in rows):
            raise located(BindError("the rows of VALUES differ in length"), self.sql, node)
        by_column = [_one_type(values) for values in zip(*rows, strict=True)]
        names = tuple(f"col{i}" for i in range(len(by_column)))
        columns = tuple(
            new_column(n, values[0].dtype, any(v.nullable for v in values))
            for n, values in zip(names, by_column, strict=True)
        )
        return Query(value_rows(columns, list(zip(*by_column, strict=True))), columns, names)

    # ---- ORDER BY and LIMIT of a query that is no SELECT -------------------------------------------------------------

    def _modified(self, query: Query, node: exp.Expr, parent: Scope | None) -> Query:
        plan = query.plan
        order = node.args.get("order")
        if order is not None:
            from gquery.sql.scope import ScopeRelation

            scope = Scope(parent, [ScopeRelation("", query.names, query.outputs)])
            keys: list[SortKey] = []
            for o in order.expressions:
                keys += [sort_key(e, o, self.sql) for e in self._order_exprs(o.this, query, scope)]
            plan = Sort(plan, tuple(keys)) if keys else plan
        plan = self.limited(plan, node)
        return query if plan is query.plan else Query(plan, query.outputs, query.names)

    def _order_exprs(self, node: exp.Expr, query: Query, scope: Scope) -> list[Expr]:
        if isinstance(node, exp.Var) and node.name.upper() == "ALL":
            return list(query.outputs)
        index = ordinal(node, len(query.outputs), "ORDER BY", self.sql)
        return [
            query.outputs[index] if index is not None else ExprBinder(self, scope, "ORDER BY").bind(sort_node(node))
        ]

    def limited(self, plan: Plan, node: exp.Expr) -> Plan:
        """The plan under the LIMIT and OFFSET (or FETCH) of a node, where it has them."""
        return limited(plan, node, self._without_columns, self.sql)

    def sampled(self, plan: Plan, node: exp.Expr) -> Plan:
        """The rows that the TABLESAMPLE or USING SAMPLE of a node takes, where it has one."""
        return sampled(plan, node.args.get("sample"), self._without_columns, self.sql)

    def _without_columns(self, node: exp.Expr, clause: str) -> Expr:
        return ExprBinder(self, Scope(), clause).bind(node)


def _one_type(values: Sequence[Expr]) -> list[Expr]:
    """A column of VALUES: a constant text takes on the type of the values before it, and is a text where there are none."""
    first = next((v for v in values if v.dtype != NULL), None)
    if first is not None and is_text_literal(first) and any(v.dtype not in (VARCHAR, JSON, UUID, NULL) for v in values):
        names = " and ".join(dict.fromkeys(str(v.dtype) for v in values if v.dtype != NULL))
        raise BindError(f"cannot mix values of type {names} in VALUES; an explicit CAST is required")
    return unified(values, "VALUES")
