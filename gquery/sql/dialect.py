"""DuckDB's dialect for sqlglot's tokenizer and parser, without its generator.

``sqlglot.dialects.duckdb`` brings the generator, which parses two dozen texts when it is imported: 15 ms of each process, for
trees that are never written as SQL here. The parser is sqlglot's own; what the dialect tells it stands here and the words of its
tokenizer in `gquery.sql.vocabulary`, and a test compares them with sqlglot's (`tests/sql/test_dialect.py`).
"""

from __future__ import annotations

from functools import cache

from sqlglot import exp, tokens
from sqlglot.dialects.dialect import Dialect, NormalizationStrategy, UsingColumnOrder
from sqlglot.parsers.duckdb import DuckDBParser
from sqlglot.tokenizer_core import TokenType

from gquery.sql import vocabulary

_ESCAPES = {"\\a": "a", "\\v": "v"}
_NUMERIC_ESCAPES = {"x": (16, 1, 2, 0xFF), "0": (8, 1, 3, 0o777)}
_BYTE_STRINGS: list[str | tuple[str, str]] = [("e'", "'"), ("E'", "'")]
_BYTE_STRING_ESCAPES = ["'", "\\"]
_DOLLAR: list[str | tuple[str, str]] = ["$"]
_SINGLE = {"$"}


class GqueryDialect(Dialect):
    """What sqlglot's parser asks of DuckDB's dialect."""

    NULL_ORDERING = "nulls_are_last"
    SUPPORTS_USER_DEFINED_TYPES = True
    INDEX_OFFSET = 0  # no place is moved: `sql.binding.lists` counts as DuckDB does
    CONCAT_COALESCE = True
    CONCAT_WS_COALESCE = True
    SUPPORTS_ORDER_BY_ALL = True
    SUPPORTS_LIMIT_ALL = True
    PREFER_COLUMNS_TO_ALIASES_IN_HAVING_AND_QUALIFY = True
    HAVING_ALIASES_SHADOW_UNGROUPED_COLUMNS = True
    SUPPORTS_FIXED_SIZE_ARRAYS = True
    TABLES_REFERENCEABLE_AS_COLUMNS = True
    QUERY_RESULTS_ARE_STRUCTS = True
    STRICT_JSON_PATH_SYNTAX = False
    NUMBERS_CAN_BE_UNDERSCORE_SEPARATED = True
    UUID_IS_STRING_TYPE = False
    USING_COLUMN_ORDER = UsingColumnOrder.IN_PLACE
    REGEXP_EXTRACT_NO_MATCH_RETURNS_NULL = False
    REGEXP_EXTRACT_MISSING_GROUP_RETURNS_EMPTY = True
    NORMALIZATION_STRATEGY = NormalizationStrategy.CASE_INSENSITIVE
    ASCII_ONLY_NORMALIZATION = True
    DATE_PART_MAPPING = {name: part for name, part in Dialect.DATE_PART_MAPPING.items() if name != "WEEKDAY"} | {
        "DAYOFWEEKISO": "ISODOW"
    }
    UNESCAPED_SEQUENCES = _ESCAPES

    class Tokenizer(tokens.Tokenizer):
        NUMERIC_ESCAPES = _NUMERIC_ESCAPES
        NUMERIC_ESCAPES_ARE_BYTES = True
        DROP_UNKNOWN_ESCAPES = True
        BYTE_STRINGS = _BYTE_STRINGS
        BYTE_STRING_ESCAPES = _BYTE_STRING_ESCAPES
        HEREDOC_STRINGS = _DOLLAR
        HEREDOC_TAG_IS_IDENTIFIER = True
        HEREDOC_STRING_ALTERNATIVE = TokenType.PARAMETER
        KEYWORDS = vocabulary.KEYWORDS
        SINGLE_TOKENS = vocabulary.SINGLE_TOKENS
        VAR_SINGLE_TOKENS = _SINGLE
        COMMANDS = vocabulary.COMMANDS

    Parser = DuckDBParser

    def to_json_path(self, path: exp.Expr | None) -> exp.Expr | None:
        """A path into JSON; one that is no path of sqlglot's stays a text."""
        if isinstance(path, exp.Literal) and (path.name.startswith("/") or "[#" in path.name):
            return path
        return super().to_json_path(path)


@cache
def dialect() -> Dialect:
    """The dialect, made once: it holds nothing of a text."""
    return GqueryDialect()
