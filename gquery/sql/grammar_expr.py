"""Expressions of DuckDB's grammar: operators, by how tightly they bind, between values (`sql.grammar_values`).

The base of `sql.grammar`, which says what this is for.
"""

from __future__ import annotations

from gquery.expression.keywords import CONSTANTS
from gquery.sql.grammar_tokens import LISTED, marked
from gquery.sql.grammar_values import ValueReader
from gquery.sql.lexer import PARAMETER, QUOTED, WORD
from gquery.sql.precedence import ADD, AND, COMPARE, INFIX, IS, LIKE, MINUS, NOT, OR, OTHER

_NEGATED = ("like", "ilike", "similar", "in", "between", "null")
_MATCHES = ("like", "ilike", "glob", "similar", "in", "between")


class ExpressionReader(ValueReader):
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
        start, first = self.begin(), self.at
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
            self._postfix(start, first)
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
            self._any()
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
            self._in_value()
            return
        if self.starts_query() and self.tries(self._subquery_in_parentheses, self.mark()):
            return
        self.next()
        self.expressions(trailing=True)
        self.expect(")")

    def _in_value(self) -> None:
        """A list, map or text that is a value, as an argument of a call that no text names: sqlglot does not tell ``[1]`` from
        ``(1)`` here."""
        if self.kind not in (WORD, QUOTED, PARAMETER) and self.word != "[":
            raise self.unexpected("( or a list")
        self.say_before(marked(LISTED), "(")
        start, first = self.begin(), self.at
        self._primary_expression(False)
        self._postfix(start, first, may_cast=False)
        self.say_before(")")

    def _any(self) -> None:
        """What stands in the parentheses of ANY and ALL: a query, or a list."""
        if self.starts_query():
            self._subquery_in_parentheses()
        else:
            self.next()
            start = self.begin()
            self.expression()
            self.end(start)
            self.expect(")")
