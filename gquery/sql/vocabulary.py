"""The words and symbols of DuckDB's SQL, by what they are to sqlglot.

Apart from the parser's dialect (`gquery.sql.dialect`), as plain statements need the words alone
(`gquery.sql.grammar.query_nodes`).
"""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType
from sqlglot.tokens import Tokenizer

_WORDS = {
    "ATTACH": TokenType.ATTACH, "BINARY": TokenType.VARBINARY, "BITSTRING": TokenType.BIT, "BPCHAR": TokenType.TEXT,
    "CHAR": TokenType.TEXT, "CONNECT": TokenType.CONNECT, "DATETIME": TokenType.TIMESTAMPNTZ, "DETACH": TokenType.DETACH,
    "DISCONNECT": TokenType.DISCONNECT, "FORCE": TokenType.FORCE, "INSTALL": TokenType.INSTALL, "INT8": TokenType.BIGINT,
    "LOGICAL": TokenType.BOOLEAN, "MACRO": TokenType.FUNCTION, "ONLY": TokenType.ONLY, "PIVOT_WIDER": TokenType.PIVOT,
    "POSITIONAL": TokenType.POSITIONAL, "RESET": TokenType.COMMAND, "ROW": TokenType.STRUCT, "SIGNED": TokenType.INT,
    "STRING": TokenType.TEXT, "SUMMARIZE": TokenType.SUMMARIZE, "TIMESTAMP": TokenType.TIMESTAMPNTZ,
    "TIMESTAMP_S": TokenType.TIMESTAMP_S, "TIMESTAMP_MS": TokenType.TIMESTAMP_MS, "TIMESTAMP_NS": TokenType.TIMESTAMP_NS,
    "TIMESTAMP_US": TokenType.TIMESTAMP, "UBIGINT": TokenType.UBIGINT, "UINTEGER": TokenType.UINT,
    "USMALLINT": TokenType.USMALLINT, "UTINYINT": TokenType.UTINYINT, "VARCHAR": TokenType.TEXT,
}  # fmt: skip
_SYMBOLS = {
    "//": TokenType.DIV, "**": TokenType.DSTAR, "^@": TokenType.CARET_AT, "@>": TokenType.AT_GT, "<@": TokenType.LT_AT,
}  # fmt: skip
_OTHERS = ("/*+", "SORT BY", "?::", "??")  # that mean something to sqlglot and nothing to DuckDB

KEYWORDS = {k: v for k, v in Tokenizer.KEYWORDS.items() if k not in _OTHERS} | _SYMBOLS | _WORDS
SINGLE_TOKENS = Tokenizer.SINGLE_TOKENS | {"$": TokenType.PARAMETER}
COMMANDS = Tokenizer.COMMANDS - {TokenType.SHOW}
