"""Macros as a catalog keeps them: by name, the bodies that stand for a call."""

from __future__ import annotations

from dataclasses import field

from sqlglot import exp

from gquery.errors import CatalogError, did_you_mean
from gquery.runtime.records import dataclass

CALL = "gquery call"  # the number of the call whose expansion a node is
ARGUMENT = "gquery argument"  # that of the call among whose arguments a column stands


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
