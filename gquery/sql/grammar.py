"""DuckDB's grammar, as far as gquery runs it: whether a text is a statement, and how its names and constants hang together.

sqlglot makes the tree that is bound, and is lenient: it reads past a word that it does not expect, and its operators do
not all bind as DuckDB's do. `read` goes through the tokens before it by DuckDB's rules and gives a `Reading`: the tokens that
must stand in the tree, which of them belong together, and the nodes of plain expressions, which sqlglot need not read again
(`gquery.sql.grammar_nodes`). A token that no rule takes is a ParseError. `gquery.sql.covered` compares the tree with that.
Constructs that gquery does not run have been refused before (`gquery.sql.supported`), so that they need no rule here.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from gquery.errors import ParseError
from gquery.sql.grammar_from import SHOWS
from gquery.sql.grammar_nodes import MULTIPLY
from gquery.sql.grammar_pivot import PIVOTS
from gquery.sql.grammar_statements import FORMS, REFUSED, StatementReader
from gquery.sql.grammar_tokens import Reading, marked
from gquery.sql.lexer import NUMBER, STRING, Lexed


def read(sql: str, tokens: Lexed, first: int, behind: int) -> Reading | ParseError:
    """Reads one statement, the tokens from ``first`` to the one before ``behind``. Gives a ParseError for the first token
    that cannot stand where it stands: there may be something better to say about the statement."""
    reader = Reader(sql, tokens, first, behind)
    try:
        reader.statement()
        if reader.at == behind:
            return reader.reading
        error = reader.unexpected()
    except ParseError as found:
        error = found
    reader.refuse_json()
    return error


class Reader(StatementReader):
    """Reads queries and statements; `ExpressionReader` reads what stands in them."""

    # ---- statements ------------------------------------------------------------------------------------------------

    def statement(self) -> None:
        """Any statement that gquery runs."""
        match self.word:
            case "create" if self.names_macro():
                self.create_macro()
            case "drop" if self.names_macro():
                self.drop_macro()
            case "create" | "drop" | "use" | "set" | "reset" if self.defines():
                self.definition()
            case "create":
                self._create()
            case "drop":
                self._drop()
            case "set":
                self._set()
            case word if word in FORMS:
                self.form()
            case word if word in REFUSED and (word != "force" or self.peek(1) == "checkpoint"):
                raise self.not_supported(REFUSED[word])
            case "with" if self.has_change():
                self.change_with_ctes()
            case _:
                self.query()

    def _create(self) -> None:
        first = self.at
        self.next()
        if self.take("or"):
            self.expect("replace")
            options: tuple[str, ...] = ("replace",)
        else:
            options = ()
        if not self.take("temp"):
            self.take("temporary")
        is_table = self.take("table")
        if not is_table:
            self.expect("view", "TABLE or VIEW")
        if not options and self.take("if"):
            self.expect("not")
            self.expect("exists")
            options = ("exists",)
        name, leaves = self._name_of_table(), self.begin()
        self._table_name()
        if is_table and self.word == "(" and self.columns_follow():
            del self.reading.leaves[leaves:]
            self.next()
            self.define(first, name, options)
            return
        if self.take("("):
            self.names()
            self.expect(")")
        self.expect("as")
        self.query()

    def _drop(self) -> None:
        self.next()
        if not self.take("table"):
            self.expect("view", "TABLE or VIEW")
        if self.take("if"):
            self.expect("exists")
        self._table_name()
        if not self.take("cascade"):
            self.take("restrict")

    def _set(self) -> None:
        self.next()
        self.label()
        if not self.take("="):
            self.expect("to")
        sign = self.take("-")
        if self.kind in (NUMBER, STRING) and not (sign and self.kind == STRING):
            self.next()  # the value of an option is no expression
        elif sign:
            raise self.unexpected()
        else:
            self.label()

    # ---- queries -----------------------------------------------------------------------------------------------------

    def query(self, start: int | None = None) -> None:
        """``[WITH] terms [ORDER BY] [LIMIT]``; ``start`` is that of CTEs before it."""
        if self.word in SHOWS:
            self._show()
            return
        start = self.begin() if start is None else start
        is_values = self.word == "values"
        if self.word == "with":
            self.ctes()
        self._terms()
        self._order_and_limit()
        if not is_values:  # one node of the tree with its alias
            self.end(start)

    def _show(self) -> None:
        """``DESCRIBE``, ``SHOW`` or ``SUMMARIZE`` of a table or query, written as a SELECT over it (`sql.grammar_pivot`)."""
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

    def ctes(self) -> None:
        """WITH and its queries."""
        self.next()
        self.take("recursive")
        self._cte()
        while self.take(","):
            self._cte()

    def _cte(self) -> None:
        self.name(leaf=True)
        if self.take("("):
            self.names()
            self.expect(")")
        self.expect("as")
        if self.take("not"):
            self.expect("materialized")
        else:
            self.take("materialized")
        self.expect("(")
        self.query()
        self.expect(")")

    def _terms(self) -> None:
        """Terms with UNION and EXCEPT between them; INTERSECT binds more tightly."""
        self._chain(("union", "except"), lambda: self._chain(("intersect",), self._term))

    def _chain(self, operators: tuple[str, ...], term: Callable[[], None]) -> None:
        start = self.begin()
        term()
        first = True
        while self.word in operators:
            if first:  # the last side ends before ORDER BY, which is the whole's; a SELECT alone has its own
                self.end(start)
                first = False
            word = self.word
            self.next()
            if not self.take("all"):
                self.take("distinct")
            if word == "union" and self.take("by"):
                self.expect("name")
            side = self.begin()
            term()
            self.end(side)
            if self.word in operators:
                self.end(start)

    def _term(self) -> None:
        if self.take("("):
            self.query()
            self.expect(")")
        elif self.word == "values":
            self._values()
        elif self.take("table"):
            self._table_name()
        elif self.word in ("select", "from"):
            self._select()
        elif self.word in PIVOTS:
            self.pivot()
        else:
            raise self.unexpected()

    def _values(self) -> None:
        """VALUES as a term. In parentheses sqlglot reads rows alone: where more follows, it is given FROM (VALUES)."""
        first, is_behind = self.at, self.words[self.at - 1] == "("
        self.next()
        self._rows()
        if is_behind and self.word != ")":
            self.edit(first, ("from", "("), is_before=True)
            self.say_before(")")

    def _select(self) -> None:
        is_from_first = self.take("from")
        if is_from_first:
            self._from(is_first=True)
        if self.take("select"):
            if not self.take("all") and self.take("distinct") and self.take("on"):
                self.expect("(")
                self.expressions(trailing=True)
                self.expect(")")
            self._targets()
        if not is_from_first and self.take("from"):
            self._from()
        if self.take("where"):
            self.kept()
        if self.take("group"):
            self.expect("by")
            if not self.take("all"):
                self._keys()
        if self.take("having"):
            self.kept()
        self.windows_and_qualify()
        if self.word == "using" and self.peek(1) == "sample":
            self.next()
            self.next()
            self.sample()

    def _keys(self) -> None:
        """The keys of GROUP BY, or the sets of GROUPING SETS."""
        self.keep_list(self._key)

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
            self.next()
            self.next()
            self.expressions(trailing=True)
            self.expect(")")
            self.end(start)
        elif self.word == "(" and self.peek(1) == ")":
            self.next()
            self.next()
        else:
            return self.expression()
        return None

    def _order_and_limit(self) -> None:
        if self.word == "order":
            self.order()
        seen: set[str] = set()
        while self.word in ("limit", "offset", "fetch"):
            clause = "offset" if self.word == "offset" else "limit"
            if clause in seen:
                raise self.unexpected()
            seen.add(clause)
            self._limit()

    def _limit(self) -> None:
        word = self.word
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
            if not self.take("all") and not self.tries(self.expression, self.mark()):
                self.expression(MULTIPLY + 1)  # 10%
                self.expect("%")
            else:
                self.take("percent")
        else:
            self.expression()
            if not self.take("row"):
                self.take("rows")
