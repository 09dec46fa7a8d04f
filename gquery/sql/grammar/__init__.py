"""DuckDB's grammar, as far as gquery runs it: whether a text is a statement, and how its names and constants hang together.

`read` goes through the tokens by DuckDB's rules and gives a `Reading`. A token that no rule takes is a ParseError. Of a plain
query that has the whole tree (`gquery.sql.grammar.query_nodes`). Other trees are sqlglot's, which is lenient: it reads past a
word that it does not expect, and its operators do not all bind as DuckDB's do. So the reading has the tokens that must stand in
the tree, which of them belong together (`gquery.sql.covered` compares the tree with that), and the nodes of plain expressions,
which sqlglot need not read again (`gquery.sql.grammar.nodes`).
Constructs that gquery does not run have been refused before (`gquery.sql.supported`), so that they need no rule here.
"""

from __future__ import annotations

from gquery.errors import ParseError
from gquery.sql.grammar.from_clause import QUERIES
from gquery.sql.grammar.query import QueryReader
from gquery.sql.grammar.tokens import Reading
from gquery.sql.lexer import Lexed

_CHANGES = frozenset(("insert", "update", "delete"))


def read(sql: str, tokens: Lexed, first: int, behind: int) -> Reading | ParseError:
    """Reads one statement, the tokens from ``first`` to the one before ``behind``. Gives a ParseError for the first token
    that cannot stand where it stands: there may be something better to say about the statement."""
    reader = _reader(tokens, first, behind)(sql, tokens, first, behind)
    try:
        reader.statement()
        if reader.at == behind:
            return reader.reading
        error = reader.unexpected()
    except ParseError as found:
        error = found
    return error


def _reader(tokens: Lexed, first: int, behind: int) -> type[QueryReader]:
    """The reader of a statement by its first words."""
    words = tokens.words
    match words[first]:
        case "with":
            is_query = _CHANGES.isdisjoint(words[first:behind])
        case "set":
            is_query = words[first + 1] != "variable"
        case word:
            is_query = word in QUERIES or word == "("
    if is_query:
        return QueryReader
    from gquery.sql.grammar.statements import StatementReader  # with five modules more, which others do without

    return StatementReader
