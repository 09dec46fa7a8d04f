"""Expressions of plain queries, as the trees that sqlglot makes of them: the base of `sql.plain`, which says what this is
for."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from functools import cache

from sqlglot import exp

from gquery.sql.calls import OPERATORS
from gquery.sql.grammar_forms import SPECIAL, UNITS
from gquery.sql.keywords import CALLED_COLUMN_NAMES, COLUMN_NAMES, RESERVED
from gquery.sql.lexer import WORD
from gquery.sql.plain_tokens import NAMES, NUMBERS, STRINGS, NotPlainError, TokenBuilder

QUERIES = frozenset(("select", "with"))  # words that begin the queries that are plain
_BEGIN_QUERIES = QUERIES | {"values", "from", "table"}
_INTEGER = re.compile(r"\d+")
_COMPARISONS: dict[str, type[exp.Expr]] = {
    "=": exp.EQ, "<>": exp.NEQ, "!=": exp.NEQ, "<": exp.LT, "<=": exp.LTE, ">": exp.GT, ">=": exp.GTE,
}  # fmt: skip
_MATCHES = frozenset(("like", "ilike", "in", "between"))
_TYPES = frozenset((
    "date", "timestamp", "boolean", "tinyint", "smallint", "integer", "int", "bigint", "double", "varchar", "decimal",
))  # fmt: skip
_OTHER_CALLS = {"rollup", "cube", "grouping", "row", "columns", "unnest", "try_cast", *SPECIAL, *OPERATORS}


class ExpressionBuilder(TokenBuilder, ABC):
    """Builds expressions; `query` is for who builds statements."""

    @abstractmethod
    def query(self) -> exp.Expr:
        """A query without parentheses around it."""

    # ---- operators, loosest first ------------------------------------------------------------------------------------

    def expression(self) -> exp.Expr:
        left = self._conjunction()
        while self.take("or"):
            left = exp.Or(this=left, expression=self._conjunction())
        return left

    def _conjunction(self) -> exp.Expr:
        left = self._negation()
        while self.take("and"):
            left = exp.And(this=left, expression=self._negation())
        return left

    def _negation(self) -> exp.Expr:
        return exp.Not(this=self._negation()) if self.take("not") else self._test()

    def _test(self) -> exp.Expr:
        """A comparison, or IS NULL. A second one behind it is left to who knows what it means: nobody takes it here."""
        left = self._sum_or_text()
        if self._is_match():
            left = self._match(left)
        elif self.take("is"):
            is_negated = self.take("not")
            self.expect("null")
            left = exp.Is(this=left, expression=exp.Null())
            return exp.Not(this=left) if is_negated else left
        kind = _COMPARISONS.get(self.key)
        if kind is None:
            return left
        self.next()
        right = self._sum_or_text()
        return kind(this=left, expression=self._match(right) if self._is_match() else right)

    def _is_match(self) -> bool:
        return self.key in _MATCHES or (self.key == "not" and self.peek() in _MATCHES)

    def _match(self, left: exp.Expr) -> exp.Expr:
        """LIKE, IN, BETWEEN."""
        is_negated = self.take("not")
        word = self.key
        self.next()
        if word in ("like", "ilike"):
            kind = exp.Like if word == "like" else exp.ILike
            right = self._sum_or_text()
            return kind(this=left, expression=right, negate=True) if is_negated else kind(this=left, expression=right)
        made: exp.Expr
        if word == "in":
            made = self._in(left)
        else:
            low = self._sum_or_text()
            self.expect("and")
            made = exp.Between(this=left, low=low, high=self._sum_or_text())
        return exp.Not(this=made) if is_negated else made

    def _in(self, left: exp.Expr) -> exp.Expr:
        if self.key != "(":
            raise NotPlainError
        if self._is_query():
            return exp.In(this=left, query=self._subquery())
        self.next()
        items = self._expressions()
        return exp.In(this=left, expressions=items)

    def _expressions(self) -> list[exp.Expr]:
        """Expressions up to a closing parenthesis."""
        items = [self.expression()]
        while self.take(","):
            items.append(self.expression())
        self.expect(")")
        return items

    def _sum_or_text(self) -> exp.Expr:
        left = self._sum()
        while self.take("||"):
            left = exp.DPipe(this=left, expression=self._sum(), safe=True)
        return left

    def _sum(self) -> exp.Expr:
        left = self._product()
        while (key := self.key) == "+" or key == "-":
            self.next()
            left = (exp.Add if key == "+" else exp.Sub)(this=left, expression=self._product())
        return left

    def _product(self) -> exp.Expr:
        left = self._signed()
        while (key := self.key) == "*" or key == "/":
            self.next()
            right = self._signed()
            if key == "*":
                left = exp.Mul(this=left, expression=right)
            else:
                left = exp.Div(this=left, expression=right, typed=False, safe=False)
        return left

    def _signed(self) -> exp.Expr:
        if self.take("-"):
            return exp.Neg(this=self._signed())
        made = self._primary()
        while self.take("::"):
            made = exp.Cast(this=made, to=self._type())
        return made

    # ---- what operators combine --------------------------------------------------------------------------------------

    def _primary(self) -> exp.Expr:
        key = self.key
        if key == NUMBERS:
            return self.number()
        if key == STRINGS:
            return self.string()
        if key == "(":
            return self._parentheses()
        if self.is_name():
            return self._call() if key != NAMES and self.peek() == "(" else self._column()
        match key:
            case "case":
                return self._case()
            case "cast":
                return self._cast()
            case "null":
                self.next()
                return exp.Null()
            case "true" | "false":
                self.next()
                return exp.Boolean(this=key == "true")
            case "exists":
                self.next()
                if not self._is_query():
                    raise NotPlainError
                return exp.Exists(this=self._in_parentheses())
            case "date" | "timestamp" if self.peek() == STRINGS:
                return self._typed_constant()
            case "interval":
                return self._interval()
            case "extract" | "substring" if self.peek() == "(":
                self.next()
                self.next()
                return self._extract() if key == "extract" else self._substring()
        if self.peek() == "(":
            return self._call()
        raise NotPlainError

    def _is_query(self) -> bool:
        """Whether a query stands in the parentheses that come. Where there are several it may be another thing."""
        at = self.at
        while self.keys[at] == "(":
            at += 1
        if self.keys[at] not in _BEGIN_QUERIES:
            return False
        if at != self.at + 1 or self.keys[at] not in QUERIES:
            raise NotPlainError
        return True

    def _in_parentheses(self) -> exp.Expr:
        self.next()
        made = self.query()
        self.expect(")")
        return made

    def _subquery(self) -> exp.Expr:
        return exp.Subquery(this=self._in_parentheses())

    def _parentheses(self) -> exp.Expr:
        if self._is_query():
            return self._subquery()
        self.next()
        made = exp.Paren(this=self.expression())
        self.expect(")")
        return made

    def _column(self) -> exp.Expr:
        name = self.name()
        if not self.take("."):
            return exp.Column(this=name)
        made = exp.Column(this=self.name(), table=name)
        if self.key == ".":
            raise NotPlainError
        return made

    def _call(self) -> exp.Expr:
        key = self.key
        if (
            key in RESERVED
            or (key in COLUMN_NAMES and key not in CALLED_COLUMN_NAMES)
            or key in _OTHER_CALLS
            or key.startswith("_")
            or self.kinds[self.first + self.at] != WORD
        ):
            raise NotPlainError
        call = self.placed(exp.Anonymous(this=self.text()))
        self.next()
        call.set("expressions", self._arguments(key))
        return call

    def _arguments(self, name: str) -> list[exp.Expr]:
        """What stands in the parentheses of a call, and the closing one."""
        if name in ("coalesce", "nullif"):  # which take values alone
            return self._expressions()
        if self.key == "*":
            made = [self.star()]
            self.expect(")")
            return made
        if self.take("distinct"):
            return [exp.Distinct(expressions=self._expressions())]
        if self.take(")"):
            return []
        return self._expressions()

    # ---- forms -------------------------------------------------------------------------------------------------------

    def _case(self) -> exp.Expr:
        self.next()
        operand = self.expression() if self.key != "when" else None
        branches: list[exp.Expr] = []
        while self.take("when"):
            condition = self.expression()
            self.expect("then")
            branches.append(exp.If(this=condition, true=self.expression()))
        if not branches:
            raise NotPlainError
        default = self.expression() if self.take("else") else None
        self.expect("end")
        return exp.Case(this=operand, ifs=branches, default=default)

    def _cast(self) -> exp.Expr:
        self.next()
        self.expect("(")
        value = self.expression()
        self.expect("as")
        made = exp.Cast(this=value, to=self._type())
        self.expect(")")
        return made

    def _type(self) -> exp.Expr:
        word = self.key
        if word not in _TYPES:
            raise NotPlainError
        self.next()
        parameters: list[exp.Expr] = []
        if word == "decimal":
            self.expect("(")
            parameters.append(exp.DataTypeParam(this=self.number()))
            while self.take(","):
                parameters.append(exp.DataTypeParam(this=self.number()))
            self.expect(")")
        kind = _type_of(word)
        return exp.DataType(this=kind, expressions=parameters or None, nested=False)

    def _typed_constant(self) -> exp.Expr:
        kind = _type_of(self.key)
        self.next()
        made = exp.Cast(this=self.string(), to=exp.DataType(this=kind, expressions=None, nested=False))
        if self.key == "::":  # sqlglot's parser casts the text first
            raise NotPlainError
        return made

    def _interval(self) -> exp.Expr:
        """``INTERVAL '3' MONTH``, ``INTERVAL 3 MONTH``."""
        self.next()
        amount: exp.Expr
        if not _INTEGER.fullmatch(self.text().strip("'")):
            raise NotPlainError
        if self.key == STRINGS:
            amount = self.string()
        elif self.key == NUMBERS:
            amount = exp.Literal(this=self.number().this, is_string=True)
        else:
            raise NotPlainError
        unit = self.key
        if unit not in UNITS:
            raise NotPlainError
        self.next()
        if self.key == "::" or (
            self.key == "+" and self.peek() in (STRINGS, NUMBERS)
        ):  # which sqlglot takes for an interval
            raise NotPlainError
        return exp.Interval(this=amount, unit=exp.Var(this=unit.upper()))

    def _extract(self) -> exp.Expr:
        unit = self.key
        if unit not in UNITS:
            raise NotPlainError
        self.next()
        self.expect("from")
        made = exp.Extract(this=exp.Var(this=unit.upper()), expression=self._sum_or_text())
        self.expect(")")
        return made

    def _substring(self) -> exp.Expr:
        value = self._sum_or_text()
        if self.take("from"):
            start = self._sum_or_text()
            length = self._sum_or_text() if self.take("for") else None
        else:
            self.expect(",")
            start = self._sum_or_text()
            length = self._sum_or_text() if self.take(",") else None
        self.expect(")")
        made = exp.Substring(this=value, start=start)
        if length is not None:
            made.set("length", length)
        return made


@cache
def _type_of(word: str) -> exp.DType:
    """sqlglot's type of a word."""
    kind: exp.DType = exp.DataType.build(word, dialect="duckdb").this
    return kind
