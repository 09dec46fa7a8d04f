"""Texts taken apart into lists of texts."""

from __future__ import annotations

import pyarrow as pa

from gquery.expression.expr import Expr
from gquery.expression.nested_types import list_of
from gquery.expression.types import VARCHAR, Kind
from gquery.functions.casts import cast
from gquery.functions.list_function import Typed, list_function
from gquery.functions.vectors import Vector, array_of, by_parameters, size_of
from gquery.runtime.arrow_compute import pc


def _two_texts(s: Expr, separator: Expr) -> Typed | None:
    if not all(e.dtype.is_string or e.dtype.kind is Kind.NULL for e in (s, separator)):
        return None
    return (cast(s, VARCHAR), cast(separator, VARCHAR)), list_of(VARCHAR)


@list_function("string_split str_split string_to_array split", _two_texts, "$(VARCHAR, separator) -> VARCHAR[]",
               example=("string_split('a b', ' ')", "['a', 'b']"))  # fmt: skip
def string_split(s: Vector, separator: Vector) -> Vector:
    """The parts of a text between separators; its characters where the separator is empty."""
    rows = size_of(s, separator)
    text = array_of(s, rows)
    of = pa.list_(text.type)
    return by_parameters(lambda t, by: _split(t, by).cast(of), text, separator, gives=of)


def _split(texts: pa.Array, separator: str) -> pa.Array:
    if separator:
        return pc.split_pattern(texts, separator)
    return pc.split_pattern(_spread(texts), "\0")


def _spread(texts: pa.Array) -> pa.Array:
    """Texts with a character that no text holds between their own."""
    spread = pc.replace_substring_regex(texts, "(?s)(.)", "\\1\0")
    return pc.utf8_slice_codeunits(spread, 0, -1)


@list_function("string_split_regex str_split_regex regexp_split_to_array", _two_texts, "$(VARCHAR, pattern) -> VARCHAR[]",
               example=("string_split_regex('a1b', '[0-9]')", "['a', 'b']"))  # fmt: skip
def string_split_regex(s: Vector, pattern: Vector) -> Vector:
    """The parts of a text between what matches a regular expression."""
    rows = size_of(s, pattern)
    text = array_of(s, rows)
    of = pa.list_(text.type)
    return by_parameters(lambda t, by: pc.split_pattern_regex(t, by).cast(of), text, pattern, gives=of)
