"""Expressions of DuckDB's grammar: operators, by how tightly they bind, between values (`sql.grammar.values`).

The base of `sql.grammar`, which says what this is for.
"""

from __future__ import annotations

from sqlglot import exp

from gquery.expression.keywords import CONSTANTS
from gquery.sql.grammar import nodes
from gquery.sql.grammar.nodes import ADD, AND, ARROW, COMPARE, INFIX, IS, LIKE, MINUS, NOT, OR, OTHER
from gquery.sql.grammar.tokens import ABS, JSON, LISTED, marked
from gquery.sql.grammar.values import ValueReader
from gquery.sql.lexer import PARAMETER, QUOTED, WORD

_NEGATED = ("like", "ilike", "similar", "in", "between", "null")
_MATCHES = ("like", "ilike", "glob", "similar", "in", "between")


class ExpressionReader(ValueReader):
    """Reads expressions; `query` is for who reads statements. What reads one gives its node where it is a plain one."""

    # ---- operators ---------------------------------------------------------------------------------------------------

    def expressions(self, trailing: bool = False) -> list[exp.Expr | None]:
        """Expressions with commas between them."""
        found = [self.listed()]
        while self.take(","):
            if trailing and self.word == ")":
                break
            found.append(self.listed())
        return found

    def kept(self) -> exp.Expr | None:
        """An expression that stands alone; sqlglot does not read a plain one."""
        start, first = self.begin(), self.at
        made = self.expression()
        self.keep_one(made, first, start)
        return made

    def expression(self, least: int = ARROW, star: bool = False, is_simple: bool = False) -> exp.Expr | None:
        """An expression of operators that bind at least that tightly. ``star``: ``t.*`` may stand here; ``is_simple``: a
        bound of BETWEEN, where no AND can stand."""
        start, first = self.begin(), self.at
        made: exp.Expr | None
        if self.take("not"):
            made = nodes.negated(self.expression(NOT))
            self.end(start)
        elif self.word in ("-", "+"):
            sign = self.at
            self.next()
            made = nodes.negative(self.expression(MINUS))
            self.end(start)
            if self.words[sign] == "+":
                made = None
                self.reading.pluses[self.starts[sign]] = self.ends[self.at - 1]
        elif self.word == "~":
            self.next()
            self.expression(OTHER + 1)
            made = None
            self.end(start)
        elif self.word == "@":  # a parameter or a call to sqlglot, as what is behind it is a name or not
            self.say(marked(ABS), "(")
            if self.word == "null":
                self.edit(self.at, ("null",))
            self.expression(OTHER + 1)
            made = None
            self.end(start)
            self.say_before(")")
        elif star and (found := self._star_of_table())[0]:
            return found[1]
        else:
            made = self._postfix(start, first, value=self._primary_expression())
        closed = 0  # the level that may not come again: a < b < c is none
        while True:
            level = self._level(is_simple)
            if level < least or level == 0:
                return made
            if level == closed:
                raise self.unexpected("parentheses")
            if level == ARROW:
                self._arrow(first)
                made = None
            elif level <= AND:
                made = self._connective(level, made, first, start)
            else:
                closed, made = self._operator(level, made)
            if level == LIKE and self.word == "==":
                raise self.unexpected("parentheses")
            self.end(start)

    def _arrow(self, first: int) -> None:
        """``->`` or ``->>``, of which all is the left side that began at ``first``: nothing binds less tightly. So does the right
        side of ``->`` have all operators, that of ``->>`` those above a comparison. sqlglot reads a call."""
        is_text = self.word == "->>"
        self.edit(first, (marked(JSON), "("), is_before=True)
        self.say(",")
        self.expression(OTHER + 1 if is_text else OR)
        self.say_before(*((",", "null", ")") if is_text else (")",)))

    def _connective(self, level: int, left: exp.Expr | None, first: int, start: int) -> exp.Expr | None:
        """AND or OR and what stands right of it. Where one side is sqlglot's, the other need not be."""
        word = self.word
        before, leaves = self.at, self.begin()
        self.next()
        behind, place = self.at, self.begin()
        right = self.expression(level + 1)
        made = nodes.binary(word, left, right)
        if made is None:
            self.keep([] if left is None else [left], first, start, before, leaves)
            self.keep_one(right, behind, place)
        return made

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

    def _operator(self, level: int, left: exp.Expr | None) -> tuple[int, exp.Expr | None]:
        """An operator and what stands right of it. Gives the level if it may not come again."""
        word = self.word
        if level == IS:
            return self._is(left)
        if level == LIKE:
            return self._match(left)
        self.next()
        if self.word == "not" and (
            level == OTHER or word == "=="
        ):  # DuckDB takes the operator for one behind its value
            raise self.unexpected("a value")
        if level == COMPARE and self.word in ("any", "all", "some") and self.peek(1) == "(":
            self.next()
            self._any()
            return 0, None
        if word == "==":  # binds as || does in DuckDB and as = does in sqlglot: allowed where that is the same
            self.expression(ADD)
            if self._level(False) in (LIKE, OTHER):
                raise self.unexpected("parentheses")
            return level, None
        made = nodes.binary(word, left, self.expression(level + 1))
        return level if level == COMPARE and word else 0, made

    def _is(self, left: exp.Expr | None) -> tuple[int, exp.Expr | None]:
        if self.take("isnull") or self.take("notnull"):
            return 0, None
        if self.take("not"):  # a NOT NULL
            self.expect("null")
            return 0, None
        self.next()
        is_negated = self.take("not")
        if self.take("distinct"):
            self.expect("from")
            self.expression(IS + 1)
            return IS, None
        if self.word not in (*CONSTANTS, "unknown"):
            raise self.unexpected("NULL, TRUE, FALSE or DISTINCT FROM")
        what = self.word
        self.next()
        return 0, nodes.is_(left, what, is_negated)

    def _match(self, left: exp.Expr | None = None) -> tuple[int, exp.Expr | None]:
        """LIKE and its kin, IN, BETWEEN."""
        is_negated = self.take("not")
        word = self.word
        self.next()
        if word == "in":
            return 0, nodes.is_in(left, self._in(left is not None), is_negated)
        if word == "between":
            low = self.expression(COMPARE, is_simple=True)
            self.expect("and")
            return LIKE, nodes.between(left, low, self.expression(LIKE + 1), is_negated)
        if word == "similar":
            self.expect("to")
        made = nodes.like(word, left, self.expression(LIKE + 1), is_negated)
        if self.take("escape"):
            self.expression(LIKE + 1)
            made = None
        return LIKE, made

    def _in(self, is_made: bool) -> list[exp.Expr | None] | exp.Expr | None:
        """What IN looks into; the nodes of a list, or that of a query. Where IN itself is sqlglot's, its list need not be."""
        if self.word != "(":
            self._in_value()
            return None
        if self.starts_query() and self.tries(self._subquery_in_parentheses, self.mark()):
            return self.tried
        self.next()
        first, start = self.at, self.begin()
        items = self.expressions(trailing=True)
        if not is_made and None not in items:
            behind = self.at - (self.words[self.at - 1] == "," and self.kinds[self.at - 1] == "symbol")
            self.keep([e for e in items if e is not None], first, start, behind, self.begin())
        self.expect(")")
        return items

    def _in_value(self) -> None:
        """A list, map or text that is a value, as an argument of a call that no text names: sqlglot does not tell ``[1]`` from
        ``(1)`` here."""
        if self.kind not in (WORD, QUOTED, PARAMETER) and self.word != "[":
            raise self.unexpected("( or a list")
        self.say_before(marked(LISTED), "(")
        start, first = self.begin(), self.at
        self._primary_expression()
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
