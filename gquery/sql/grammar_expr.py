"""Expressions of DuckDB's grammar: operators by how tightly they bind, names, constants, functions.

The base of `sql.grammar`, which says what this is for.
"""

from __future__ import annotations

from abc import abstractmethod

from gquery.expression.keywords import CONSTANTS
from gquery.sql.grammar_forms import SPECIAL, FormReader
from gquery.sql.lexer import END, NUMBER, PARAMETER, QUOTED, STRING, WORD
from gquery.sql.precedence import ADD, AND, COMPARE, INFIX, IS, LIKE, MINUS, NOT, OR, OTHER

_NEGATED = ("like", "ilike", "similar", "in", "between", "null")
_MATCHES = ("like", "ilike", "glob", "similar", "in", "between")


class ExpressionReader(FormReader):
    """Reads expressions; `query` is for who reads statements."""

    # ---- operators ---------------------------------------------------------------------------------------------------

    def expressions(self, trailing: bool = False) -> int:
        """Expressions with commas between them; how many."""
        self.expression()
        count = 1
        while self.take(","):
            if trailing and self.word == ")":
                break
            self.expression()
            count += 1
        return count

    def expression(self, least: int = OR, star: bool = False, is_simple: bool = False) -> None:
        """An expression of operators that bind at least that tightly. ``star``: ``t.*`` may stand here; ``is_simple``: a
        bound of BETWEEN, where no AND can stand."""
        start = self.begin()
        if self.take("not"):
            self.expression(NOT)
            self.end(start)
        elif self.word in ("-", "+"):
            sign = self.at
            self.next()
            self.expression(MINUS)
            self.end(start)
            if self.words[sign] == "+":
                self.reading.pluses[self.starts[sign]] = self.ends[self.at - 1]
        elif self.word in ("~", "@"):
            self.next()
            self.expression(OTHER + 1)
            self.end(start)
        else:
            if self._primary_expression(star):
                return
            self._postfix(start)
        closed = 0  # the level that may not come again: a < b < c is none
        while True:
            level = self._level(is_simple)
            if level < least or level == 0:
                return
            if level == closed:
                raise self.unexpected("parentheses")
            closed = self._operator(level)
            if level == LIKE and self.word == "==":
                raise self.unexpected("parentheses")
            self.end(start)

    def _level(self, is_simple: bool) -> int:
        """How tightly the operator here binds; 0 for none."""
        word = self.word
        if self.at == self._stop:
            return 0
        found = INFIX.get(word)
        if found is not None:
            if is_simple and found == COMPARE:  # sqlglot reads none there
                raise self.unexpected("parentheses")
            return 0 if is_simple and found <= AND else found
        if is_simple or self.kind != WORD:
            return IS if is_simple and word == "is" and "distinct" in (self.peek(1), self.peek(2)) else 0
        if word in ("is", "isnull", "notnull"):
            return IS
        if word in _MATCHES or (word == "not" and self.peek(1) in _NEGATED):
            return LIKE if self.peek(1) != "null" or word != "not" else IS
        return 0

    def _operator(self, level: int) -> int:
        """An operator and what stands right of it. Gives the level if it may not come again."""
        word = self.word
        if level == IS:
            return self._is()
        if level == LIKE:
            return self._match()
        self.next()
        if self.word == "not" and (
            level == OTHER or word == "=="
        ):  # DuckDB takes the operator for one behind its value
            raise self.unexpected("a value")
        if level == COMPARE and self.word in ("any", "all", "some") and self.peek(1) == "(":
            self.next()
            if self.peek(1) == "[":
                self.next()
                self._list()
                self.expect(")")
            else:
                self._subquery_in_parentheses()
            return 0
        if word == "==":  # binds as || does in DuckDB and as = does in sqlglot: allowed where that is the same
            self.expression(ADD)
            if self._level(False) in (LIKE, OTHER):
                raise self.unexpected("parentheses")
            return level
        self.expression(level + 1)
        return level if level == COMPARE and word else 0

    def _is(self) -> int:
        if self.take("isnull") or self.take("notnull"):
            return 0
        if self.take("not"):  # a NOT NULL
            self.expect("null")
            return 0
        self.next()
        self.take("not")
        if self.take("distinct"):
            self.expect("from")
            self.expression(IS + 1)
            return IS
        if self.word not in (*CONSTANTS, "unknown"):
            raise self.unexpected("NULL, TRUE, FALSE or DISTINCT FROM")
        self.next()
        return 0

    def _match(self) -> int:
        """LIKE and its kin, IN, BETWEEN."""
        self.take("not")
        word = self.word
        self.next()
        if word == "in":
            self._in()
            return 0
        if word == "between":
            self.expression(COMPARE, is_simple=True)
            self.expect("and")
            self.expression(LIKE + 1)
            return LIKE
        if word == "similar":
            self.expect("to")
        self.expression(LIKE + 1)
        if self.take("escape"):
            self.expression(LIKE + 1)
        return LIKE

    def _in(self) -> None:
        if self.word != "(":
            raise self.unexpected("(")
        if self.starts_query() and self.tries(self._subquery_in_parentheses, self.mark()):
            return
        self.next()
        self.expressions(trailing=True)
        self.expect(")")

    # ---- primaries ---------------------------------------------------------------------------------------------------

    @abstractmethod
    def starts_query(self) -> bool:
        """Whether a query begins here, in parentheses or not."""

    @abstractmethod
    def query(self) -> None:
        """A query without parentheses around it."""

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

    def _postfix(self, start: int) -> None:
        """Casts and slices behind a value."""
        while True:
            if self.take("::"):
                self._type()
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
        self.name(leaf=True)
        while self.take("."):
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
