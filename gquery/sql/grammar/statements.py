"""Statements that are no queries: CREATE, DROP and changes of tables, and PREPARE, EXECUTE, DEALLOCATE, RESET and COPY.

What is a query in them is left for sqlglot, the rest is put in a `Form`, which `gquery.sql.bind` makes a statement of.
"""

from __future__ import annotations

from gquery.errors import NotSupportedError, point_at
from gquery.sql.grammar.alter import TRANSACTIONS
from gquery.sql.grammar.changes import CHANGES
from gquery.sql.grammar.macros import DefinitionReader
from gquery.sql.grammar.tokens import Form, marked
from gquery.sql.lexer import END, NUMBER, PARAMETER, QUOTED, STRING, WORD

FORMS = CHANGES | TRANSACTIONS.keys() | {"alter", "prepare", "execute", "deallocate", "copy", "reset", "pragma"}
OWN = FORMS | {"use", "set"}  # of which sqlglot knows less than our grammar, so that its errors are told

REFUSED = {
    "savepoint": "SAVEPOINT; ROLLBACK takes back the whole transaction", "release": "RELEASE; there are no savepoints",
    "checkpoint": "CHECKPOINT; tables are in memory, COPY writes them to files",
    "force": "FORCE CHECKPOINT; tables are in memory, COPY writes them to files",
    "vacuum": "VACUUM; there is nothing to tidy up", "analyze": "ANALYZE; statistics are taken as tables are read",
    "install": "INSTALL; there are no extensions", "load": "LOAD; there are no extensions",
    "export": "EXPORT; COPY writes tables to files", "import": "IMPORT; CREATE TABLE AS reads files",
    "comment": "COMMENT; tables and columns have none", "call": "CALL; functions that give tables stand in FROM",
}  # fmt: skip
"""Statements of DuckDB's, and some of others, by their first word: what is said of them."""


