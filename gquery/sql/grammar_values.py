"""Values of DuckDB's grammar: names, constants, functions' calls, and what stands behind them.

The base of `sql.grammar_expr`, which has the operators between them.
"""

from __future__ import annotations

from abc import abstractmethod

from gquery.expression.keywords import CONSTANTS
from gquery.sql.grammar_forms import SPECIAL, FormReader
from gquery.sql.grammar_tokens import ARRAY, METHOD, marked
from gquery.sql.lexer import END, NUMBER, PARAMETER, QUOTED, STRING, WORD

_SCHEMAS = ("main", "system", "pg_catalog")  # main.upper(s) is a function's name and no method
_QUERIES = ("select", "with", "from", "values")
_SPECIAL_METHODS = ("position", "substring", "trim")


class ValueReader(FormReader):
    """Reads values; `expression` is for who reads operators, `query` for who reads statements."""

    @abstractmethod
    def starts_query(self) -> bool:
        """Whether a query begins here, in parentheses or not."""

    @abstractmethod
    def ctes(self) -> None:
        """WITH and its queries."""

    @abstractmethod
    def query(self, start: int | None = None) -> None:
        """A query without parentheses around it; ``start`` is that of CTEs before it."""

    def _subquery_in_parentheses(self) -> None:
        self.expect("(")
        self.query()
        self.expect(")")

    def _primary_expression(self, star: bool) -> bool:
        """What operators combine. Whether it was ``t.*``."""
        kind, word = self.kind, self.word
        if kind in (NUMBER, STRING):
            self.leaf()
        elif kind == PARAMETER:
            self.next()
        elif kind == QUOTED:
            return self._named(star)
        elif word == "(" or (word == "row" and self.peek(1) == "("):
            self._row()
        elif word == "[":
            self._list()
        elif word == "array" and self.peek(1) == "[":
            self.next()
            self._list()
        elif word == "array" and self.peek(1) == "(" and self.peek(2) in _QUERIES:
            self.say(marked(ARRAY))
            self._subquery_in_parentheses()
        elif word == "{" or (word == "map" and self.peek(1) == "{"):
            self._struct()
        elif kind != WORD:
            raise self.unexpected("an expression" if kind == END else "")
        elif word in CONSTANTS:
            self.next()
        elif word == "case":
            self._case()
        elif word == "exists" and self.peek(1) == "(":
            self.next()
            self._subquery_in_parentheses()
        elif word in ("cast", "try_cast"):
            self._cast()
        elif word == "interval" and self._is_interval():
            self._interval()
        elif word in SPECIAL and self.peek(1) == "(":
            name = self.starts[self.at]
            self.next()
            self.next()
            if SPECIAL[word](self):
                self.reading.calls.add(name)
            self.expect(")")
        else:
            return self._named(star)
        return False

    def _postfix(self, start: int, first: int, may_cast: bool = True) -> None:
        """Casts, slices, fields and methods behind a value, whose first token is ``first``."""
        has_methods = self.kinds[self.at - 1] not in (NUMBER, STRING, PARAMETER)
        while True:
            if self.word == "::" and not may_cast:  # sqlglot would cast the list
                raise self.unexpected("parentheses")
            if self.take("::"):
                self._type()
                has_methods = False
            elif self.word == "[":
                self.next()
                if self.kind == NUMBER and self.peek(1) == "]":
                    self.next()  # sqlglot counts from 0, and makes a number of its own
                elif self.word != ":":
                    self.expression()
                if self.take(":") and self.word not in ("]", ":"):
                    self.expression()
                if self.take(":"):
                    self.expression()
                self.expect("]")
                self.end(start)
                has_methods = False
            elif has_methods and self.word == "." and self.peek(2) == "(":
                self._method(start, first)
            elif self.take("."):  # a field of a struct
                self.label(leaf=True)
                self.end(start)
            elif self.take("collate"):
                self.label()
                while self.take("."):
                    self.label()
                self.end(start)
            elif self.word == "at" and (self.peek(1), self.peek(2)) == ("time", "zone"):
                for _ in range(3):
                    self.next()
                if self.kind != STRING:
                    raise self.unexpected("the name of a zone")
                self.leaf()
                if self.word == "::":  # it would be a cast of the zone's name
                    raise self.unexpected("parentheses")
                self.end(start)
            else:
                return

    def _method(self, start: int, first: int) -> None:
        """A call behind a dot; see `sql.methods`."""
        self.edit(first, (marked(METHOD), "("), is_before=True)
        self.say(",")
        if not self.is_function_name() and self.word not in _SPECIAL_METHODS:
            raise self.unexpected("the name of a function")
        self.reading.has_methods = True
        self.function_name()
        if self.word in ("order", "distinct", "*"):
            raise self.unexpected("an argument")
        self.arguments()
        self.end(start)
        self.say_before(")")

    def _row(self) -> None:
        """What stands in parentheses; a row of several values may have ROW before it, which sqlglot does not see."""
        if self.word == "(":
            self._parentheses()
            return
        row, start = self.at, self.begin()
        self.next()
        self.next()
        count = self.expressions()
        self.expect(")")
        self.end(start)
        if count > 1:
            self.edit(row, ())
        else:  # of which the binder says that it is no function
            self.reading.calls.add(self.starts[row])

    def _parentheses(self) -> None:
        mark = self.mark()
        if self.starts_query() and self.tries(self._subquery_in_parentheses, mark):
            return
        self.next()
        start = self.begin()
        self.expressions()
        self.expect(")")
        self.end(start)

    def _named(self, star: bool) -> bool:
        """A column, a function's call, or a constant with its type before it. Whether it was ``t.*``."""
        if self._is_typed_constant():
            first = self.at
            self._type()
            self.leaf()
            self._end_typed(first)
            return False
        if self.peek(1) == "(" and self.is_function_name():
            self._call()
            return False
        if self.word in _SCHEMAS and self.peek(1) == "." and self.peek(3) == "(":
            self.say()
            self.say()
            return self._named(star)
        self.name(leaf=True)
        while self.word == "." and self.peek(2) != "(":
            self.next()
            if star and self.take("*"):
                self.star()
                return True
            self.label(leaf=True)
        return False

    def _call(self) -> None:
        start = self.begin()
        if self.word == "columns":
            self.next()
            self.expect("(")
            if self.take("*"):
                self.star()
            else:
                self.expression(star=True)
            self.expect(")")
            self.end(start)
            return
        if self.word in ("coalesce", "nullif"):  # constructs of the grammar: they take values alone
            self.function_name()
            self.expressions()
            self.expect(")")
            self.end(start)
            return
        self.function_name()
        self.arguments()
        if self.word == "within" and self.peek(1) == "group":
            self.next()
            self.next()
            self.expect("(")
            self.order()
            self.expect(")")
        if self.word == "filter" and self.peek(1) == "(":
            self.next()
            self.next()
            self.take("where")
            self.expression()
            self.expect(")")
        self.end(start)
        if self.word == "over":
            self.next()
            self.window() if self.word == "(" else self.name(leaf=True)
            self.end(start)

    def function_name(self) -> None:
        """The name of a function that is called, and the parenthesis behind it."""
        if self.kind == QUOTED and self.words[self.at].lower() == '"coalesce"':
            raise self.unexpected("COALESCE without quotes")  # a construct of the grammar, and no function
        self.reading.calls.add(self.starts[self.at])
        self.next()
        self.next()

    def arguments(self, named: bool = False) -> None:
        """What stands in the parentheses of a call, up to the closing one. ``named``: of a table function."""
        has_nulls = False
        if self.take(")"):
            return
        if self.word == "*" and self.peek(1) == ")":
            self.next()
        elif self.word == "order" and self.peek(1) == "by":
            self.order()
        else:
            if not self.take("distinct"):
                self.take("all")
            self._argument(named)
            while self.take(","):
                self._argument(named)
            if self.word == "order":
                self.order()
            if self.word in ("ignore", "respect") and self.peek(1) == "nulls":
                self.next()
                self.next()
                has_nulls = True
        self.expect(")")
        if has_nulls and self.word != "over":
            raise self.unexpected("OVER, which IGNORE NULLS and RESPECT NULLS need")

    def _argument(self, named: bool) -> None:
        if self.word == "lambda":
            self.next()
            self.names()
            self.expect(":")
        elif self.kind == WORD and self.peek(1) == "->":
            self.name(leaf=True)
            self.next()
        if self.peek(1) in (":=", "=>") or (named and self.peek(1) == "="):
            self.label()
            self.next()
        self.expression()

    def order(self) -> None:
        """ORDER BY."""
        self.next()
        self.expect("by")
        if not self.take("all"):
            self.expression()
            self._direction()
            while self.take(","):
                self.expression()
                self._direction()
        else:
            self._direction()

    def _direction(self) -> None:
        if not self.take("asc"):
            self.take("desc")
        if self.take("nulls") and not self.take("first"):
            self.expect("last")
