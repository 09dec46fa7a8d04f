"""Values of DuckDB's grammar: names, constants, functions' calls, and what stands behind them.

The base of `sql.grammar.expr`, which has the operators between them.
"""

from __future__ import annotations

from abc import abstractmethod

from sqlglot import exp

from gquery.expression.keywords import CONSTANTS
from gquery.sql.grammar import nodes
from gquery.sql.grammar import query_nodes as query_nodes
from gquery.sql.grammar.forms import SPECIAL, FormReader
from gquery.sql.grammar.tokens import ARRAY, METHOD, marked
from gquery.sql.lexer import END, NUMBER, PARAMETER, QUOTED, STRING, WORD

LAMBDAS = frozenset((  # whose arguments may be lambda functions; elsewhere an arrow is that of JSON
    "list_transform", "array_transform", "list_apply", "array_apply", "apply", "list_filter", "array_filter", "filter",
    "list_reduce", "array_reduce", "reduce", "columns",
))  # fmt: skip
_SCHEMAS = ("main", "system", "pg_catalog")  # main.upper(s) is a function's name and no method
_QUERIES = ("select", "with", "from", "values")
_POSTFIX = frozenset(("::", "[", ".", "collate", "at"))
# words that may begin something else than a name, a call or a constant with its type
_BEGIN_OTHERS = frozenset(("row", "array", "map", "case", "exists", "cast", "try_cast", "interval", *CONSTANTS, *SPECIAL))
_SPECIAL_METHODS = ("position", "substring", "trim")


