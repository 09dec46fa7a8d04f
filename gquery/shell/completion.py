"""What Tab offers: keywords, tables, columns, functions, paths, dot commands.

No parser: the text before the cursor is usually no statement yet. The word before the one that is typed tells what may
follow, and the tables that the statement names anywhere tell which columns.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Sequence

from gquery.api.connection import Connection
from gquery.errors import Error
from gquery.runtime.records import dataclass
from gquery.shell.commands import COMMANDS
from gquery.shell.modes import MODES

_KEYWORDS = """
ALL ANALYZE AND AS ASC BETWEEN BY CASE CAST CREATE CROSS DATE DESC DESCRIBE DISTINCT DROP ELSE END ESCAPE EXCEPT EXISTS
EXPLAIN EXTRACT FALSE FILTER FIRST FROM FULL GROUP HAVING ILIKE IN INNER INTERSECT INTERVAL INTO IS JOIN LAST LEFT LIKE
LIMIT NATURAL NOT NULL NULLS OFFSET ON OR ORDER OUTER OVER PARTITION REPLACE RIGHT ROW SELECT SEMI SET SHOW TABLE TABLES
THEN TIMESTAMP TRUE UNION USING VALUES VIEW WHEN WHERE WITH
"""
_TYPES = """
BIGINT BOOLEAN DATE DECIMAL DOUBLE FLOAT HUGEINT INTEGER REAL SMALLINT TIMESTAMP TINYINT UBIGINT UINTEGER USMALLINT
UTINYINT VARCHAR
"""
KEYWORDS, TYPES = frozenset(_KEYWORDS.split()), frozenset(_TYPES.split())
_WORD = re.compile(r"[\w]*\Z")
_PREVIOUS = re.compile(r"(\w+|,)\s*\Z")
_TABLE_WORDS = {"from", "join", "table", "into", "describe", "view", "update"}
_USED = re.compile(r"(?:\bfrom|\bjoin|,)\s+(\"[^\"]+\"|\w+)(?:\s+(?:as\s+)?(\w+))?", re.I)
_OPEN_QUOTE = re.compile(r"'([^'\n]*)\Z")


@dataclass(frozen=True)
class Candidate:
    """A completion: the text, what it is, and how many characters before the cursor it replaces."""

    text: str
    kind: str
    replaces: int


def complete(text: str, cursor: int, connection: Connection | None) -> list[Candidate]:
    """The completions at a place of the text. Without a connection there are keywords, paths and commands."""
    before = text[:cursor]
    if before.lstrip().startswith("."):
        return _of_command(before.lstrip(), connection)
    if before.count("'") % 2 and (quote := _OPEN_QUOTE.search(before)):
        return _paths(quote[1])
    word = _WORD.search(before)
    assert word is not None
    typed, ahead = word[0], before[: word.start()]
    statement = text[before.rfind(";") + 1 :]
    schema = KnownNames(connection) if connection is not None else None
    if ahead.endswith("."):
        owner = re.search(r"(\w+)\.\Z", ahead)
        own = schema.columns_of(statement, owner[1]) if schema and owner else []
        return _matching(typed, [(_quoted(c), "column") for c in own])
    previous = _PREVIOUS.search(ahead)
    tables = [(_quoted(n), "table") for n in schema.tables()] if schema else []
    if previous and previous[1].lower() in _TABLE_WORDS:
        return _matching(typed, tables)
    columns = [(_quoted(c), "column") for c in schema.columns_of(statement, None)] if schema else []
    found = _matching(typed, [*columns, *tables])
    if typed or not found:
        found += _matching(typed, [(f"{f}(", "function") for f in schema.functions()] if schema else [])
        found += _matching(typed, [(_cased(k, typed), "keyword") for k in sorted(KEYWORDS | TYPES)])
    return found


class KnownNames:
    """Names of a connection's tables, columns and functions."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._catalog = connection.catalog

    def functions(self) -> Sequence[str]:
        return self._catalog.functions()

    def tables(self) -> Sequence[str]:
        return self._catalog.names()

    def columns_of(self, statement: str, owner: str | None) -> list[str]:
        """The columns of the tables that a statement names, or of the one that it calls ``owner``; of all tables where it
        names none yet."""
        used = {}
        for name, alias in _USED.findall(statement):
            name = name.strip('"')
            if self._catalog.lookup(name) is not None:
                used[(alias if alias and alias.upper() not in KEYWORDS else name).lower()] = name
        if owner is not None:
            names = [used.get(owner.lower(), owner)]
        else:
            names = list(used.values()) or list(self.tables())
        return list(dict.fromkeys(c for n in names for c in self._columns(n)))

    def _columns(self, table: str) -> Sequence[str]:
        try:
            if self._catalog.view(table) is not None:
                return self._connection.table(table).columns
            return self._catalog.table(table).schema.names
        except Error:  # no table, or a view over what is gone
            return ()


def _matching(typed: str, found: Sequence[tuple[str, str]]) -> list[Candidate]:
    low = typed.lower()
    return [Candidate(t, k, len(typed)) for t, k in found if t.lower().lstrip('"').startswith(low) and t != typed]


def _cased(keyword: str, typed: str) -> str:
    return keyword.lower() if typed and typed == typed.lower() else keyword


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) and name.upper() not in KEYWORDS else f'"{name}"'


# ---- dot commands and paths -----------------------------------------------------------------------------------------


def _of_command(line: str, connection: Connection | None) -> list[Candidate]:
    name, space, rest = line[1:].partition(" ")
    if not space:
        return [Candidate(f".{n}", "command", len(line)) for n in sorted(COMMANDS) if n.startswith(name)]
    found = COMMANDS.get(name)
    arguments = found.arguments if found is not None else ""
    word = rest.split(" ")[-1]
    if "FILE" in arguments:
        return _paths(rest.lstrip())
    if "on|off" in arguments:
        return _matching(word, [("on", "switch"), ("off", "switch")])
    if "PATTERN" in arguments and connection is not None:
        return _matching(word, [(n, "table") for n in KnownNames(connection).tables()])
    return _matching(word, [(w, name) for w in _words(name)])


def _words(name: str) -> Iterator[str]:
    match name:
        case "mode":
            yield from MODES
        case "help":
            yield from sorted(COMMANDS)
        case "tpch":
            yield from ("0.01", "0.1", "1", "10")
        case _:
            return


def _paths(typed: str) -> list[Candidate]:
    """Files and folders that begin as typed."""
    begin = typed.rpartition("/")[2]
    found = []
    for path in sorted(glob.glob(glob.escape(os.path.expanduser(typed)) + "*")):
        name = os.path.basename(path)
        if name.startswith(".") and not begin.startswith("."):
            continue
        found.append(Candidate(name + ("/" if os.path.isdir(path) else ""), "path", len(begin)))
    return found[:200]
