"""Scopes: which columns a name can mean at some place of a query.

A scope holds the relations of one FROM clause; ``parent`` is that of the query around it, where names that are not
found here are looked for (correlation). In a grouped query expressions are bound over the rows before grouping and then
mapped to the groups' columns; a subquery inside one must see the groups at once, so its names pass through ``grouped``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from functools import lru_cache
from typing import Any

from sqlglot import exp

from gquery.errors import BindError, did_you_mean
from gquery.expression.expr import Column, Expr
from gquery.expression.frozen import frozen_open
from gquery.functions.structs import fields, struct
from gquery.runtime.records import cached_property, dataclass, replace
from gquery.sql.grammar.tokens import marked

_OWN = marked("")  # begins names of columns that a statement adds for itself


@lru_cache(maxsize=256)
def _places(names: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
    """By name in lower case where it stands: the names of a table are asked for by each query over it."""
    found: dict[str, tuple[int, ...]] = {}
    for n, name in enumerate(names):
        low = name.lower()
        found[low] = (*found.get(low, ()), n)
    return found


@frozen_open
class ScopeRelation:
    """One entry of a FROM clause: its alias, and its columns under the names that it gives them."""

    alias: str
    names: tuple[str, ...]
    columns: tuple[Column, ...]
    schema: str = ""  # of a table that has no other name, in lower case
    hidden: int = 0  # so many of the last columns are none of ``*``

    @property
    def shown(self) -> list[tuple[str, Column]]:
        """The columns of ``*``, with their names."""
        pairs = list(zip(self.names, self.columns, strict=True))
        return pairs[: len(pairs) - self.hidden]

    @cached_property
    def places(self) -> dict[str, tuple[int, ...]]:
        """Where the columns of each name in lower case stand."""
        return _places(self.names)

    def named(self, low: str) -> list[Column]:
        """The columns of a name in lower case."""
        return [self.columns[n] for n in self.places.get(low, ())]

    def nullable(self) -> ScopeRelation:
        """The relation on the side of an outer join that NULLs may fill."""
        return replace(self, columns=tuple(Column(c.id, c.name, c.dtype, True) for c in self.columns))


@frozen_open
class Merged:
    """A column that USING or NATURAL made of several: its name, its value, and the columns that it hides."""

    name: str
    expr: Expr
    hides: frozenset[int]


@dataclass
class Scope:
    """The relations that are visible, those of the query around it, and columns merged by USING."""

    parent: Scope | None = None
    relations: list[ScopeRelation] = field(default_factory=list)
    merged: list[Merged] = field(default_factory=list)
    grouped: Callable[[Expr], Expr] | None = None  # set while subqueries of a grouped query are bound
    written: Callable[[exp.Expr], Column | None] | None = None  # the key of a grouped query that is written as a node

    def resolve(self, name: str, table: str | None) -> Expr:
        """The expression that a name means here or in a query around, a row of its relation where no column has it; BindError
        for none or several."""
        found = self.search(name, table, rows=True)
        if found is None:
            raise self._not_found(name, table)
        return found

    def search(self, name: str, table: str | None, schema: str = "", rows: bool = False) -> Expr | None:
        """The same; None where there is none. With ``schema`` (in lower case) of a table of that schema alone, with ``rows``
        those of relations too."""
        scope: Scope | None = self
        while scope is not None:
            found = scope.meant(name) if rows and table is None else scope.find(name, table, schema)
            if found is not None:
                return found if scope is self or scope.grouped is None else scope.grouped(found)
            scope = scope.parent
        return None

    def search_row(self, low: str, schema: str) -> Expr | None:
        """A row of a table of a schema, here or in a query around (both names in lower case)."""
        for scope in self.chain():
            if (found := scope.row(low, schema)) is not None:
                return found if scope is self or scope.grouped is None else scope.grouped(found)
        return None

    def knows(self, name: str) -> bool:
        """Whether a column of that name is here or in a query around."""
        return any(scope.find(name, None) is not None for scope in self.chain())

    def find(self, name: str, table: str | None, schema: str = "") -> Expr | None:
        """The expression that a name means in this scope alone; None for none, BindError for several."""
        low = name.lower()
        if table is None and self.merged:
            merged = next((m for m in self.merged if m.name.lower() == low), None)
            if merged is not None:
                others = [c for c in self._named(low, None) if c.id not in merged.hides]
                if others:
                    raise self._ambiguous(name)
                return merged.expr
        found = self._named(low, table, schema)
        if len(found) > 1:
            raise self._ambiguous(name)
        return found[0] if found else None

    def meant(self, name: str, rows: bool = True) -> Expr | None:
        """What a name without a table means in this scope alone: a column, else with ``rows`` a row of a relation."""
        found = self.find(name, None)
        return self.row(name.lower()) if found is None and rows else found

    def row(self, low: str, schema: str = "") -> Expr | None:
        """A row of a relation of this scope as a struct, by the relation's name in lower case, where no column has it."""
        found = next((r for r in self.relations if r.alias.lower() == low and schema in ("", r.schema)), None)
        fields = [(n, c) for n, c in found.shown if not n.startswith(_OWN)] if found is not None else []
        return struct(fields) if fields else None

    def _named(self, low: str, table: str | None, schema: str = "") -> list[Column]:
        found: list[Column] = []
        if table is None and not schema:  # most
            for r in self.relations:
                if (places := r.places.get(low)) is not None:
                    found += [r.columns[n] for n in places]
            return found
        alias = None if table is None else table.lower()
        for r in self.relations:
            if (alias is None or r.alias.lower() == alias) and (not schema or r.schema == schema):
                found += r.named(low)
        return found

    def _ambiguous(self, name: str) -> BindError:
        found = [r for r in self.relations if r.named(name.lower())]
        several = len({r.alias.lower() for r in found}) < len(found)
        where = [f"{r.schema + '.' if several and r.schema else ''}{r.alias}.{name}" for r in found]
        return BindError(f"column {name!r} is ambiguous: it may be {' or '.join(where)}")

    def _not_found(self, name: str, table: str | None) -> BindError:
        if table is not None:
            aliases = [r.alias for s in self.chain() for r in s.relations if r.alias]
            relation = next((r for s in self.chain() for r in s.relations if r.alias.lower() == table.lower()), None)
            if relation is None:
                return BindError(f"table {table!r} is not in the FROM clause.{did_you_mean(table, aliases)}")
            return BindError(f"table {table!r} has no column {name!r}.{did_you_mean(name, relation.names)}")
        names = [n for s in self.chain() for r in s.relations for n in r.names]
        return BindError(f"column {name!r} is not in the FROM clause.{did_you_mean(name, names)}")

    def chain(self) -> Iterator[Scope]:
        """This scope and those around it."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def star(self, table: str | None = None, schema: str = "") -> list[tuple[str, Expr]]:
        """What ``*`` or ``table.*`` stands for: names and expressions; merged columns come once, for ``*``."""
        if table is not None:
            found = [r for r in self.relations if r.alias.lower() == table.lower() and schema in ("", r.schema)]
            if len(found) > 1:
                raise BindError(f"{table}.* is ambiguous: it may be {' or '.join(f'{r.schema}.{table}.*' for r in found)}")
            if not found:
                struct = self.search(table, None)
                if struct is None or not struct.dtype.is_struct:
                    raise self._not_found("*", table)
                return fields(struct)
            return [pair for r in found for pair in r.shown]
        result: list[tuple[str, Expr]] = []
        done: set[int] = set()
        for r in self.relations:
            for name, column in r.shown:
                merged = next((m for m in self.merged if column.id in m.hides), None)
                if merged is None:
                    result.append((name, column))
                elif not done & merged.hides:
                    done |= merged.hides
                    result.append((merged.name, merged.expr))
        return result

    def spelling(self, name: str) -> str:
        """A column's name as its table has it; queries may write it in another letter case."""
        low = name.lower()
        for scope in self.chain():
            if any(m.name.lower() == low and not isinstance(m.expr, Column) for m in scope.merged):
                return name  # of a FULL JOIN: it is no column of either side
            for r in scope.relations:
                if r.named(low):
                    return next(n for n in r.names if n.lower() == low)
        return name

    def own_ids(self) -> set[int]:
        """The ids of the columns of this scope's relations."""
        return {c.id for r in self.relations for c in r.columns}


Calls = dict[int, tuple[Scope, Mapping[str, exp.Expr], Any]]
"""By the number of a macro's call, what names mean where it stands: a scope, the aliases of the SELECT list, and what collects
aggregates there (`binding.expr.AggregateCollector`, or None)."""