class ValueReader(FormReader):
    """Reads values; `expression` is for who reads operators, `query` for who reads statements."""

    @abstractmethod
    def starts_query(self) -> bool:
        """Whether a query begins here, in parentheses or not."""

    @abstractmethod
    def ctes(self) -> exp.Expr | None:
        """WITH and its queries; its node where all of it is plain."""

    @abstractmethod
    def query(self, start: int | None = None) -> exp.Expr | None:
        """A query without parentheses around it; ``start`` is that of CTEs before it. Its node where all of it is plain."""

    def _subquery_in_parentheses(self) -> exp.Expr | None:
        """The query that stands in them."""
        self.expect("(")
        made = self.query()
        self.expect(")")
        return made

    def _primary_expression(self) -> exp.Expr | None:
        """What operators combine."""
        kind, word = self.kind, self.word
        if kind == WORD and word not in _BEGIN_OTHERS:  # most
            return self._named()
        if kind in (NUMBER, STRING):
            start = self.starts[self.at]
            made = nodes.constant(self.sql[start : self.ends[self.at] + 1], kind, start)
            self.leaf()
            return made
        if kind == PARAMETER:
            self.next()
        elif kind == QUOTED:
            return self._named()
        elif word == "(" or (word == "row" and self.peek(1) == "("):
            return self._row()
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
            return nodes.word(word)
        elif word == "case":
            return self._case()
        elif word == "exists" and self.peek(1) == "(":
            self.next()
            return query_nodes.exists(self._subquery_in_parentheses())
        elif word in ("cast", "try_cast"):
            return self._cast()
        elif word == "interval" and self._is_interval():
            return self._interval()
        elif word in SPECIAL and self.peek(1) == "(":
            place, name = self.starts[self.at], self.sql[self.starts[self.at] : self.ends[self.at] + 1]
            self.next()
            self.next()
            form = SPECIAL[word](self)
            self.expect(")")
            if not isinstance(form, list):
                return form
            self.reading.calls.add(place)
            return nodes.call(name, place, form)
        else:
            return self._named()
        return None

    def _postfix(
        self, start: int, first: int, may_cast: bool = True, value: exp.Expr | None = None
    ) -> exp.Expr | None:
        """Casts, slices, fields and methods behind a value, whose first token is ``first``. The value's node with casts, where it
        is there and nothing else is behind it."""
        made, is_plain = value, True
        if self.word not in _POSTFIX:
            return made
        has_methods = self.kinds[self.at - 1] not in (NUMBER, STRING, PARAMETER)
        while True:
            if self.word == "::" and not may_cast:  # sqlglot would cast the list
                raise self.unexpected("parentheses")
            if self.take("::"):
                made = query_nodes.cast(made, self._type())
                has_methods = False
                continue
            if self.word == "[":
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
                if self.kind != STRING and self.word != "null":
                    raise self.unexpected("the name of a zone")
                self.go(self.at + 1) if self.word == "null" else self.leaf()
                if self.word == "::":  # it would be a cast of the zone's name
                    raise self.unexpected("parentheses")
                self.end(start)
            else:
                return made if is_plain else None
            is_plain = False

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

    def _row(self) -> exp.Expr | None:
        """What stands in parentheses; a row of several values may have ROW before it, which sqlglot does not see."""
        if self.word == "(":
            return self._parentheses()
        row, start = self.at, self.begin()
        self.next()
        self.next()
        count = len(self.expressions())
        self.expect(")")
        self.end(start)
        if count > 1:
            self.edit(row, ())
        else:  # of which the binder says that it is no function
            self.reading.calls.add(self.starts[row])
        return None

    def _parentheses(self) -> exp.Expr | None:
        mark = self.mark()
        if self.starts_query() and self.tries(self._subquery_in_parentheses, mark):
            return query_nodes.subquery(self.tried)
        self.next()
        start = self.begin()
        made = nodes.parentheses(self.expressions())
        self.expect(")")
        self.end(start)
        return made

    def _star_of_table(self) -> tuple[bool, exp.Expr | None]:
        """Goes over ``t.*`` where that is what comes. Whether it was, and its node where that is all."""
        at = self.at
        while self.kinds[at] in (WORD, QUOTED) and self.words[at + 1] == ".":
            at += 2
        if at == self.at or at >= self.behind or self.words[at] != "*" or self.kinds[at] == STRING:
            return False, None
        table = self.identifier() if at == self.at + 2 else None
        self.name(leaf=True)
        while self.at < at - 1:
            self.next()
            self.label(leaf=True)
        self.next()
        self.next()
        is_plain = self.star() and table is not None
        return True, query_nodes.star(self.starts[at], table) if is_plain else None

    def _named(self) -> exp.Expr | None:
        """A column, a function's call, or a constant with its type before it."""
        if self._is_typed_constant():
            first = self.at
            to, start = self._type(), self.starts[self.at]
            text = nodes.constant(self.sql[start : self.ends[self.at] + 1], STRING, start)
            self.leaf()
            if self.words[first].strip('"').lower() == "json":  # of which sqlglot makes a call
                self.edit(first, ("cast", "("))
                self.say_before("as", "json", ")")
                return None
            return query_nodes.cast(text, to) if self._end_typed(first) else None
        if self.peek(1) == "(" and self.is_function_name():
            return self._call()
        if self.word in _SCHEMAS and self.peek(1) == "." and self.peek(3) == "(":
            self.say()
            self.say()
            self._named()
            return None
        name, table, names = self.identifier(), None, 1
        self.name(leaf=True)
        while self.word == "." and self.peek(2) != "(":
            self.next()
            name, table, names = self.identifier(is_field=True), name, names + 1
            self.label(leaf=True)
        return nodes.column(name, table) if names == 1 or (names == 2 and table is not None) else None

    def _call(self) -> exp.Expr | None:
        start, first = self.begin(), self.at
        if self.word == "columns":
            self.next()
            self.expect("(")
            if self.take("*"):
                self.star()
            elif self.word == "lambda":
                self._argument(False, True)
            else:
                self.expression(star=True)
            self.expect(")")
            self.end(start)
            return None
        place = self.starts[first]
        name = "" if self.kind == QUOTED else self.sql[place : self.ends[first] + 1]
        if self.word in ("coalesce", "nullif"):  # constructs of the grammar: they take values alone
            self.function_name()
            made = nodes.call(name, place, self.expressions())
            self.expect(")")
            self.end(start)
            return made
        self.function_name()
        made = nodes.call(name, place, self.arguments())
        if self.word == "within" and self.peek(1) == "group":
            made = None
            self.next()
            self.next()
            self.expect("(")
            self.order()
            self.expect(")")
        if self.word == "filter" and self.peek(1) == "(":
            self.next()
            self.next()
            has_where = self.take("where")
            condition = self.expression()
            made = query_nodes.filtered(made, condition) if has_where else None
            self.expect(")")
        self.end(start)
        if self.word == "over":
            self.next()
            if self.word == "(":
                made = self.window(made)
            else:
                self.name(leaf=True)
                made = None
            self.end(start)
        return made

    def function_name(self) -> None:
        """The name of a function that is called, and the parenthesis behind it."""
        if self.kind == QUOTED and self.words[self.at].lower() == '"coalesce"':
            raise self.unexpected("COALESCE without quotes")  # a construct of the grammar, and no function
        self.reading.calls.add(self.starts[self.at])
        self.next()
        self.next()

    def arguments(self, named: bool = False) -> list[exp.Expr | None] | None:
        """What stands in the parentheses of a call, up to the closing one: its nodes, None where there is more than values.
        ``named``: of a table function."""
        has_nulls = is_plain = False
        takes_lambda = self.words[self.at - 2] in LAMBDAS
        args: list[exp.Expr | None] = []
        if self.take(")"):
            return args
        if self.word == "*" and self.peek(1) == ")":
            args.append(nodes.star(self.starts[self.at]))
            self.next()
            is_plain = True
        elif self.word == "order" and self.peek(1) == "by":
            self.order()
        else:
            is_distinct = self.take("distinct")
            is_plain = is_distinct or not self.take("all")
            args.append(self._argument(named, takes_lambda))
            while self.take(","):
                args.append(self._argument(named, takes_lambda))
            if is_distinct:
                args = [nodes.distinct(args)]
            if self.word == "order":
                self.order()
                is_plain = False
            if self.word in ("ignore", "respect") and self.peek(1) == "nulls":
                self.next()
                self.next()
                has_nulls = True
        self.expect(")")
        if has_nulls and self.word != "over":
            raise self.unexpected("OVER, which IGNORE NULLS and RESPECT NULLS need")
        return args if is_plain and not has_nulls else None

    def _argument(self, named: bool, takes_lambda: bool) -> exp.Expr | None:
        is_plain = True
        if self.word == "lambda":
            self.next()
            self.names()
            self.expect(":")
            is_plain = False
        elif takes_lambda and self.kind == WORD and self.peek(1) == "->":
            self.name(leaf=True)
            self.next()
            is_plain = False
        elif takes_lambda and self.word == "(" and self._are_parameters():
            self.next()
            self.names()
            self.expect(")")
            self.expect("->")
            is_plain = False
        if self.peek(1) in (":=", "=>") or (named and self.peek(1) == "="):
            self.label()
            self.next()
            is_plain = False
        made = self.listed()
        return made if is_plain else None

    def _are_parameters(self) -> bool:
        """Whether the parenthesis here holds the parameters of a lambda function: ``(x, i) -> x + i``."""
        at = self.at + 1
        while at < self.behind and self.kinds[at] in (WORD, QUOTED) and self.words[at + 1] == ",":
            at += 2
        return self.words[at + 1 : at + 3] == [")", "->"]

    def listed(self) -> exp.Expr | None:
        """An expression among others, or ``*COLUMNS(...)``, which stands for several."""
        if self.word == "*" and self.peek(1) == "columns" and self.peek(2) == "(":
            self.next()
            return self._call()
        return self.expression()

    def order(self) -> exp.Expr | None:
        """ORDER BY; its node where all of it is plain."""
        self.next()
        self.expect("by")
        if self.take("all"):
            self._direction()
            return None
        keys = [self._order_key()]
        while self.take(","):
            keys.append(self._order_key())
        return query_nodes.order(keys)

    def _order_key(self) -> exp.Expr | None:
        key = self.expression()
        return query_nodes.ordered(key, *self._direction())

    def _direction(self) -> tuple[bool | None, bool]:
        """Whether the order is descending, None where that is not said; whether NULLS FIRST is."""
        descending = None if not self.take("asc") else False
        if descending is None and self.take("desc"):
            descending = True
        is_first = False
        if self.take("nulls"):
            is_first = self.take("first")
            if not is_first:
                self.expect("last")
        return descending, is_first
