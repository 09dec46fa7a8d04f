"""PIVOT and UNPIVOT in DuckDB's grammar, as statements and behind a table in FROM; and the entries of a SELECT list.

sqlglot's parser reads a part of these forms. It is given none of them: what is read here is written for it as a SELECT over the
same table, whose list holds the parts, each behind a column that says what it is (`marked`). ``PIVOT t ON a USING sum(x)``
becomes ``FROM t SELECT <pivot>, <on>, a, <using>, sum(x)``, ``t PIVOT (...)`` a subquery of that kind. All tokens of the text
keep their order and places. `gquery.sql.reshape` reads the list.
"""

from __future__ import annotations

from abc import abstractmethod

from sqlglot import exp

from gquery.sql.grammar import nodes
from gquery.sql.grammar import query_nodes as query_nodes
from gquery.sql.grammar.expr import ExpressionReader
from gquery.sql.grammar.tokens import marked

_UNPIVOTS = frozenset(("unpivot", "pivot_longer"))
PIVOTS = frozenset(("pivot", "pivot_wider")) | _UNPIVOTS
Item = tuple[bool, list[exp.Expr] | None]
"""Whether an entry of FROM has joins, or is some in parentheses; its node and those of its joins, where all are there."""
_OPEN, _CLOSED = frozenset(("(", "[", "{", "case")), frozenset((")", "]", "}", "end"))


