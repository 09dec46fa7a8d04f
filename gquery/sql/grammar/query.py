"""Queries in DuckDB's grammar, and SET: what most statements are.

The base of what reads all others (`sql.grammar.statements`), which a process imports with the first of them; `sql.grammar`
says what this is for.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from gquery.errors import NotSupportedError, point_at
from gquery.expression.keywords import CONSTANTS
from gquery.sql.grammar import nodes
from gquery.sql.grammar import query_nodes as query_nodes
from gquery.sql.grammar.from_clause import SHOWS, FromReader
from gquery.sql.grammar.nodes import MULTIPLY
from gquery.sql.grammar.pivot import PIVOTS
from gquery.sql.grammar.tokens import marked
from gquery.sql.lexer import NUMBER, STRING


class QueryReader(FromReader):
    """Reads queries; `gquery.sql.grammar.expr.ExpressionReader` reads what stands in them."""

    def statement(self) -> None:
        """A query or SET."""
        self.reading.tree = self._set() if self.word == "set" else self.query()

    def _set(self) -> exp.Expr | None:
        self.next()
        name = self.identifier()
        self.label()
        if not self.take("="):
            self.expect("to")
        sign = self.take("-")
        value: exp.Expr | None = None
        if self.kind in (NUMBER, STRING) and not (sign and self.kind == STRING):
            start = self.starts[self.at]  # the value of an option is no expression
            value = nodes.constant(self.sql[start : self.ends[self.at] + 1], self.kind, start)
            self.next()
        elif sign:
            raise self.unexpected()
        else:
            value = nodes.word(self.word) if self.word in CONSTANTS else None
            self.label()
        return query_nodes.option(name, nodes.negative(value) if sign else value)

    def not_supported(self, what: str) -> NotSupportedError:
        """The error of something that is read and not run, at the next token."""
        return NotSupportedError(f"not supported: {what}\n{point_at(self.sql, self.starts[self.at])}")

    # ---- queries -----------------------------------------------------------------------------------------------------

    def query(self, start: int | None = None) -> exp.Expr | None:
        """``[WITH] terms [ORDER BY] [LIMIT]``; ``start`` is that of CTEs before it. The query's node where all of it is plain."""
        if self.word in SHOWS:
            self._show()
            return None
        start = self.begin() if start is None else start
        is_values = self.word == "values"
        ctes = {"with_": self.ctes()} if self.word == "with" else {}
        made = self._terms()
        made = query_nodes.with_clauses(made, self._order_and_limit() | ctes)
        if not is_values:  # one node of the tree with its alias
            self.end(start)
        return made

    def _show(self) -> None:
        """``DESCRIBE``, ``SHOW`` or ``SUMMARIZE`` of a table or query, written as a SELECT over it (`sql.grammar.pivot`)."""
        form = "summarize" if self.word == "summarize" else "describe"
        if self.word == "show" and self.peek(1) == "tables":
            self.say("select", marked("tables"))
            self.say()
            if self.word == "from":
                raise self.not_supported("SHOW TABLES FROM; information_schema.tables has the schema of each")
            return
        if self.word == "show" and (self.peek(1), self.peek(2)) == ("all", "tables"):
            self.say("select", marked("all_tables"))
            self.say()
            self.say()
            return
        if form == "describe" and self.word != "show" and (self.at + 1 == self.behind or self.peek(1) == ")"):
            self.say("select", marked("all_tables"))
            return
        what = self.at
        self.next()
        is_query = self.starts_query()
        self.edit(what, ("from", "(") if is_query else ("from",))
        if is_query:
            self.query()
        elif self.kind == STRING:
            self.leaf()
        else:
            self._table_name()
        self.say_before(*((")",) if is_query else ()), "select", marked(form))

    def ctes(self) -> exp.Expr | None:
        """WITH and its queries."""
        self.next()
        is_recursive = self.take("recursive")
        found = [self._cte()]
        while self.take(","):
            found.append(self._cte())
        return query_nodes.ctes(found, is_recursive)

    def _cte(self) -> exp.Expr | None:
        name = self.identifier()
        columns: list[exp.Expr] | None = []
        self.name(leaf=True)
        if self.take("("):
            columns = query_nodes.whole(self.names())
            self.expect(")")
        self.expect("as")
        is_materialized: bool | None = None
        if self.take("not"):
            self.expect("materialized")
            is_materialized = False
        elif self.take("materialized"):
            is_materialized = True
        return query_nodes.cte(name, columns, self._subquery_in_parentheses(), is_materialized)

    def _terms(self) -> exp.Expr | None:
        """Terms with UNION and EXCEPT between them; INTERSECT binds more tightly."""
        return self._chain(("union", "except"), lambda: self._chain(("intersect",), self._term))

    def _chain(self, operators: tuple[str, ...], term: Callable[[], exp.Expr | None]) -> exp.Expr | None:
        start = self.begin()
        made = term()
        first = True
        while self.word in operators:
            if first:  # the last side ends before ORDER BY, which is the whole's; a SELECT alone has its own
                self.end(start)
                first = False
            word = self.word
            self.next()
            is_distinct = not self.take("all")
            if is_distinct:
                self.take("distinct")
            by_name = word == "union" and self.take("by")
            if by_name:
                self.expect("name")
            side = self.begin()
            right = term()
            made = None if by_name else query_nodes.set_operation(word, made, right, is_distinct)
            self.end(side)
            if self.word in operators:
                self.end(start)
        return made

    def _term(self) -> exp.Expr | None:
        if self.word == "(":
            return query_nodes.subquery(self._subquery_in_parentheses())
        if self.word == "select":
            return self._select()
        if self.word == "values":
            self._values()
        elif self.take("table"):
            self._table_name()
        elif self.word == "from":
            self._select()
        elif self.word in PIVOTS:
            self.pivot()
        else:
            raise self.unexpected()
        return None

    def _values(self) -> None:
        """VALUES as a term. In parentheses sqlglot reads rows alone: where more follows, it is given FROM (VALUES)."""
        first, is_behind = self.at, self.words[self.at - 1] == "("
        self.next()
        self._rows()
        if is_behind and self.word != ")":
            self.edit(first, ("from", "("), is_before=True)
            self.say_before(")")

    def _select(self) -> exp.Expr | None:
        """SELECT and its clauses, up to ORDER BY; its node where all of it is plain."""
        is_from_first = self.take("from")
        is_plain, is_distinct = not is_from_first, False
        targets: list[exp.Expr] | None = None
        clauses: dict[str, exp.Expr | list[exp.Expr] | None] = {}
        if is_from_first:
            self._from(is_first=True)
        if self.take("select"):
            is_distinct = not self.take("all") and self.take("distinct")
            if is_distinct and self.take("on"):
                is_plain = False
                self.expect("(")
                self.expressions(trailing=True)
                self.expect(")")
            targets = self._targets()
        if not is_from_first and self.take("from"):
            found = self._from()
            clauses["from_"] = None if found is None else nodes.node(exp.From, this=found[0])
            if found is not None and len(found) > 1:
                clauses["joins"] = found[1:]
        if self.take("where"):
            clauses["where"] = query_nodes.clause(exp.Where, self.kept())
        if self.take("group"):
            self.expect("by")
            clauses["group"] = None if self.take("all") else query_nodes.group(self._keys())
        if self.take("having"):
            clauses["having"] = query_nodes.clause(exp.Having, self.kept())
        behind = self.at
        self.windows_and_qualify()
        if self.word == "using" and self.peek(1) == "sample":
            self.next()
            self.next()
            self.sample()
        return query_nodes.select(targets, is_distinct, clauses) if is_plain and self.at == behind else None

    def _keys(self) -> list[exp.Expr] | None:
        """The keys of GROUP BY, or the sets of GROUPING SETS."""
        return self.keep_list(self._key)

    def _key(self) -> exp.Expr | None:
        start = self.begin()
        if self.word == "grouping" and self.peek(1) == "sets":
            self.next()
            self.next()
            self.expect("(")
            self._keys()
            self.expect(")")
            self.end(start)
        elif self.word in ("rollup", "cube") and self.peek(1) == "(":
            word = self.word
            self.next()
            self.next()
            made = query_nodes.rollup(word, self.expressions(trailing=True))
            self.expect(")")
            self.end(start)
            return made
        elif self.word == "(" and self.peek(1) == ")":
            self.next()
            self.next()
        else:
            return self.expression()
        return None

    def _order_and_limit(self) -> dict[str, exp.Expr | None]:
        """The nodes of ORDER BY, LIMIT and OFFSET."""
        found: dict[str, exp.Expr | None] = {}
        if self.word == "order":
            found["order"] = self.order()
        while self.word in ("limit", "offset", "fetch"):
            clause = "offset" if self.word == "offset" else "limit"
            if clause in found:
                raise self.unexpected()
            found[clause] = self._limit()
        return found

    def _limit(self) -> exp.Expr | None:
        word, made = self.word, None
        self.next()
        if word == "fetch":
            if not self.take("first"):
                self.expect("next")
            if self.word not in ("row", "rows"):
                self.expression()
            if not self.take("row"):
                self.expect("rows")
            self.expect("only")
        elif word == "limit":
            if self.take("all"):
                self.take("percent")
            elif not self.tries(self.expression, self.mark()):
                self.expression(MULTIPLY + 1)  # 10%
                self.expect("%")
            else:
                made = query_nodes.limit(word, self.tried)
                if self.take("percent"):
                    made = None
        else:
            made = query_nodes.limit(word, self.expression())
            if self.take("row") or self.take("rows"):
                made = None
        return made
