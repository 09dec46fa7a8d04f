"""FROM in DuckDB's grammar: tables, subqueries, table functions, VALUES, and the joins between them.

The base of `sql.grammar`, which says what this is for.
"""

from __future__ import annotations

from sqlglot import exp

from gquery.sql.grammar import nodes
from gquery.sql.grammar import query_nodes as query_nodes
from gquery.sql.grammar.pivot import PIVOTS, Item, PivotReader
from gquery.sql.lexer import NUMBER, QUOTED, STRING, WORD

SHOWS = frozenset(("describe", "desc", "show", "summarize"))
QUERIES = frozenset(("select", "with", "values", "from", "table")) | PIVOTS | SHOWS
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
        return self.kinds[at] == "word" and self.words[at] in QUERIES

    def _table_name(self) -> exp.Expr | None:
        """``name``, ``schema.name``, ``catalog.schema.name``."""
        names = [self.identifier()]
        self.name(leaf=True)
        while self.take("."):
            names.append(self.identifier(is_field=True))
            self.label(leaf=True)
        return query_nodes.table(names)

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

    def _from(self, is_first: bool = False) -> list[exp.Expr] | None:
        """``is_first``: FROM stands before SELECT, or there is none; else DuckDB takes a comma at the end. The node of the first
        entry, and those of all joins with it, where all are there."""
        found = self._item()[1]
        while self.take(","):
            if not is_first and not self._can_begin_item():
                break
            more = self._item()[1]
            if found is None or more is None:
                found = None
            else:
                joined = query_nodes.join(more[0], {}, None)
                found = None if joined is None else [*found, joined, *more[1:]]
        return found

    def _can_begin_item(self) -> bool:
        begins = self.kind == STRING or self.word in ("(", "values", "lateral")
        return begins or self.is_column_name() or self.is_function_name()

    def _item(self, nested: bool = False) -> Item:
        """A table and its joins; ``nested``: in parentheses, or behind a JOIN whose ON comes later, where they are one in
        the tree, too."""
        first, start = self.at, self.begin()
        joined, table = self._primary()
        found: list[exp.Expr] | None = None if table is None else [table]
        if not (nested and self._is_join()):
            self.end(start)
        while True:
            if self.word in PIVOTS:
                joined, found = False, None
                self.pivoted(first, start)
            elif self._is_join():
                joined = True
                join = self._join()
                found = None if found is None or join is None else [*found, join]
            else:
                break
        if nested:
            self.end(start)
        return joined, found

    def _is_join(self) -> bool:
        return self.kind == "word" and self.word in _JOINS

    def _join(self) -> exp.Expr | None:
        start = self.begin()
        words: dict[str, str] = {}
        made: exp.Expr | None = None
        if self.take("positional"):
            self.expect("join")
            self._primary()
        elif self.take("cross"):
            self.expect("join")
            made = query_nodes.join(self._primary()[1], {"kind": "CROSS"}, None)
        else:
            is_natural = self.take("natural")
            is_asof = not is_natural and self.take("asof")
            if self.word in _JOIN_SIDES:
                words["side"] = self.word.upper()
                self.next()
                if self.take("outer"):
                    words["kind"] = "OUTER"
            elif self.word in ("inner", "semi", "anti"):
                words["kind"] = self.word.upper()
                self.next()
            self.expect("join")
            if is_natural:
                self._primary()
            else:
                _, found = self._item(nested=True)
                condition = self._condition()
                if found is not None and len(found) == 1 and not is_asof:
                    made = query_nodes.join(found[0], words, condition)
        self.end(start)
        return made

    def _condition(self) -> tuple[str, exp.Expr | list[exp.Expr] | None]:
        """ON or USING, and the node or nodes of what stands behind it."""
        if self.take("on"):
            return "on", self.kept()
        self.expect("using", "ON or USING")
        self.expect("(")
        names = query_nodes.whole(self.names(trailing=True))
        self.expect(")")
        return "using", names

    def _primary(self) -> tuple[bool, exp.Expr | None]:
        """One entry of FROM without its joins. Whether it is a join in parentheses; its node."""
        joined, made = False, None
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
                made = query_nodes.aliased(self.tried, self._alias())
            else:
                self.next()
                if not self._item(nested=True)[0]:
                    raise self.unexpected()
                self.expect(")")
                self._alias()
                joined = True
        elif self.take("values"):
            self._rows()
            if not self._alias()[0]:
                raise self.unexpected()
        elif self.kind == STRING:
            place = self.starts[self.at]
            made = query_nodes.file(nodes.constant(self.sql[place : self.ends[self.at] + 1], STRING, place))
            self.leaf()
            made = query_nodes.aliased(made, self._alias())
        elif self.peek(1) == "(" and self.is_function_name():
            place = self.starts[self.at]
            name = "" if self.kind == QUOTED else self.sql[place : self.ends[self.at] + 1]
            self.function_name()
            made = query_nodes.table_function(nodes.call(name, place, self.arguments(named=True)))
            if self._ordinality():
                made = None
            made = query_nodes.aliased(made, self._alias())
        else:
            made = query_nodes.aliased(self._table_name(), self._alias())
        if not joined and self.take("tablesample"):
            self.sample()
            made = None
        return joined, made

    def _ordinality(self) -> bool:
        is_there = self.take("with")
        if is_there:
            self.expect("ordinality")
        return is_there

    def _subquery(self) -> exp.Expr | None:
        return query_nodes.subquery(self._subquery_in_parentheses())

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

    def _alias(self) -> query_nodes.Alias:
        """``[AS] name [(columns)]``."""
        name: exp.Expr | None = None
        columns: list[exp.Expr] | None = []
        if self.take("as"):
            if self.kind == STRING:
                self.leaf()
            else:
                name = self.identifier(is_field=True)
                self.name(leaf=True)
        elif self.is_column_name():
            name = self.identifier()
            self.leaf()
        else:
            return False, None
        if self.take("("):
            columns = query_nodes.whole(self.names())
            self.expect(")")
        return True, query_nodes.table_alias(name, columns)
