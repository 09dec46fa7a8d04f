"""Expressions of several columns, as Polars has them: ``col("a", "b")``, ``col("^x.*$")``, ``all()``, and names made of names.

Such an expression holds a column that is none yet. A method of a relation knows the columns, and makes an expression of each:
`expanded`. It has the column's name, unless ``.name`` says otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from gquery.api.dataframe.expression import Expression, merged
from gquery.errors import BindError, InterfaceError, did_you_mean
from gquery.runtime.arguments import checked

_SEVERAL, _BUILD = "several", "build"  # arguments of nodes that stay in no tree which is bound
Build = Callable[[Sequence[Expression]], Expression]


@dataclass(frozen=True)
class Selector:
    """Columns by names and patterns, all for none of them, but for some."""

    names: tuple[str, ...] = ()
    but: tuple[str, ...] = ()

    def chosen(self, columns: Sequence[str]) -> list[str]:
        """Those of a relation's columns; BindError for a name that is none of them."""
        found: list[str] = []
        for name in self.names or ("*",):
            new = _named(name, columns)
            if not new and not is_pattern(name):
                raise BindError(f"the relation has no column {name!r}.{did_you_mean(name, columns)}")
            found += [c for c in new if c not in found]
        gone = {c for name in self.but for c in _named(name, columns)}
        return [c for c in found if c not in gone]


class Renamed(Expression):
    """An expression that is named after the column that it is made of."""

    __slots__ = ("renaming",)

    def __init__(self, of: Expression, renaming: Callable[[str], str]) -> None:
        super().__init__(of.node, of.names)
        self.renaming = renaming


@checked
class NameMethods:
    """Names of columns: ``all().sum().name.suffix("_sum")``."""

    def __init__(self, of: Expression) -> None:
        self._of = of

    def keep(self) -> Expression:
        """The name of the column that this is made of."""
        return Renamed(self._of, lambda name: name)

    def prefix(self, prefix: str) -> Expression:
        """That name behind another text."""
        return Renamed(self._of, lambda name: prefix + name)

    def suffix(self, suffix: str) -> Expression:
        """That name before another text."""
        return Renamed(self._of, lambda name: name + suffix)

    def to_lowercase(self) -> Expression:
        """That name in small letters."""
        return Renamed(self._of, str.lower)

    def to_uppercase(self) -> Expression:
        """That name in capital letters."""
        return Renamed(self._of, str.upper)

    def replace(self, pattern: str, value: str, literal: bool = False) -> Expression:
        """That name with each match of a pattern, or each place of a text, replaced."""
        return Renamed(self._of, lambda n: n.replace(pattern, value) if literal else re.sub(pattern, value, n))

    def map(self, function: Callable[[str], str]) -> Expression:
        """What a function makes of that name."""
        return Renamed(self._of, function)


def is_pattern(name: str) -> bool:
    """Whether a name stands for all columns that match it."""
    return name == "*" or (name[:1] == "^" and name[-1:] == "$")


def several(names: Sequence[str]) -> Expression:
    """The columns of these names; all for none."""
    return _marker(Selector(() if "*" in names else tuple(names)))


def without(e: Expression, names: Sequence[str]) -> Expression:
    """The columns of an expression but for some; InterfaceError for any other expression."""
    known = e.node.args.get(_SEVERAL)
    if not isinstance(known, Selector):
        raise InterfaceError(f"exclude leaves out columns of all() or col(...) with several names, not of {e!r}")
    return _marker(replace(known, but=(*known.but, *names)))


def horizontal(given: Sequence[Expression], build: Build) -> Expression:
    """What ``build`` makes of expressions beside each other, one for each column where one stands for several."""
    if not any(_markers(e.node) for e in given):
        return build(given)
    node = exp.Anonymous(this="columns", expressions=[e.node for e in given], **{_BUILD: build})
    return Expression(node, merged(e.names for e in given))


def expanded(e: Expression, columns: Sequence[str]) -> list[Expression]:
    """An expression of each column that it stands for; the same alone where it stands for itself."""
    built = _built(e.node, columns)
    markers = _markers(built)
    renaming = e.renaming if isinstance(e, Renamed) else None
    if not markers:
        return [_named_after(Expression(built, e.names), renaming) if renaming or built is not e.node else e]
    chosen = [m.args[_SEVERAL].chosen(columns) for m in markers]
    if len({len(c) for c in chosen}) > 1:
        raise InterfaceError(
            f"{e!r} stands for columns of {' and of '.join(str(len(c)) for c in chosen)} names at once"
        )
    if isinstance(built, exp.Alias) and len(chosen[0]) > 1:
        raise InterfaceError(f"{len(chosen[0])} columns cannot all be called {built.alias!r}: use .name.suffix(...)")
    made = []
    for at, root in enumerate(chosen[0]):
        node = built.copy()
        for marker, names in zip(_markers(node), chosen, strict=True):
            column = exp.Column(this=exp.Identifier(this=names[at], quoted=True))
            if marker is node:
                node = column
            else:
                marker.replace(column)
        one = Expression(node, e.names)
        is_named = isinstance(node, exp.Alias | exp.Ordered | exp.Column)
        made.append(one.alias(renaming(root)) if renaming else one if is_named else one.alias(root))
    return made


def _marker(selector: Selector) -> Expression:
    shown = ", ".join(selector.names) or "*"
    return Expression(exp.Column(this=exp.Identifier(this=shown, quoted=True), **{_SEVERAL: selector}))


def _markers(node: exp.Expr) -> list[Any]:
    return [n for n in node.find_all(exp.Column) if _SEVERAL in n.args]


def _built(node: exp.Expr, columns: Sequence[str]) -> exp.Expr:
    """A tree in which what stands beside each other is expanded and put together."""
    if not any(_BUILD in n.args for n in node.walk()):
        return node
    node = node.copy()
    for call in reversed([n for n in node.walk() if _BUILD in n.args]):  # inner ones first
        items = [e for n in call.expressions for e in expanded(Expression(n), columns)]
        bare = [Expression(e.node.this) if isinstance(e.node, exp.Alias) else e for e in items]
        if not bare:
            raise InterfaceError("no column is left to compute with")
        build: Build = call.args[_BUILD]
        made = build(bare).node
        if call is node:
            return made
        call.replace(made)
    return node


def _named_after(e: Expression, renaming: Callable[[str], str] | None) -> Expression:
    if renaming is None:
        return e
    column = e.node.find(exp.Column)
    if column is None:
        raise InterfaceError(f"{e!r} is made of no column whose name it could have")
    return e.alias(renaming(column.name))


def _named(name: str, columns: Sequence[str]) -> list[str]:
    if name == "*":
        return list(columns)
    if is_pattern(name):
        try:
            return [c for c in columns if re.search(name, c)]
        except re.error as error:
            raise InterfaceError(f"{name!r} is no regular expression: {error}") from None
    return [c for c in columns if c.lower() == name.lower()]
