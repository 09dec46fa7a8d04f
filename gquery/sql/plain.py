"""The tree of a plain query, made while its tokens are read: the same that sqlglot makes, in a quarter of the time.

Most queries are SELECTs of names, constants, operators, calls, joins and subqueries. `gquery.sql.grammar` would read these once,
sqlglot's parser once more, and `gquery.sql.covered` would compare what they found. Here one pass reads them and builds the
tree, by DuckDB's grammar and only where sqlglot reads the same. Whatever else stands in a text, and whatever is wrong with it,
is left to these three. Tests compare the trees, node by node, for all queries that there are.
"""

from __future__ import annotations

import re

from sqlglot import exp

from gquery.sql.lexer import SYMBOL, WORD, Lexed
from gquery.sql.plain_expressions import QUERIES, ExpressionBuilder
from gquery.sql.plain_tokens import KEYS, NUMBERS, NotPlainError

_OTHER = re.compile(r"--|/\*|[^\n\t\r -~]|\\|\$")  # what sqlglot's lexer may take for something else
_SIDES = frozenset(("left", "right", "full"))


def plain_tree(sql: str, tokens: Lexed, first: int, behind: int) -> exp.Expr | None:
    """The tree of the statement from the token ``first`` to the one before ``behind``; None where it is no plain query."""
    if tokens.words[first] not in QUERIES or _OTHER.search(sql):
        return None
    kinds = tokens.kinds
    places = range(first, behind)
    keys = [tokens.words[n] if kinds[n] == WORD or kinds[n] == SYMBOL else KEYS[kinds[n]] for n in places]
    builder = QueryBuilder(sql, tokens, first, keys)
    try:
        tree = builder.query()
    except NotPlainError:
        return None
    return tree if builder.at == len(keys) else None


class QueryBuilder(ExpressionBuilder):
    """Builds queries; `ExpressionBuilder` builds what stands in them."""

    def query(self) -> exp.Expr:
        """``[WITH] terms [ORDER BY] [LIMIT] [OFFSET]``."""
        ctes = self._ctes() if self.take("with") else None
        made = self._term()
        while self.take("union"):
            distinct = not self.take("all")
            made = exp.Union(this=made, distinct=distinct, expression=self._term())
        if self.key == "order":
            self._put(made, "order", exp.Order(expressions=self._order()))
        for clause, kind in (("limit", exp.Limit), ("offset", exp.Offset)):
            if self.take(clause):
                self._put(made, clause, kind(expression=self._count()))
        if ctes is not None:
            self._put(made, "with_", ctes)
        return made

    def _put(self, query: exp.Expr, name: str, part: exp.Expr) -> None:
        if isinstance(query, exp.Subquery):
            raise NotPlainError
        query.set(name, part)

    def _ctes(self) -> exp.With:
        ctes: list[exp.Expr] = []
        while True:
            alias = self._table_alias()
            self.expect("as")
            self.expect("(")
            ctes.append(exp.CTE(this=self.query(), alias=alias))
            self.expect(")")
            if not self.take(","):
                return exp.With(expressions=ctes)

    def _term(self) -> exp.Expr:
        if self.take("select"):
            return self._select()
        if self.key == "(" and self.peek() == "select":
            self.next()
            made = exp.Subquery(this=self.query())
            self.expect(")")
            return made
        raise NotPlainError

    def _order(self) -> list[exp.Expr]:
        self.next()
        self.expect("by")
        keys: list[exp.Expr] = []
        while True:
            e = self.expression()
            descending = True if self.take("desc") else False if self.take("asc") else None
            nulls_first = False
            if self.take("nulls"):
                nulls_first = self.take("first")
                if not nulls_first:
                    self.expect("last")
            keys.append(exp.Ordered(this=e, desc=descending, nulls_first=nulls_first))
            if not self.take(","):
                return keys

    def _count(self) -> exp.Expr:
        """The number of rows of LIMIT and OFFSET."""
        if self.key != NUMBERS:
            raise NotPlainError
        return self.number()

    # ---- SELECT --------------------------------------------------------------------------------------------------------

    def _select(self) -> exp.Expr:
        distinct = exp.Distinct(on=None) if self.take("distinct") else None
        targets = [self._target()]
        while self.take(","):
            targets.append(self._target())
        # LIMIT comes last, and has its place among the arguments here
        made = exp.Select(distinct=distinct, expressions=targets, limit=None)
        if self.take("from"):
            source = self._source()
            made.set("from_", exp.From(this=source))
            if joins := self._joins():
                made.set("joins", joins)
        if self.take("where"):
            made.set("where", exp.Where(this=self.expression()))
        if self.take("group"):
            self.expect("by")
            made.set("group", exp.Group(expressions=self._keys()))
        if self.take("having"):
            made.set("having", exp.Having(this=self.expression()))
        return made

    def _keys(self) -> list[exp.Expr]:
        """The keys of GROUP BY."""
        keys: list[exp.Expr] = []
        while True:
            if self.key == "(":
                raise NotPlainError  # of several keys, or of none
            keys.append(self.expression())
            if not self.take(","):
                return keys

    def _target(self) -> exp.Expr:
        """An entry of the SELECT list."""
        if self.key == "*":
            return self.star()
        if self.is_table_star():
            table = self.name()
            self.next()
            return exp.Column(this=self.star(), table=table)
        e = self.expression()
        if self.take("as"):
            return exp.Alias(this=e, alias=self.name())
        return exp.Alias(this=e, alias=self.name()) if self.is_bare_alias() else e

    # ---- FROM ----------------------------------------------------------------------------------------------------------

    def _source(self) -> exp.Expr:
        """A table or a subquery, with its alias."""
        made: exp.Expr
        if self.take("("):
            if self.key not in QUERIES:
                raise NotPlainError
            made = exp.Subquery(this=self.query())
            self.expect(")")
        else:
            made = exp.Table(this=self.name())
        if self.take("as") or self.is_name():
            made.set("alias", self._table_alias())
        return made

    def _table_alias(self) -> exp.TableAlias:
        """``name [(columns)]``."""
        name = self.name()
        return exp.TableAlias(this=name, columns=self._names() if self.take("(") else None)

    def _names(self) -> list[exp.Expr]:
        """Names up to a closing parenthesis."""
        names: list[exp.Expr] = [self.name()]
        while self.take(","):
            names.append(self.name())
        self.expect(")")
        return names

    def _joins(self) -> list[exp.Expr]:
        joins: list[exp.Expr] = []
        while (made := self._join()) is not None:
            joins.append(made)
        return joins

    def _join(self) -> exp.Expr | None:
        if self.take(","):
            return exp.Join(this=self._source())
        if self.take("cross"):
            self.expect("join")
            return exp.Join(this=self._source(), kind="CROSS")
        names: dict[str, str] = {}
        if self.key in _SIDES:
            names["side"] = self.key.upper()
            self.next()
            if self.take("outer"):
                names["kind"] = "OUTER"
        elif self.take("inner"):
            names["kind"] = "INNER"
        elif self.key != "join":
            return None
        self.expect("join")
        source = self._source()
        if self.take("on"):
            return exp.Join(this=source, **names, on=self.expression())
        self.expect("using")
        self.expect("(")
        return exp.Join(this=source, **names, using=self._names())
