"""Texts taken apart into lists of texts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from gquery.expression.expr import Expr, Literal
from gquery.expression.nested_types import list_of
from gquery.expression.types import BIGINT, VARCHAR, Kind
from gquery.functions.casts import cast
from gquery.functions.list_arrays import list_array, lists_of
from gquery.functions.list_function import Typed, list_function
from gquery.functions.regex import marked_matches, unused_character
from gquery.functions.vectors import Vector, array_of, by_parameters, flags, from_numpy, null, size_of, text_like
from gquery.runtime.arrow_compute import pc


def _two_texts(s: Expr, separator: Expr) -> Typed | None:
    if not all(e.dtype.is_string or e.dtype.kind is Kind.NULL for e in (s, separator)):
        return None
    return (cast(s, VARCHAR), cast(separator, VARCHAR)), list_of(VARCHAR)


@list_function("string_split str_split string_to_array split", _two_texts, "$(VARCHAR, separator) -> VARCHAR[]",
               strict=False, nullable=True, example=("string_split('a b', ' ')", "['a', 'b']"))  # fmt: skip
def string_split(s: Vector, separator: Vector) -> Vector:
    """The parts of a text between separators; its characters where the separator is empty, the text where it is NULL."""
    rows = size_of(s, separator)
    text = array_of(s, rows)
    of = pa.list_(text.type)
    made = by_parameters(lambda t, by: _split(t, by).cast(of), text, separator, gives=of)
    return _whole_where_null(made, text, separator)


def _split(texts: pa.Array, separator: str) -> pa.Array:
    if separator:
        return pc.split_pattern(texts, separator)
    mark = unused_character(texts)
    spread = pc.replace_substring_regex(texts, "(?s)(.)", f"\\1{mark}")
    return pc.split_pattern(pc.utf8_slice_codeunits(spread, 0, -1), mark)


@list_function("string_split_regex str_split_regex regexp_split_to_array", _two_texts, "$(VARCHAR, pattern) -> VARCHAR[]",
               strict=False, nullable=True, example=("string_split_regex('a1b', '[0-9]')", "['a', 'b']"))  # fmt: skip
def string_split_regex(s: Vector, pattern: Vector) -> Vector:
    """The parts of a text between what matches a regular expression; the text where that is NULL."""
    rows = size_of(s, pattern)
    text = array_of(s, rows)
    of = pa.list_(text.type)
    made = by_parameters(lambda t, by: pc.split_pattern_regex(t, by).cast(of), text, pattern, gives=of)
    return _whole_where_null(made, text, pattern)


def _whole_where_null(parts: pa.Array, texts: pa.Array, separator: Vector) -> pa.Array:
    """The parts of texts; where the separator is NULL, the text alone."""
    is_missing = array_of(separator, len(texts)).is_null()
    if not is_missing.true_count:
        return parts
    whole = list_array(texts, np.ones(len(texts), np.int64), flags(texts.is_valid()))
    return pc.if_else(is_missing, whole.cast(parts.type), parts)


_ALL, _NO_OPTIONS = Literal(0, BIGINT), Literal("", VARCHAR)


def _matches(s: Expr, pattern: Expr, group: Expr = _ALL, options: Expr = _NO_OPTIONS) -> Typed | None:
    typed = _two_texts(s, pattern)
    if typed is None or not (group.dtype.is_integer or group.dtype.kind is Kind.NULL) or not options.dtype.is_string:
        return None
    return (*typed[0], cast(group, BIGINT), options), typed[1]


@list_function("regexp_extract_all", _matches, "$(VARCHAR, pattern[, group[, options]]) -> VARCHAR[]",
               example=("regexp_extract_all('a1b22', '[0-9]+')", "['1', '22']"))  # fmt: skip
def regexp_extract_all(s: Vector, pattern: Vector, group: Vector, options: Vector) -> Vector:
    """All matches, or a group of each: NULL for one that takes no part in it."""
    text = array_of(s, size_of(s, pattern, group, options))
    of = pa.list_(text.type)

    def extracted(texts: pa.Array, pattern: str, group: int, options: str) -> pa.Array:
        if group < 0:
            return list_array(texts[:0], np.zeros(len(texts), np.int64), flags(texts.is_valid())).cast(of)
        marked, mark, may_be_empty = marked_matches(texts, pattern, group, options)
        parts = lists_of(pc.split_pattern(marked, mark), len(texts))
        found = parts.flat.filter(from_numpy(parts.ordinals % 2 == 1))
        if not may_be_empty:
            found = pc.if_else(pc.equal(found, text_like("", found)), null(found.type), found)
        return list_array(found, parts.lengths // 2, parts.ok).cast(of)

    return by_parameters(extracted, text, pattern, group, options, gives=of)
