"""Tests of one dictionary column, made over all entries at once.

The dictionary is sorted, so a comparison with a constant is one of codes; LIKE with few parts is a search of Arrow's. What
holds anything else is left to the interpreter, which takes a microsecond an entry and operation (`kernels.host`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from gquery.columns.arrow import string_array
from gquery.columns.arrow_buffers import bits_of, offsets_of
from gquery.columns.table import Dictionary
from gquery.expression.expr import And, Call, Column, Expr, In, IsNull, Literal, Not, Or
from gquery.expression.frozen import frozen_single
from gquery.functions import MIRRORED
from gquery.kernels.like import pieces
from gquery.runtime.arrow_compute import cast, matches, places_among

Flags: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.bool_]]"


@frozen_single
class Truth:
    """What a test says of each entry, and of NULL behind the last: ``true``, or ``false``, or neither where it is NULL."""

    true: Flags
    false: Flags


def truth(e: Expr, dictionary: Dictionary) -> Truth | None:
    """The outcome of a test whose one column holds codes of ``dictionary``; None where it is not made here."""
    match e:
        case And(args):
            return _joined(args, dictionary, np.logical_and, np.logical_or)
        case Or(args):
            return _joined(args, dictionary, np.logical_or, np.logical_and)
        case Not(arg):
            found = truth(arg, dictionary)
            return None if found is None else Truth(found.false, found.true)
        case IsNull(Column()):
            is_null = np.zeros(len(dictionary) + 1, np.bool_)
            is_null[-1] = True
            return Truth(is_null, ~is_null)
        case In(Column(), items):
            wanted = cast(string_array([x.value for x in items]), dictionary.values.type)
            return _of(bits_of(places_among(dictionary.values, wanted), 0).view(np.bool_))
        case Call("like", (Column(), Literal() as pattern, Literal() as escape)) if not (
            pattern.is_null or escape.is_null
        ):
            return _like(pattern.value, escape.value, dictionary)
        case Call(function, (Column(), Literal() as constant)) if function in MIRRORED and not constant.is_null:
            return _compared(function, constant.value, dictionary)
        case Call(function, (Literal() as constant, Column())) if function in MIRRORED and not constant.is_null:
            return _compared(MIRRORED[function], constant.value, dictionary)
        case _:
            return None


def _joined(
    args: Sequence[Expr],
    dictionary: Dictionary,
    join: Callable[[Flags, Flags], Flags],
    join_false: Callable[[Flags, Flags], Flags],
) -> Truth | None:
    """AND or OR of tests, by the rules of three values."""
    made: Truth | None = None
    for arg in args:
        found = truth(arg, dictionary)
        if found is None:
            return None
        made = found if made is None else Truth(join(made.true, found.true), join_false(made.false, found.false))
    return made


def _of(holds: Flags) -> Truth:
    """The outcome for entries as one that is NULL for NULL."""
    true, false = np.zeros((2, len(holds) + 1), np.bool_)
    true[:-1] = holds
    np.logical_not(holds, out=false[:-1])
    return Truth(true, false)


def _compared(function: str, text: str, dictionary: Dictionary) -> Truth:
    """``column < 'text'`` and the like."""
    size, low = len(dictionary), dictionary.lower_bound(text)
    high = low + dictionary.is_at(text, low)  # behind the text, where it is an entry
    first, end = {"lt": (0, low), "le": (0, high), "ge": (low, size), "gt": (high, size)}.get(function, (low, high))
    holds = np.zeros(size, np.bool_)
    holds[first:end] = True
    return _of(~holds if function == "ne" else holds)


def _like(pattern: str, escape: str, dictionary: Dictionary) -> Truth | None:
    """LIKE with a beginning and an end, or with one part anywhere."""
    split = pieces(pattern, escape)
    if split is None:
        return None
    start, *parts, end = split
    values: Any = dictionary.values
    tests: list[tuple[str, bytes]] = []
    if parts:
        if start or end or len(parts) > 1:
            return None
        tests.append(("match_substring", parts[0]))
    if start:
        tests.append(("starts_with", start))
    if end:
        tests.append(("ends_with", end))
    holds = np.ones(len(dictionary), np.bool_)
    if start and end:
        holds &= np.diff(offsets_of(values)) >= len(start) + len(end)
    for function, text in tests:
        holds &= bits_of(matches(function, values, text.decode()), 1).view(np.bool_)
    return _of(holds)