class StatementReader(DefinitionReader):
    """Reads any statement that gquery runs."""

    def statement(self) -> None:
        """Any statement that gquery runs."""
        match self.word:
            case "create" if self.names_macro():
                self.create_macro()
            case "drop" if self.names_macro():
                self.drop_macro()
            case "create" | "drop" | "use" | "set" | "reset" if self.defines():
                self.definition()
            case "create":
                self._create()
            case "drop":
                self._drop()
            case word if word in FORMS:
                self.form()
            case word if word in REFUSED and (word != "force" or self.peek(1) == "checkpoint"):
                raise self.not_supported(REFUSED[word])
            case "with" if self.has_change():
                self.change_with_ctes()
            case _:
                super().statement()

    def _create(self) -> None:
        first = self.at
        self.next()
        if self.take("or"):
            self.expect("replace")
            options: tuple[str, ...] = ("replace",)
        else:
            options = ()
        if not self.take("temp"):
            self.take("temporary")
        is_table = self.take("table")
        if not is_table:
            self.expect("view", "TABLE or VIEW")
        if not options and self.take("if"):
            self.expect("not")
            self.expect("exists")
            options = ("exists",)
        name, leaves = self._name_of_table(), self.begin()
        self._table_name()
        if is_table and self.word == "(" and self.columns_follow():
            del self.reading.leaves[leaves:]
            self.next()
            self.define(first, name, options)
            return
        if self.take("("):
            self.names()
            self.expect(")")
        self.expect("as")
        self.query()
        if is_table and self.take("with"):
            self.take("no")
            self.expect("data")

    def _drop(self) -> None:
        self.next()
        if not self.take("table"):
            self.expect("view", "TABLE or VIEW")
        if self.take("if"):
            self.expect("exists")
        self._table_name()
        if not self.take("cascade"):
            self.take("restrict")

    def form(self) -> None:
        """One of `FORMS`."""
        match self.word:
            case "prepare":
                self._prepare()
            case "execute":
                self._execute()
            case "deallocate":
                self._deallocate()
            case "reset":
                self.blank()
                name = self._text() if self.kind in (WORD, QUOTED) else ""
                self.say_before("select")
                self.label()
                self.reading.form = Form("reset", name)
            case "copy":
                self._copy()
            case "pragma":
                self._pragma()
            case "alter":
                self.alter()
            case word if word in TRANSACTIONS:
                self.transaction()
            case _:
                self.change()

    def _text(self) -> str:
        """The name that the next token is."""
        text = self.words[self.at]
        return text[1:-1].replace('""', '"') if self.kind == QUOTED else self.sql[self.starts[self.at] :][: len(text)]

    def change_with_ctes(self) -> None:
        """INSERT, UPDATE or DELETE, behind WITH or not."""
        start = self.begin() if self.word == "with" else None
        if start is not None:
            self.ctes()
        self.change(start)

    def _prepare(self) -> None:
        self.blank()
        if not self.is_column_name():
            raise self.unexpected("a name")
        name = self._text()
        self.blank()
        if self.word == "(":
            raise NotSupportedError(f"not supported: types of parameters\n{point_at(self.sql, self.starts[self.at])}")
        if self.word != "as":
            raise self.unexpected("AS")
        self.blank()
        first = self.at
        if self.has_change():
            self.change_with_ctes()
            if self.reading.form is not None and self.reading.form.kind == "merge":  # nor does DuckDB
                raise NotSupportedError(f"not supported: PREPARE of MERGE\n{point_at(self.sql, self.starts[first])}")
        else:
            self.query()
        inside = [n for n in range(first, self.at) if self.kinds[n] == PARAMETER]
        names = list(dict.fromkeys(self.words[n][1:] for n in inside if self.words[n] != "?"))
        names += [str(n) for n in range(1, sum(self.words[n] == "?" for n in inside) + 1)]
        text = self.sql[self.starts[first] : self.ends[self.at - 1] + 1]
        changed = () if self.reading.form is None else (("changes", self.reading.form.name),)
        self.reading.form = Form("prepare", name, text, names=tuple(names), options=changed)

    def _execute(self) -> None:
        self.blank()
        if not self.is_column_name() and not self.is_function_name():
            raise self.unexpected("a name")
        name, names = self._text(), []
        self.say("select", marked("execute"))
        if self.take("("):
            while True:
                is_named = self.peek(1) == ":="
                names.append(self._text() if is_named else "")
                if is_named:
                    self.say()
                    self.say()
                self.expression()
                if not self.take(","):
                    break
            self.expect(")")
        self.reading.form = Form("execute", name, names=tuple(names))

    def _deallocate(self) -> None:
        self.say("select", marked("deallocate"))
        if self.word == "prepare" and self.kinds[self.at + 1] != END:
            self.say()
        if not self.is_column_name():
            raise self.unexpected("a name")
        name = self._text()
        self.say()
        self.reading.form = Form("deallocate", name)

    def _pragma(self) -> None:
        """``PRAGMA setting = value``, ``PRAGMA table_info('t')`` and ``PRAGMA show_tables``, which are other statements."""
        name, behind = self.peek(1), self.peek(2)
        if name == "show_tables":
            self.blank()
            self.say("select", marked("tables"))
        elif name == "table_info" and behind == "(":
            self.say("from")
            self.say("pragma_table_info")
            self.expect("(")
            if self.kind != STRING:
                raise self.unexpected("the name of a table")
            self.leaf()
            self.expect(")")
        elif behind == "=":
            self.blank()
            setting = self._text()
            self.say("select", marked("pragma"))
            self.say()
            self.reading.form = Form("set", setting, self._constant())
        else:
            self.next()
            raise self.not_supported(f"PRAGMA {name.upper()}; there are TABLE_INFO, SHOW_TABLES and settings")

    # ---- COPY --------------------------------------------------------------------------------------------------------

    def _copy(self) -> None:
        if self._copies_from():
            self._copy_from()
            return
        copy = self.at
        self.next()
        if self.word == "(" and self.starts_query():
            self.edit(copy, ())
            self._subquery_in_parentheses()
        else:
            self.edit(copy, ("from",))
            self._table_name()
            if self.word == "(":
                self.say("select")
                self.names(trailing=True)
                if self.word != ")":
                    raise self.unexpected(")")
                self.say()
            else:
                self.say_before("select", "*")
        if self.word != "to":
            raise self.unexpected("TO")
        self.say()
        path, options = self._path_and_options()
        self.reading.form = Form("copy", path, options=options)

    def _copies_from(self) -> bool:
        """Whether FROM stands behind the table that is named here, and its columns."""
        ahead = 2
        while self.peek(ahead) == ".":
            ahead += 2
        if self.peek(1) == "(":
            return False  # of a query
        if self.peek(ahead) == "(":
            while self.at + ahead < self.behind and self.peek(ahead) != ")":
                ahead += 1
            ahead += 1
        return self.peek(ahead) == "from"

    def _copy_from(self) -> None:
        """``COPY table [(columns)] FROM 'file' (options)``."""
        self.say("select", marked("copy"))
        name, names = self._blank_table(), []
        if self.word == "(":
            self.blank()
            while self.word != ")":
                names.append(self._column_name(is_read=False))
                if self.word != ")":
                    self._blank(",")
            self.blank()
        self._blank("from")
        path, options = self._path_and_options()
        self.reading.form = Form("copy_from", name, path, tuple(names), options)

    def _path_and_options(self) -> tuple[str, tuple[tuple[str, object], ...]]:
        """``'file' [WITH] [(options)]``."""
        if self.kind != STRING:
            raise self.unexpected("the name of a file")
        path = self._constant()
        if self.word == "with":
            self.say()
        options: list[tuple[str, object]] = []
        if self.word == "(":
            self.say()
            options.append(self._option())
            while self.word == ",":
                self.say()
                options.append(self._option())
            if self.word != ")":
                raise self.unexpected(")")
            self.say()
        return path, tuple(options)

    def _option(self) -> tuple[str, object]:
        """``NAME [value]``; one without a value is TRUE."""
        if self.kind != WORD:
            raise self.unexpected("an option")
        name = self._text().lower()
        self.say()
        if self.word == "(":
            self.say()
            values = [self._constant()]
            while self.word == ",":
                self.say()
                values.append(self._constant())
            if self.word != ")":
                raise self.unexpected(")")
            self.say()
            return name, tuple(values)
        return name, True if self.word in (",", ")") else self._constant()

    def _constant(self) -> str:
        """A constant or name as text."""
        if self.kind == STRING:
            text = self.words[self.at][1:-1].replace("''", "'")
        elif self.kind in (NUMBER, WORD, QUOTED) or self.word == "*":
            text = self._text()
        else:
            raise self.unexpected("a value")
        self.say()
        return text
