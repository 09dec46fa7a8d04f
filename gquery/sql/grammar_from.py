"""FROM in DuckDB's grammar: tables, subqueries, table functions, VALUES, and the joins between them.

The base of `sql.grammar`, which says what this is for.
"""

from __future__ import annotations

from gquery.sql.grammar_pivot import PIVOTS, PivotReader
from gquery.sql.lexer import NUMBER, STRING, WORD

SHOWS = frozenset(("describe", "desc", "show", "summarize"))
_QUERY = frozenset(("select", "with", "values", "from", "table")) | PIVOTS | SHOWS
_JOIN_SIDES = frozenset(("left", "right", "full"))
_JOINS = _JOIN_SIDES | {"join", "inner", "semi", "anti", "asof", "cross", "natural", "positional"}


class FromReader(PivotReader):
    """Reads FROM clauses; `query` is for who reads statements."""

    _opened_from = _opened_to = 0  # the parentheses that were last looked behind: from the first one to the last

    def starts_query(self) -> bool:
        """Whether a query begins here, in parentheses or not."""
        at = self.at
        if not self._opened_from <= at < self._opened_to:  # else what was found behind this run of them holds
            while self.words[at] == "(" and at < self.behind:
                at += 1
            self._opened_from, self._opened_to = self.at, at
        at = self._opened_to
        return self.kinds[at] == "word" and self.words[at] in _QUERY

    def _table_name(self) -> None:
        """``name``, ``schema.name``, ``catalog.schema.name``."""
        self.name(leaf=True)
        while self.take("."):
            self.label(leaf=True)

    def _rows(self) -> None:
        """The rows of VALUES."""
        while True:
            self.expect("(")
            start = self.begin()
            self.expressions(trailing=True)
            self.end(start)
            self.expect(")")
            if not self.take(",") or self.word != "(":
                return

    def _from(self, is_first: bool = False) -> None:
        """``is_first``: FROM stands before SELECT, or there is none; else DuckDB takes a comma at the end."""
        self._item()
        while self.take(","):
            if not is_first and not self._can_begin_item():
                return
            self._item()

    def _can_begin_item(self) -> bool:
        begins = self.kind == STRING or self.word in ("(", "values", "lateral")
        return begins or self.is_column_name() or self.is_function_name()

    def _item(self, nested: bool = False) -> bool:
        """A table and its joins; ``nested``: in parentheses, or behind a JOIN whose ON comes later, where they are one in
        the tree, too. Whether there was a join."""
        first, start = self.at, self.begin()
        joined = self._primary()
        if not (nested and self._is_join()):
            self.end(start)
        while True:
            if self.word in PIVOTS:
                joined = False
                self.pivoted(first, start)
            elif self._is_join():
                joined = True
                self._join()
            else:
                break
        if nested:
            self.end(start)
        return joined

    def _is_join(self) -> bool:
        return self.kind == "word" and self.word in _JOINS

    def _join(self) -> None:
        start = self.begin()
        if self.take("cross") or self.take("positional"):
            self.expect("join")
            self._primary()
        else:
            is_natural = self.take("natural")
            if not is_natural:
                self.take("asof")
            if self.word in _JOIN_SIDES:
                self.next()
                self.take("outer")
            elif self.word in ("inner", "semi", "anti"):
                self.next()
            self.expect("join")
            if is_natural:
                self._primary()
            else:
                self._item(nested=True)
                self._condition()
        self.end(start)

    def _condition(self) -> None:
        if self.take("on"):
            self.kept()
        else:
            self.expect("using", "ON or USING")
            self.expect("(")
            self.names(trailing=True)
            self.expect(")")

    def _primary(self) -> bool:
        """One entry of FROM without its joins. Whether it is a join in parentheses."""
        joined = False
        if self.take("lateral"):
            if self.word == "(":
                self._subquery()
            else:
                self.function_name()
                self.arguments(named=True)
                self._ordinality()
            self._alias()
        elif self.word == "(" and self.kind != STRING:
            mark = self.mark()
            if self.starts_query() and self.tries(self._subquery, mark):
                self._alias()
            else:
                self.next()
                if not self._item(nested=True):
                    raise self.unexpected()
                self.expect(")")
                self._alias()
                joined = True
        elif self.take("values"):
            self._rows()
            if not self._alias():
                raise self.unexpected()
        elif self.kind == STRING:
            self.leaf()
            self._alias()
        elif self.peek(1) == "(" and self.is_function_name():
            self.function_name()
            self.arguments(named=True)
            self._ordinality()
            self._alias()
        else:
            self._table_name()
            self._alias()
        if not joined and self.take("tablesample"):
            self.sample()
        return joined

    def _ordinality(self) -> None:
        if self.take("with"):
            self.expect("ordinality")

    def _subquery(self) -> None:
        self.expect("(")
        self.query()
        self.expect(")")

    def sample(self) -> None:
        """What stands behind TABLESAMPLE or USING SAMPLE."""
        if self.kind == WORD:  # a method
            self.next()
            self.expect("(")
            self._size()
            self.expect(")")
            if self.take("repeatable"):
                self.expect("(")
                self._number()
                self.expect(")")
        else:
            self._size()
            if self.take("("):
                self.label()
                if self.take(","):
                    self._number()
                self.expect(")")

    def _size(self) -> None:
        self._number()
        if not self.take("%") and not self.take("percent"):
            self.take("rows")

    def _number(self) -> None:
        if self.kind != NUMBER:
            raise self.unexpected("a number")
        self.leaf()

    def _alias(self) -> bool:
        """``[AS] name [(columns)]``."""
        if self.take("as"):
            if self.kind == STRING:
                self.leaf()
            else:
                self.name(leaf=True)
        elif self.is_column_name():
            self.leaf()
        else:
            return False
        if self.take("("):
            self.names()
            self.expect(")")
        return True
