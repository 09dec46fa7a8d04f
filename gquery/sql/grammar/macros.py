"""CREATE and DROP of what is no table or view, USE and SET VARIABLE: sqlglot sees nothing of them, a `Form` has all. Of macros
it has their parameters, and their bodies as texts (`gquery.sql.macros`)."""

from __future__ import annotations

from gquery.errors import ParseError, point_at
from gquery.sql.grammar.alter import AlterReader
from gquery.sql.grammar.tokens import Form, marked
from gquery.sql.lexer import NUMBER, QUOTED, WORD
from gquery.sql.schemas import MAIN, last, schema_of

_KINDS = ("schema", "sequence")
WORDS = ("macro", "function")  # DuckDB's two names of one thing


class MacroReader(AlterReader):
    """Reads these statements; `query` is for who reads queries."""

    def names_macro(self) -> bool:
        """Whether the CREATE or DROP that begins here is of a macro."""
        ahead = 1
        while self.peek(ahead) in ("or", "replace", "temp", "temporary"):
            ahead += 1
        return self.peek(ahead) in WORDS

    def create_macro(self) -> None:
        """``CREATE [OR REPLACE] MACRO [IF NOT EXISTS] name(a, b := 1) AS body, (a) AS body``; a body of TABLE is a query."""
        options: dict[str, object] = {}
        self.say("select", marked("macro"))
        while self.word not in WORDS:
            options["replace"] = options.get("replace", False) or self.word == "or"
            self.blank()
        self.blank()
        options["exists"] = self._blank_if("not", "exists")
        name = self._blank_name()
        bodies = [self._body_of_macro()]
        while self.word == ",":
            self.blank()
            bodies.append(self._body_of_macro())
        options["bodies"] = tuple(bodies)
        self.reading.form = Form("macro", name, options=tuple(options.items()))

    def drop_macro(self) -> None:
        """``DROP MACRO [TABLE] [IF EXISTS] name``."""
        self.say("select", marked("macro"))
        self.blank()
        if self.word == "table":
            self.blank()
        exists = self._blank_if("exists")
        self.reading.form = Form("drop_macro", self._blank_name(), options=(("exists", exists),))

    def _blank_name(self) -> str:
        """Hides the name of a macro, in the schema that all are in or without it."""
        if not self.is_function_name() and not self.is_column_name():
            raise self.unexpected("the name of a macro")
        name = self._name_of_table()
        if schema_of(name).lower() != MAIN:
            raise self.not_supported("macros in schemas but main")
        name = last(name)
        while self.peek(1) == ".":
            self._hide(2)
        self.blank()
        return name

    def _body_of_macro(self) -> tuple[object, ...]:
        """Parameters with the texts of their defaults, whether the body is a query, and where that begins and ends."""
        self._blank("(")
        parameters: list[tuple[str, str | None]] = []
        while self.word != ")":
            name, start = self._column_name(is_read=False), self.starts[self.at - 1]
            default = None
            if self.word in (":=", "=>"):
                self.blank()
                default = self.hidden_expression()
            elif self.word not in (",", ")"):
                raise self.not_supported("types of the parameters of a macro")
            elif parameters and parameters[-1][1] is not None:
                raise self._wrong(f"parameter {name!r} has no default, and stands behind one that has", start)
            if name.lower() in (n.lower() for n, _ in parameters):
                raise self._wrong(f"a macro has the parameter {name!r} twice", start)
            parameters.append((name, default))
            if self.word != ")":
                self._blank(",")
        self.blank()
        self._blank("as")
        is_table = self.word == "table"
        if is_table:
            self.blank()
        first = self.at
        text = self.hidden(self.query) if is_table else self.hidden_expression()
        return tuple(parameters), is_table, self.starts[first], self.starts[first] + len(text)

    def _wrong(self, message: str, start: int) -> ParseError:
        return ParseError(f"{message}\n{point_at(self.sql, start)}")


class DefinitionReader(MacroReader):
    """Reads these statements; `query` is for who reads queries."""

    def defines(self) -> bool:
        """Whether the statement that begins here is one of them."""
        if self.word in ("set", "reset"):
            return self.peek(1) == "variable"
        return self.word == "use" or self._kind_ahead() in _KINDS

    def _kind_ahead(self) -> str:
        ahead = 1
        while self.peek(ahead) in ("or", "replace", "temp", "temporary"):
            ahead += 1
        return self.peek(ahead)

    def definition(self) -> None:
        """One of these statements."""
        if self.word in ("set", "reset"):
            self._variable()
            return
        is_new, is_use, kind = self.word == "create", self.word == "use", self._kind_ahead()
        self.say("select", marked("definition"))
        if is_use:
            self.reading.form = Form("use", self._blank_table())
            return
        options: dict[str, object] = {"replace": self.word == "or"}
        while self.word != kind:
            self.blank()
        self.blank()
        options["exists"] = self._blank_if("not", "exists") if is_new else self._blank_if("exists")
        if kind == "schema" and options["replace"]:
            raise self.not_supported("CREATE OR REPLACE SCHEMA; DROP SCHEMA ... CASCADE drops one with all that is in it")
        name = self._blank_table()
        if kind == "sequence":
            if schema_of(name).lower() != MAIN:
                raise self.not_supported("sequences in schemas but main")
            name = last(name)
        if kind == "sequence" and is_new:
            self._sequence(options)
        if not is_new:
            options["cascade"] = self.word == "cascade"
            if self.word in ("cascade", "restrict"):
                self.blank()
        self.reading.form = Form(kind if is_new else f"drop_{kind}", name, options=tuple(options.items()))

    def _sequence(self, options: dict[str, object]) -> None:
        """What CREATE SEQUENCE says behind the name."""
        while self.kind == WORD:
            word, is_none = self.word, self.word == "no"
            if is_none:
                self.blank()
                word = self.word
            if word not in ("increment", "start", "minvalue", "maxvalue", "cycle") or word in options:
                raise self.unexpected("INCREMENT BY, START WITH, MINVALUE, MAXVALUE or CYCLE, once")
            self.blank()
            if word == "cycle" or is_none:
                options[word] = False if word == "cycle" and is_none else None if is_none else True
                continue
            if self.word == {"increment": "by", "start": "with"}.get(word):
                self.blank()
            sign = "-" if self.word == "-" else ""
            if sign:
                self.blank()
            if self.kind != NUMBER or not self.words[self.at].isdecimal():
                raise self.unexpected("an integer")
            options[word] = int(sign + self.words[self.at])
            self.blank()

    def _variable(self) -> None:
        """``SET VARIABLE name = expression`` and ``RESET VARIABLE name``."""
        is_set = self.word == "set"
        self.say("select", *(() if is_set else (marked("definition"),)))
        self.blank()
        if self.kind not in (WORD, QUOTED):
            raise self.unexpected("a name")
        name = self._text_at(self.at)
        self.blank()
        if is_set:
            self._blank("=" if self.word == "=" else "to")
            self.expression()
        self.reading.form = Form("variable" if is_set else "reset_variable", name)
