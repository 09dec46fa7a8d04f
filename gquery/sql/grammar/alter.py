"""ALTER TABLE, and BEGIN, COMMIT and ROLLBACK: statements that have no query.

sqlglot is given a SELECT of what it is to read in them: a NULL of the type that a column gets, and
the expression of its values.
`gquery.sql.binding.alter` makes statements of them.
"""

from __future__ import annotations

from gquery.sql.grammar.changes import ChangeReader
from gquery.sql.grammar.nodes import OTHER
from gquery.sql.grammar.tokens import Form, marked

TRANSACTIONS = {
    "begin": "begin", "start": "begin", "commit": "commit", "end": "commit", "rollback": "rollback", "abort": "rollback",
}  # fmt: skip


class AlterReader(ChangeReader):
    """Reads such statements."""

    def transaction(self) -> None:
        """``BEGIN [TRANSACTION | WORK] [READ WRITE]`` and what ends one."""
        kind = TRANSACTIONS[self.word]
        self.say("select", marked(kind))
        if self.word in ("transaction", "work"):
            self.blank()
        if kind == "begin" and self.word == "read":
            if self.peek(1) == "only":
                raise self.not_supported("transactions that are READ ONLY")
            self.blank()
            self._blank("write")
        self.reading.form = Form(kind, "")

    def alter(self) -> None:
        """``ALTER TABLE [IF EXISTS] name`` and one change."""
        self.blank()
        if self.word == "view":
            raise self.not_supported("ALTER VIEW; CREATE OR REPLACE VIEW makes another")
        self._blank("table")
        options: dict[str, object] = {"if_exists": self._blank_if("exists")}
        name, change = self._blank_table(), self.word
        if change not in ("add", "drop", "rename", "alter"):
            raise self.unexpected("ADD, DROP, RENAME or ALTER")
        self.blank()
        if change == "rename" and self.word == "to":
            self.blank()
            names = [self._last_name()]
            change = "rename_table"
        elif change == "add" and self.word in ("primary", "constraint"):
            kind, columns, _ = self.table_constraint()
            self.reading.blanks.pop()  # of the last parenthesis: sqlglot reads a SELECT of nothing there
            self.edit(self.at - 1, ("select", marked("alter")))
            if kind != "primary":
                raise self.not_supported(f"ALTER TABLE ADD {kind.upper()}")
            names, change = [*columns], "add_key"
        else:
            if self.word == "column":
                self.blank()
            names = self._columns(change, options)
        if self.word == ",":
            raise self.not_supported("several changes in one ALTER TABLE")
        self.reading.form = Form("alter", name, change, tuple(names), tuple(options.items()))

    def _columns(self, change: str, options: dict[str, object]) -> list[str]:
        """The column that is changed, and its new name."""
        match change:
            case "add":
                options["if_column"] = self._blank_if("not", "exists")
                names, column = [self._part()], self.at - 1
                self._fields(options)
                self._typed("", column)
                if self.word == "default" and "fields" in options:
                    raise self.not_supported("DEFAULT of a field of a struct")
                if self.word == "default":
                    self.blank()
                    options["default"] = self.hidden_expression(OTHER)
                if self.word in ("not", "null", "unique", "primary", "check", "references", "generated"):
                    raise self.not_supported(f"{self.word.upper()} behind the type of a column that ALTER TABLE adds")
            case "drop":
                options["if_column"] = self._blank_if("exists")
                names = [self._last_name()]
                self._fields(options)
                if self.word in ("cascade", "restrict"):
                    self.blank()
            case "rename":
                names = [self._part(is_read=False)]
                self._fields(options)
                self._blank("to")
                names.append(self._last_name())
            case _:
                names, column = [self._part()], self.at - 1
                if self.word in ("drop", "set") and self.peek(1) in ("default", "not"):
                    self.edit(column, ("select", marked("alter")))
                    self._asked(options)
                    return names
                if self.word == "set":
                    self.blank()
                    if self.word == "data":
                        self.blank()
                self._blank("type")
                self._typed("using", column)
        return names

    def _part(self, is_read: bool = True) -> str:
        """A name without what stands behind a dot; ``is_read``: words stand for it."""
        if not self.is_column_name():
            raise self.unexpected("the name of a column")
        name = self._text_at(self.at)
        if is_read:
            self.next()
        else:
            self.blank()
        return name

    def _fields(self, options: dict[str, object]) -> None:
        """``.field.field`` behind the name of a column."""
        fields: list[str] = []
        while self.word == ".":
            self.blank()
            fields.append(self._part(is_read=False))
        if fields:
            options["fields"] = tuple(fields)

    def _asked(self, options: dict[str, object]) -> None:
        """``SET DEFAULT expression``, ``DROP DEFAULT``, ``SET NOT NULL`` or ``DROP NOT NULL``."""
        is_set = self.word == "set"
        self.blank()
        if self.word == "default":
            self.blank()
            options["default"] = self.hidden_expression() if is_set else None
        else:
            self.blank()
            self._blank("null")
            options["not_null"] = is_set

    def _typed(self, word: str, column: int) -> None:
        """A type, and behind a word, if any, an expression. The column's name, which is not hidden, begins the SELECT of them."""
        self.edit(column, ("select", "cast", "(", "null", "as"))
        self._type()
        if word and self.word == word:
            self.say(")", ",")
            self.expression()
        else:
            self.say_before(")")

    def _last_name(self) -> str:
        """A name behind which no more is read: sqlglot reads a SELECT of nothing in its place."""
        name = self._part()
        self.edit(self.at - 1, ("select", marked("alter")))
        return name

    def _blank_if(self, *words: str) -> bool:
        """Hides IF and what is to stand behind it; whether it is there."""
        if self.word != "if":
            return False
        self.blank()
        for word in words:
            self._blank(word)
        return True
