"""The constraints and defaults of columns and tables in CREATE TABLE.

sqlglot sees nothing of them: a `Form` has what they say, their expressions as texts (`gquery.sql.binding.constraints`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from gquery.sql.grammar.nodes import OTHER
from gquery.sql.grammar.query import QueryReader
from gquery.sql.statement import Conflict

Said = tuple[str, tuple[str, ...], str]
"""What a table asks: the kind ("not", "default", "check", "primary", "unique"), the columns, and the text of the expression."""

OF_TABLE = frozenset(("primary", "unique", "check", "constraint", "foreign"))
OF_COLUMN = frozenset((
    "not", "null", "default", "check", "constraint", "primary", "unique", "references", "generated", "as", "collate",
))  # fmt: skip
_NAMED = {
    "references": "REFERENCES; no table depends on others", "foreign": "FOREIGN KEY; no table depends on others",
    "as": "AS behind the type of a column; columns are not computed",
    "generated": "GENERATED; columns are not computed", "collate": "COLLATE of a column",
}  # fmt: skip


class ConstraintReader(QueryReader):
    """Reads them."""

    def column_constraints(self, column: str) -> list[Said]:
        """What stands behind the type of a column."""
        out: list[Said] = []
        while self.word in OF_COLUMN:
            if self.word == "constraint":
                self._hide(2)
            match self.word:
                case "null":
                    self.blank()
                case "not":
                    self.blank()
                    if self.peek(0) != "null":
                        raise self.unexpected("NULL")
                    self.blank()
                    out.append(("not", (column,), ""))
                case "default":
                    self.blank()
                    out.append(("default", (column,), self.hidden_expression(OTHER)))
                case "check":
                    out.append(("check", (column,), self._check()))
                case "primary" | "unique":
                    out.append((self._kind_of_key(), (column,), ""))
                case word:
                    raise self.not_supported(_NAMED.get(word, word.upper()))
        return out

    def table_constraint(self) -> Said:
        """One that stands among the columns."""
        if self.word == "constraint":
            self._hide(2)
        if self.word in ("primary", "unique"):
            kind = self._kind_of_key()
            return kind, tuple(self.hidden_names()), ""
        if self.word != "check":
            raise self.not_supported(_NAMED.get(self.word, self.word.upper()))
        return "check", (), self._check()

    def _kind_of_key(self) -> str:
        """``PRIMARY KEY`` or ``UNIQUE``."""
        kind = self.word
        self.blank()
        if kind == "primary":
            if self.word != "key":
                raise self.unexpected("KEY")
            self.blank()
        return kind

    def hidden_names(self) -> list[str]:
        """Names of columns in parentheses that sqlglot does not see."""
        if self.word != "(":
            raise self.unexpected("(")
        names = []
        while self.word in ("(", ","):
            self.blank()
            names.append(self.hidden_name())
        if self.word != ")":
            raise self.unexpected(")")
        self.blank()
        return names

    def insert_or(self) -> Conflict | None:
        """``OR REPLACE`` or ``OR IGNORE``."""
        if self.word != "or":
            return None
        self.blank()
        kind = self.word
        if kind not in ("replace", "ignore"):
            raise self.unexpected("REPLACE or IGNORE")
        self.blank()
        return Conflict("nothing" if kind == "ignore" else "replace")

    def on_conflict(self) -> Conflict:
        """``ON CONFLICT (columns) DO NOTHING``, or ``DO UPDATE SET column = value, ... WHERE condition``."""
        self._hide_words("on", "conflict")
        target = tuple(self.hidden_names()) if self.word == "(" else ()
        self._hide_words("do")
        if self.word == "nothing":
            self.blank()
            return Conflict("nothing", target)
        self._hide_words("update", "set")
        sets: list[tuple[str, str | None]] = []
        while True:
            name = self.hidden_name()
            self._hide_words("=")
            if self.word == "default":
                self.blank()
                sets.append((name, None))
            else:
                sets.append((name, self.hidden_expression()))
            if self.word != ",":
                break
            self.blank()
        where = ""
        if self.word == "where":
            self.blank()
            where = self.hidden_expression()
        return Conflict("update", target, tuple(sets), where)

    def _hide_words(self, *words: str) -> None:
        for word in words:
            if self.word != word:
                raise self.unexpected(word.upper())
            self.blank()

    def _check(self) -> str:
        """``CHECK (expression)``."""
        self.blank()
        if self.word != "(":
            raise self.unexpected("(")
        self.blank()
        text = self.hidden_expression()
        if self.word != ")":
            raise self.unexpected(")")
        self.blank()
        return text

    def hidden_name(self) -> str:
        """The name of a column that sqlglot does not see."""
        if not self.is_column_name():
            raise self.unexpected("the name of a column")
        text = self.sql[self.starts[self.at] : self.ends[self.at] + 1]
        self.blank()
        return text[1:-1].replace('""', '"') if text[:1] == '"' else text

    def hidden_expression(self, least: int | None = None) -> str:
        """An expression that sqlglot does not see here: its text."""
        return self.hidden(self.expression if least is None else partial(self.expression, least))

    def hidden(self, rule: Callable[[], object]) -> str:
        """What a rule reads, which sqlglot does not see here: its text."""
        first, leaves, spans, edits, made = self.mark()
        rule()
        behind, r = self.at, self.reading
        del r.leaves[leaves:], r.spans[spans:], r.edits[edits:], r.made[made:]
        self.go(first)
        self._hide(behind - first)
        return self.sql[self.starts[first] : self.ends[behind - 1] + 1]

    def _hide(self, tokens: int) -> None:
        for _ in range(tokens):
            self.blank()
