"""MERGE INTO: sqlglot sees nothing of it. A `Form` has its clauses, and where their expressions begin and end in the text
(`gquery.sql.binding.merge`)."""

from __future__ import annotations

from collections.abc import Callable

from gquery.runtime.records import dataclass
from gquery.sql.grammar.constraints import ConstraintReader
from gquery.sql.grammar.tokens import Form
from gquery.sql.lexer import END

Place = tuple[int, int]
"""Where a piece of a text begins, and the place behind it."""


@dataclass(frozen=True)
class When:
    """A clause: ``of`` is "matched", "target" (the source has a row that the table has not) or "source" (the other way round),
    ``action`` "update", "insert", "delete" or "nothing". ``by``: "values", or how the columns of a row of the source are
    those of the table, "position" or "name"; ``names`` are the columns that get ``values``, None for their defaults."""

    of: str
    condition: Place | None
    action: str
    by: str = ""
    names: tuple[str, ...] = ()
    values: tuple[Place | None, ...] = ()


class MergeReader(ConstraintReader):
    """Reads it behind the name of the table."""

    def merged(self, name: str, alias: str) -> None:
        """``USING source ON condition WHEN ... THEN ...``."""
        self._hide_words("using")
        options: dict[str, object] = {"source": self._place(self._primary)}
        if self.word == "using":
            self.blank()
            options["using"] = tuple(self.hidden_names())
        else:
            self._hide_words("on")
            options["on"] = self._place(self.expression)
        clauses = []
        while self.word == "when":
            clauses.append(self._when())
        if not clauses:
            raise self.unexpected("WHEN")
        options["clauses"] = tuple(clauses)
        self.reading.form = Form("merge", name, alias, options=tuple(options.items()))

    def _place(self, rule: Callable[[], object]) -> Place:
        first = self.at
        self.hidden(rule)
        return self.starts[first], self.ends[self.at - 1] + 1

    def _when(self) -> When:
        self.blank()
        of = "target" if self.word == "not" else "matched"
        if of == "target":
            self.blank()
        self._hide_words("matched")
        if of == "target" and self.word == "by":
            self.blank()
            if self.word not in ("source", "target"):
                raise self.unexpected("SOURCE or TARGET")
            of = self.word
            self.blank()
        condition = None
        if self.word == "and":
            self.blank()
            condition = self._place(self.expression)
        self._hide_words("then")
        action = self.word
        self.blank()
        match action:
            case "do":
                self._hide_words("nothing")
                return When(of, condition, "nothing")
            case "delete" if of != "target":
                return When(of, condition, "delete")
            case "update" if of != "target":
                return self._update_of_merge(of, condition)
            case "insert" if of == "target":
                return self._insert_of_merge(condition)
            case "error" | "insert" | "delete" | "update":
                self.go(self.at - 1)
                raise self.not_supported(f"THEN {action.upper()} at this place")
        self.go(self.at - 1)
        raise self.unexpected("UPDATE, DELETE, INSERT or DO NOTHING")

    def _by(self) -> str:
        """How columns of the source are those of the table."""
        if self.word == "*":
            self.blank()
        elif self.word == "by":
            self.blank()
            if self.word not in ("name", "position"):
                raise self.unexpected("NAME or POSITION")
            by = self.word
            self.blank()
            return by
        return "position"

    def _update_of_merge(self, of: str, condition: Place | None) -> When:
        if self.word == "set":
            self.blank()
        if self.kind == END or self.word in ("*", "by", "when"):
            if of == "source":
                raise self.unexpected("SET")
            return When(of, condition, "update", self._by())
        names: list[str] = []
        values: list[Place | None] = []
        while True:
            names.append(self.hidden_name())
            self._hide_words("=")
            values.append(self._value_or_default())
            if self.word != ",":
                break
            self.blank()
        return When(of, condition, "update", "values", tuple(names), tuple(values))

    def _insert_of_merge(self, condition: Place | None) -> When:
        names = tuple(self.hidden_names()) if self.word == "(" else ()
        if self.word == "default" and not names:
            self._hide_words("default", "values")
            return When("target", condition, "insert", "values")
        if self.word != "values":
            if names:
                raise self.unexpected("VALUES")
            return When("target", condition, "insert", self._by())
        self._hide_words("values", "(")
        values = [self._value_or_default()]
        while self.word == ",":
            self.blank()
            values.append(self._value_or_default())
        self._hide_words(")")
        return When("target", condition, "insert", "values" if names else "places", names, tuple(values))

    def _value_or_default(self) -> Place | None:
        if self.word == "default":
            self.blank()
            return None
        return self._place(self.expression)
