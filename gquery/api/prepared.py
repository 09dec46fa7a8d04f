"""Prepared statements of a connection: texts under a name. EXECUTE asks such a text with its parameters, so that plans and
templates are kept for it as for any other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gquery.errors import CatalogError, InterfaceError, did_you_mean

if TYPE_CHECKING:
    from gquery.sql.statement import Prepare

Named = dict[str, Any]


class PreparedTexts:
    """The statements that were prepared, by name without letter case."""

    def __init__(self) -> None:
        self._texts: dict[str, Prepare] = {}

    def keep(self, statement: Prepare) -> None:
        """Takes a statement, in place of one that has the name."""
        self._texts[statement.name.lower()] = statement

    def drop(self, name: str) -> None:
        """Forgets a statement; one that is not there was forgotten before."""
        self._texts.pop(name.lower(), None)

    def call(self, name: str, values: Sequence[Any], names: Sequence[str]) -> tuple[str, Named]:
        """The text of a statement, and its parameters by name or number."""
        found = self._texts.get(name.lower())
        if found is None:
            known = [p.name for p in self._texts.values()]
            raise CatalogError(f"there is no prepared statement {name!r}.{did_you_mean(name, known)}")
        given = {own or str(n): value for n, (own, value) in enumerate(zip(names, values, strict=True), 1)}
        missing = [f"${p}" for p in found.parameters if p not in given]
        if missing:
            raise InterfaceError(f"EXECUTE {name}: no value is given for {', '.join(missing)}")
        more = [f"${p}" for p in given if p not in found.parameters]
        if more:
            raise InterfaceError(f"EXECUTE {name}: the statement has no parameter {', '.join(more)}")
        return found.text, given
