"""What a catalog has names for beside tables: views, schemas, macros."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from sqlglot import exp

from gquery.errors import CatalogError, did_you_mean
from gquery.expression.expr import Expr
from gquery.runtime.records import dataclass
from gquery.sql.noted import note
from gquery.sql.schemas import MAIN, Schemas

if TYPE_CHECKING:
    from gquery.sql.sequences import Sequence, Sequences

_versions = itertools.count(1)  # of all catalogs: threads that change one at once get numbers of their own


MACRO = "gquery macro"  # with the name of a call, at what it stands for
CALL = "gquery call"  # the number of the call whose expansion a node is
ARGUMENT = "gquery argument"  # that of the call among whose arguments a column or an aggregate stands


def unmarked(node: exp.Expr) -> exp.Expr:
    """An argument of a macro's call without marks, for the binder of the call."""
    made = node.copy()
    for inner in made.walk():
        if inner._meta is not None:
            inner._meta = {k: v for k, v in inner._meta.items() if k != ARGUMENT}
    return made


@dataclass(frozen=True)
class View:
    """A named query, with names for its columns where CREATE VIEW gave them."""

    name: str
    sql: str
    columns: tuple[str, ...] = ()
    schema: str = MAIN  # in which its names without one are looked for first


@dataclass(frozen=True, eq=False)
class Macro:
    """A body of a macro: the tree of an expression, or with ``is_table`` of a query, in which names are those of parameters.
    ``defaults``: the trees of those that have one, by name in lower case. No tree is changed."""

    name: str
    parameters: tuple[str, ...]
    defaults: dict[str, exp.Expr]
    body: exp.Expr
    is_table: bool

    def __str__(self) -> str:
        shown = [f"{p} := ..." if p.lower() in self.defaults else p for p in self.parameters]
        return f"{self.name}({', '.join(shown)})"


@dataclass
class Macros:
    """The macros of a connection. ``entries``, by name in lower case, is another dictionary after each change."""

    entries: dict[str, tuple[Macro, ...]] = field(default_factory=dict)

    def create(self, name: str, bodies: tuple[Macro, ...], replace: bool) -> None:
        """Adds a macro. One that gives tables stands beside one of that name that gives values. CatalogError where there is one
        of its kind and ``replace`` is not asked for."""
        others = tuple(m for m in self.entries.get(name.lower(), ()) if m.is_table != bodies[0].is_table)
        if not replace and len(others) < len(self.entries.get(name.lower(), ())):
            raise CatalogError(f"macro {name!r} already exists")
        self.entries = {**self.entries, name.lower(): others + bodies}

    def drop(self, name: str, if_exists: bool) -> bool:
        """Removes a macro; whether there was one. CatalogError where there is none, unless ``if_exists``."""
        if name.lower() not in self.entries and not if_exists:
            raise CatalogError(f"macro {name!r} does not exist.{did_you_mean(name, tuple(self.entries))}")
        left = {n: bodies for n, bodies in self.entries.items() if n != name.lower()}
        is_other, self.entries = len(left) < len(self.entries), left
        return is_other


@dataclass
class Definitions:
    """See above."""

    on_change: Callable[[int], None] | None = field(default=None, init=False)  # told of each new version
    version: int = field(default=0, init=False)
    schemas: Schemas = field(default_factory=Schemas, init=False)
    variables: dict[str, Expr] = field(default_factory=dict, init=False)  # of SET VARIABLE, by name in lower case
    _sequences: Sequences | None = field(default=None, init=False)
    _macros: Macros = field(default_factory=Macros, init=False)

    @property
    def sequences(self) -> Sequences:
        """All sequences."""
        if self._sequences is None:
            from gquery.sql.sequences import Sequences

            self._sequences = Sequences()
        return self._sequences

    @property
    def has_sequences(self) -> bool:
        return self._sequences is not None and bool(self._sequences.entries)

    def create_sequence(self, sequence: Sequence, replace: bool, if_not_exists: bool) -> None:
        """Adds a sequence; see `Sequences.create`."""
        self.sequences.create(sequence, replace, if_not_exists)
        self._count_up()

    def drop_sequence(self, name: str, if_exists: bool) -> None:
        """Removes a sequence; see `Sequences.drop`."""
        self.sequences.drop(name, if_exists)
        self._count_up()

    def _count_up(self) -> None:
        self.version = next(_versions)
        if self.on_change is not None:
            self.on_change(self.version)

    def macros(self) -> Mapping[str, tuple[Macro, ...]]:
        """All macros, by name in lower case: a statement without a call of one is another when there is one of that name."""
        note(("macros", ""), self._macros.entries)
        return self._macros.entries

    def create_macro(self, name: str, bodies: tuple[Macro, ...], replace: bool) -> None:
        """Adds a macro; see `Macros.create`."""
        self._macros.create(name, bodies, replace)
        self._count_up()

    def drop_macro(self, name: str, if_exists: bool) -> None:
        """Removes a macro; see `Macros.drop`."""
        if self._macros.drop(name, if_exists):
            self._count_up()

    def set_variable(self, name: str, value: Expr | None) -> None:
        """Gives a variable a value, or takes it away. No transaction takes that back, as in DuckDB."""
        if value is None:
            self.variables.pop(name.lower(), None)
        else:
            self.variables[name.lower()] = value
        self._count_up()

    def has_schema_of(self, name: str) -> bool:
        """Whether the schema of a table's name is there."""
        try:
            self.schemas.new(name)
        except CatalogError:
            return False
        return True

    def create_schema(self, name: str, if_not_exists: bool) -> None:
        """Makes a schema; see `Schemas.create`."""
        self.schemas.create(name, if_not_exists)
        self._count_up()

    def use(self, name: str) -> None:
        """Makes a schema that in which names without one are looked for first, and made."""
        self.schemas.current = self.schemas.get(name).lower()
        self._count_up()