class PivotReader(ExpressionReader):
    """Reads the entries of a SELECT list, and pivots; `_item` and `_alias` are for who reads FROM."""

    @abstractmethod
    def _item(self, nested: bool = False) -> Item:
        """A table and its joins."""

    @abstractmethod
    def _alias(self) -> query_nodes.Alias:
        """``[AS] name [(columns)]``."""

    # ---- entries of a SELECT list ------------------------------------------------------------------------------------

    def _targets(self) -> list[exp.Expr] | None:
        return self.keep_list(self._entry)

    def _target(self) -> None:
        """An entry of the list of a pivot."""
        start, first = self.begin(), self.at
        self.keep_one(self._entry(), first, start)

    def _entry(self) -> exp.Expr | None:
        """An entry of the SELECT list, its name before or behind it; its tree where it is a plain one."""
        start, first = self.begin(), self.at
        made: exp.Expr | None = None
        if self.peek(1) == ":" and self.is_column_name():
            self.name(leaf=True)
            self.next()
            self.kept()
        elif self.word == "*":
            self.next()
            is_plain = self.star()
            if self.word in ("like", "ilike", "glob", "similar", "not"):
                self._match()
            elif is_plain:
                made = query_nodes.star(self.starts[first])
        else:
            value, behind, last = self.expression(star=True), self.at, self.begin()
            made = value
            if self.take("as"):
                made = nodes.alias(value, self.identifier(is_field=True))
                self.label(leaf=True, text=True)
            elif self.is_bare_alias():
                made = nodes.alias(value, self.identifier())
                self.leaf()
            if made is None and value is not None:
                self.keep([value], first, start, behind, last)
        self.end(start)
        return made

    # ---- statements --------------------------------------------------------------------------------------------------

    def pivot(self) -> None:
        """``PIVOT table [ON ...] [USING ...] [GROUP BY ...]``, ``UNPIVOT table ON ... [INTO NAME ... VALUE ...]``."""
        is_unpivot = self.word in _UNPIVOTS
        self.say("from")
        self._item()
        if is_unpivot:
            self._unpivot()
            return
        before: tuple[str, ...] = ("select", marked("pivot"))
        if self.word == "on":
            self.say(*before, ",", marked("on"), ",")
            self._pivot_column()
            while self.word == "," and self._says_next("on"):
                self._pivot_column()
            before = ()
        if self.word == "using":
            self.say(*before, ",", marked("using"), ",")
            self._using()
            before = ()
        if self.word == "group":
            self.say_before(*before)
            self._group_names()
        elif before:
            raise self.unexpected("ON, USING or GROUP BY")

    def _unpivot(self) -> None:
        if self.word != "on":
            raise self.unexpected("ON")
        self.say("select", marked("unpivot"), ",", marked("on"), ",")
        self._target()
        while self.word == "," and self._says_next("on"):
            self._target()
        if self.word != "into":
            return
        self.say()
        if self.word != "name":
            raise self.unexpected("NAME")
        self.say(",", marked("name"), ",")
        self.name(leaf=True)
        if self.word not in ("value", "values"):
            raise self.unexpected("VALUE")
        self.say(",", marked("value"), ",")
        self._names_in_parentheses()

    def _names_in_parentheses(self) -> None:
        """``a, b`` or ``(a, b)``, which is one row in the tree."""
        if self.take("("):
            start = self.begin()
            self.names(trailing=True)
            self.end(start)
            self.expect(")")
            return
        self.name(leaf=True)
        while self.word == "," and self._says_next("value"):
            self.name(leaf=True)

    def _says_next(self, mark: str) -> bool:
        """Goes over a comma. Whether something follows; then the mark stands before it."""
        comma = self.at
        self.next()
        follows = self.can_begin()
        self.edit(comma, (",", marked(mark), ",") if follows else ())
        return follows

    def _using(self) -> None:
        self._target()
        while self.word == "," and self._says_next("using"):
            self._target()

    def _group_names(self) -> None:
        """GROUP BY names of columns."""
        self.next()
        self.expect("by")
        if self.take("("):
            self.names(trailing=True)
            self.expect(")")
            return
        self.name(leaf=True)
        while self.word == ",":
            comma = self.at
            self.next()
            if not self.is_column_name():
                self.edit(comma, ())
                return
            self.name(leaf=True)

    def _pivot_column(self, needs_values: bool = False) -> None:
        """``expression [IN (values)]``."""
        self._stop = self._next_in()
        self.expression()
        self._stop = -1
        if self.word == "in":
            self._pivot_values(not needs_values)
        elif needs_values:
            raise self.unexpected("IN")

    def _next_in(self) -> int:
        """The IN of a pivot's column: the first one outside of parentheses, before what ends the column."""
        depth = 0
        for at in range(self.at, self.behind):
            word = self.words[at] if self.kinds[at] in ("word", "symbol") else ""
            depth += (word in _OPEN) - (word in _CLOSED)
            if depth < 0 or (depth == 0 and word in (",", "using", "group")):
                return -1
            if depth == 0 and word == "in":
                return at
        return -1

    def _pivot_values(self, is_statement: bool) -> None:
        self.say()
        if self.word != "(":
            raise self.unexpected("values in parentheses")
        if is_statement and self.starts_query():
            self.say_before(",", marked("values"), ",")
            self._subquery_in_parentheses()
            return
        self.say(",", marked("value"), ",")
        self._target()
        while self.word == "," and self._says_next("value"):
            self._target()
        if self.word != ")":
            raise self.unexpected(")")
        self.say()

    # ---- behind a table ----------------------------------------------------------------------------------------------

    def pivoted(self, first: int, start: int) -> None:
        """``[UN]PIVOT (...)`` behind the table that begins with token ``first``, and the name of all that."""
        self.edit(first, ("(", "from"), is_before=True)
        is_unpivot = self.word in _UNPIVOTS
        self.say()
        nulls = self.word if is_unpivot and self.word in ("include", "exclude") else ""
        if nulls:
            self.say()
            if self.word != "nulls":
                raise self.unexpected("NULLS")
            self.say()
        if self.word != "(":
            raise self.unexpected("(")
        if is_unpivot:
            self._unpivoted("unpivot_nulls" if nulls == "include" else "unpivot")
        else:
            self._pivoted()
        self.expect(")")
        self._alias()
        self.end(start)

    def _pivoted(self) -> None:
        self.say("select", marked("pivot"), ",", marked("using"), ",")
        self._using()
        if self.word != "for":
            raise self.unexpected("FOR")
        self.say(",", marked("on"), ",")
        self._pivot_column(needs_values=True)
        while self.word not in ("group", ")"):
            self.say_before(",", marked("on"), ",")
            self._pivot_column(needs_values=True)
        if self.word == "group":
            self._group_names()

    def _unpivoted(self, form: str) -> None:
        self.say("select", marked(form), ",", marked("value"), ",")
        self._names_in_parentheses()
        if self.word != "for":
            raise self.unexpected("FOR")
        self.say(",", marked("name"), ",")
        self.name(leaf=True)
        if self.word != "in":
            raise self.unexpected("IN")
        self.say()
        if self.word != "(":
            raise self.unexpected("(")
        self.say(",", marked("on"), ",")
        self._target()
        while self.word == "," and self._says_next("on"):
            self._target()
        if self.word != ")":
            raise self.unexpected(")")
        self.say()
