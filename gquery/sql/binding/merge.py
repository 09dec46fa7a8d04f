"""MERGE INTO: the query of all rows that a table is to have, as UPDATE's, and what is done with each: 'UPDATE', 'INSERT' or
'DELETE', of rows that go; NULL of those that stay as they are.

Each row of the table meets rows of the source, and what the first clause says whose condition a pair of them fulfils is done
with it; a clause without a condition is the last one, wherever it stands. Of several pairs one is taken, as UPDATE with FROM
does. Rows of the source that no row of the table meets are put behind. The source is a materialized CTE, so that both parts read
the same rows.

    SELECT changed, 'UPDATE'/'DELETE'/NULL FROM table LEFT JOIN LATERAL (source's row and what it does, LIMIT 1)
    UNION ALL SELECT inserted, 'INSERT' FROM source WHERE NOT EXISTS (...)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import cast

from sqlglot import exp

from gquery.columns.table import TableSource
from gquery.errors import BindError, NotSupportedError, did_you_mean, point_at
from gquery.planner.logical.nodes import Query
from gquery.runtime.records import dataclass
from gquery.sql.binding.changes_from import all_columns
from gquery.sql.binding.constraints import default_tree
from gquery.sql.binding.forms import is_true, result_of
from gquery.sql.binding.limits import ROWID
from gquery.sql.binding.query import QueryScopes
from gquery.sql.constraints import Constraints
from gquery.sql.ctes import Ctes
from gquery.sql.grammar.merge import Place, When
from gquery.sql.grammar.tokens import Form, marked
from gquery.sql.lexer import PARAMETER, lex
from gquery.sql.macros import expand
from gquery.sql.named import column_named, identifier, table_named
from gquery.sql.pieces import parsed_piece
from gquery.sql.statement import ChangeTable

_SOURCE, _FOUND, _ACTION, _DONE = (marked(n) for n in ("source", "found", "action", "done"))
Values = dict[int, exp.Expr]
"""New values of a row, by the places of their columns."""


@dataclass(frozen=True)
class _Clause:
    number: int  # 0 of one that does nothing
    condition: exp.Expr | None
    values: Values
    goes: bool


def merged(form: Form, tree: exp.Expr, binder: QueryScopes, table: TableSource, own: Constraints) -> ChangeTable:
    """What a MERGE makes of a table."""
    query, names = _Merge(form, tree, binder, table, own).query(), tuple(table.schema.names)
    return ChangeTable(form.name, table, query, own, True, changed=names)


class _Merge:
    def __init__(self, form: Form, tree: exp.Expr, binder: QueryScopes, table: TableSource, own: Constraints) -> None:
        self.form, self.binder, self.own = form, binder, own
        self.table, self.fields = table, table.schema.fields
        self.options = dict(form.options)
        source = self._piece(cast(Place, self.options["source"]), "SELECT * FROM ").args["from_"].this
        self.alias, self.other = form.text, source.alias_or_name or _SOURCE
        if self.alias.lower() == self.other.lower():
            raise BindError(f"table {self.alias!r} is there twice; give one an alias")
        rows = exp.CTE(this=exp.select("*").from_(source), alias=exp.TableAlias(this=identifier(_SOURCE)), materialized=True)
        given = tree.args.get("with_")
        self.ctes = exp.With(expressions=[*(given.expressions if given is not None else ()), rows])
        self.ctes.set("recursive", given.args.get("recursive") if given is not None else None)
        self.source_names = binder.query(self._with(exp.select("*").from_(table_named(_SOURCE))), None, Ctes()).names
        if binder.names_rowid and self._has_rowid(source):
            rows.this.select(column_named(ROWID), copy=False)
        said = cast(tuple[When, ...], self.options["clauses"])
        self.clauses: dict[str, list[_Clause]] = {"matched": [], "target": [], "source": []}
        for n, c in enumerate(said, 1):
            self.clauses[c.of].append(self._clause(n, c))
        for of, found in self.clauses.items():  # as in DuckDB, what has no condition stands behind what has one
            found.sort(key=lambda c: c.condition is None)
            if sum(c.condition is None for c in found) > 1:
                words = {"matched": "MATCHED", "target": "NOT MATCHED", "source": "NOT MATCHED BY SOURCE"}[of]
                raise BindError(f"MERGE has several clauses WHEN {words} without a condition")

    def query(self) -> Query:
        """The rows, and what is done with them."""
        self._check_names()
        changed: exp.Expr = self._changed(self._met())
        if self.clauses["target"]:
            changed = exp.Union(this=changed, expression=self._inserted(), distinct=False)
        return result_of(self.binder, self._with(changed))

    def _has_rowid(self, source: exp.Expr) -> bool:
        """Whether the source is a table with numbers of its rows beside its columns."""
        if not isinstance(source, exp.Table) or ROWID in map(str.lower, self.source_names):
            return False
        try:
            self.binder.query(self._with(exp.select(column_named(ROWID)).from_(source.copy())), None, Ctes())
        except BindError:
            return False
        return True

    # ---- pieces of the text ------------------------------------------------------------------------------------------

    def _piece(self, place: Place, head: str = "SELECT ") -> exp.Expr:
        parsed = parsed_piece(self.binder.sql, *place, head)
        assert parsed.tokens is not None
        words = [w for kind, w in zip(parsed.tokens.kinds, parsed.tokens.words, strict=True) if kind == PARAMETER]
        if "?" in words:
            self._count_on(parsed.nodes, words, place[0])
        expand(parsed, self.binder.catalog)
        return parsed.tree

    def _count_on(self, nodes: Sequence[exp.Expr], words: Sequence[str], start: int) -> None:
        """Gives each ``?`` of a piece the number that it has in the statement."""
        if any(w != "?" for w in words):
            at = point_at(self.binder.sql, start)
            raise NotSupportedError(f"not supported: ? beside $1 or $name in one part of MERGE\n{at}")
        tokens = lex(self.binder.sql)
        before = sum(w == "?" and s < start for w, s in zip(tokens.words, tokens.starts, strict=True))
        for node in nodes:
            if isinstance(node, exp.Placeholder):
                node.set("this", str(int(node.name) + before))

    def _expression(self, place: Place) -> exp.Expr:
        (found,) = self._piece(place).expressions
        return exp.Paren(this=found.unalias())

    def _on(self) -> exp.Expr:
        if "on" in self.options:
            return self._expression(cast(Place, self.options["on"]))
        names = cast(tuple[str, ...], self.options["using"])
        return exp.and_(*(exp.EQ(this=column_named(n, self.alias), expression=column_named(n, self.other)) for n in names))

    def _clause(self, number: int, said: When) -> _Clause:
        condition = None if said.condition is None else is_true(self._expression(said.condition))
        return _Clause(
            number if said.action != "nothing" else 0, condition, self._values(said), said.action == "delete"
        )

    def _values(self, said: When) -> Values:
        """What a clause puts into columns: for INSERT into all of them."""
        if said.action not in ("update", "insert"):
            return {}
        names = [f.name for f in self.fields]
        if said.by in ("position", "name"):
            given: list[exp.Expr | None] = [column_named(n, self.other) for n in self.source_names]
            names = list(self.source_names) if said.by == "name" else names
        else:
            given = [None if v is None else self._expression(v) for v in said.values]
            names = list(said.names) if said.by == "values" else names
        if len(names) != len(given):
            raise BindError(f"MERGE: {said.action.upper()} of {len(names)} columns has {len(given)} values")
        places = {f.name.lower(): n for n, f in enumerate(self.fields)}
        values: Values = {}
        for name, value in zip(names, given, strict=True):
            place = places.get(name.lower())
            if place is None:
                hint = did_you_mean(name, tuple(f.name for f in self.fields))
                raise BindError(f"MERGE: table {self.form.name!r} has no column {name!r}.{hint}")
            if place in values:
                raise BindError(f"MERGE names column {name!r} twice")
            values[place] = self._typed(place, value)
        if said.action == "insert":
            values = {n: values.get(n) or self._typed(n, None) for n in range(len(self.fields))}
        return values

    def _typed(self, place: int, value: exp.Expr | None) -> exp.Expr:
        """A value as the column has it, None for its default."""
        field = self.fields[place]
        value = default_tree(self.own, field.name, self.binder.catalog) if value is None else value
        return exp.Cast(this=value, to=exp.DataType.build(str(field.dtype), dialect="duckdb"))

    # ---- queries -----------------------------------------------------------------------------------------------------

    def _with(self, query: exp.Expr) -> exp.Expr:
        query.set("with_", self.ctes.copy())
        return query

    def _target(self) -> exp.Expr:
        return exp.alias_(table_named(self.form.name), self.alias, quoted=True, table=True)

    def _rows(self) -> exp.Expr:
        return exp.alias_(table_named(_SOURCE), self.other, quoted=True, table=True)

    def _check_names(self) -> None:
        """Names in clauses of pairs are those of a join, where one that both tables have is ambiguous."""
        used = [e for c in self.clauses["matched"] for e in (c.condition, *c.values.values()) if e is not None]
        outputs = [e.copy() for e in used] or [exp.Literal.number(1)]
        query = exp.Select(expressions=outputs).from_(self._target()).join(self._rows(), on=self._on())
        self.binder.query(self._with(query), None, Ctes())

    def _met(self) -> exp.Select:
        """All rows of the table, each with what one row of the source that it meets does with it: the number of the clause, and
        the new values. Without a number no row of the source meets it."""
        clauses = self.clauses["matched"]
        action = _chosen(clauses, _number_of, exp.Literal.number(0))
        outputs: list[exp.Expr] = [exp.alias_(action, _ACTION, quoted=True)]
        for n in sorted({n for c in clauses for n in c.values}):
            own = column_named(self.fields[n].name, self.alias)
            new = _chosen(clauses, partial(_value_of, n, own), own)
            outputs.append(exp.alias_(new, f"{_FOUND}{n}", quoted=True))
        acts = exp.GT(this=action.copy(), expression=exp.Literal.number(0))
        one = exp.Select(expressions=outputs).from_(self._rows()).where(self._on())
        one = one.order_by(exp.Ordered(this=acts, desc=True)) if self.clauses["source"] else one.where(acts)
        found = exp.Lateral(this=exp.Subquery(this=one.limit(1)), alias=exp.TableAlias(this=identifier(_FOUND)))
        columns = all_columns(self.table, self.alias, self.binder) if self.clauses["source"] else [exp.Star()]
        rows = exp.Select(expressions=columns).from_(self._target())
        rows.set("joins", [exp.Join(this=found, side="LEFT", on=exp.true())])
        return rows

    def _changed(self, met: exp.Select) -> exp.Select:
        """The rows of the table with their new values, and what is done with them."""
        matched, alone = self.clauses["matched"], self.clauses["source"]
        acts = exp.GT(this=column_named(_ACTION), expression=exp.Literal.number(0))
        is_alone = exp.Is(this=column_named(_ACTION), expression=exp.Null())
        number = _chosen(alone, _number_of, exp.Literal.number(0))
        number = exp.Case(ifs=[exp.If(this=is_alone.copy(), true=number)], default=column_named(_ACTION))
        outputs: list[exp.Expr] = []
        for n, f in enumerate(self.fields):
            own = column_named(f.name, self.alias)
            ifs = []
            if any(n in c.values for c in matched):
                ifs.append(exp.If(this=acts.copy(), true=column_named(f"{_FOUND}{n}")))
            if any(n in c.values for c in alone):
                new = _chosen(alone, partial(_value_of, n, own), own)
                ifs.append(exp.If(this=is_alone.copy(), true=new))
            value = exp.Case(ifs=ifs, default=own) if ifs else own
            outputs.append(exp.alias_(value, f.name, quoted=True))
        gone = [exp.Literal.number(c.number) for c in (*matched, *alone) if c.goes]
        done = [exp.If(this=exp.In(this=number.copy(), expressions=gone), true=exp.Literal.string("DELETE"))] if gone else []
        done.append(exp.If(this=exp.GT(this=number, expression=exp.Literal.number(0)), true=exp.Literal.string("UPDATE")))
        outputs.append(exp.alias_(exp.Case(ifs=done), _DONE, quoted=True))
        return exp.Select(expressions=outputs).from_(met.subquery(identifier(self.alias), copy=False))

    def _inserted(self) -> exp.Select:
        """The new rows, and what is done with them."""
        clauses = self.clauses["target"]
        outputs: list[exp.Expr] = []
        for n, f in enumerate(self.fields):
            value = _chosen([c for c in clauses if c.number], partial(_value_of, n, exp.Null()), None)
            outputs.append(exp.alias_(value, f.name, quoted=True))
        outputs.append(exp.alias_(exp.Literal.string("INSERT"), _DONE, quoted=True))
        known = exp.Select(expressions=[exp.Literal.number(1)]).from_(self._target()).where(self._on())
        number = _chosen(clauses, _number_of, exp.Literal.number(0))
        rows = exp.Select(expressions=outputs).from_(self._rows()).where(exp.Not(this=exp.Exists(this=known)))
        return rows.where(exp.GT(this=number, expression=exp.Literal.number(0)))


def _number_of(clause: _Clause) -> exp.Expr:
    return exp.Literal.number(clause.number)


def _value_of(place: int, own: exp.Expr, clause: _Clause) -> exp.Expr:
    """What a clause puts into a column; the column's own value where it says nothing of it."""
    return clause.values.get(place, own)


def _chosen(clauses: Sequence[_Clause], value: Callable[[_Clause], exp.Expr], default: exp.Expr | None) -> exp.Expr:
    """A value of the first clause whose condition is true."""
    ifs = [exp.If(this=(c.condition or exp.true()).copy(), true=value(c).copy()) for c in clauses]
    otherwise = exp.Null() if default is None else default.copy()
    return exp.Case(ifs=ifs, default=otherwise) if ifs else otherwise
