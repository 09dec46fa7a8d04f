"""LIKE and `contains` on a column of texts of the source, tested for all rows before the kernel runs: a bit of a bitmap.

That pays on a GPU where nearly all rows get to the test (`builtin.text_scan` says why). What is written here is the test of
the bit; the bitmap is a binding, `TextMatches`, which is made of the pattern and the column when the kernel is first launched.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gquery import tuning
from gquery.expression.expr import Call, Column, Expr, Literal
from gquery.expression.slots import decided, shown
from gquery.expression.types import BOOLEAN
from gquery.kernels import ir
from gquery.kernels.bindings import ColumnPart, TextMatches
from gquery.kernels.code import Code
from gquery.kernels.patterns import ANY, like_pattern, longest_part, scanned_pattern
from gquery.kernels.slot_constants import note_slots
from gquery.kernels.values import Value, value_properties
from gquery.runtime.records import dataclass


@dataclass(frozen=True)
class ScannedTest:
    """A test of column ``column``: ``prepare`` makes a pattern of the literals' values."""

    column: int
    literals: tuple[Literal, ...]
    prepare: Callable[..., bytes]


def scanned_test(e: Expr) -> ScannedTest | None:
    """What a text scan would have to test for an expression, if its pattern has a part that is long enough; None for others."""
    match e:
        case Call("like", (Column(id=column), Literal() as pattern, *others)):
            literals = pattern, *(x for x in others if isinstance(x, Literal))
            if len(literals) < len(e.args) - 1:
                return None
            found = ScannedTest(column, literals, like_pattern if others else _without_escape)
        case Call("contains", (Column(id=column), Literal() as needle)):
            found = ScannedTest(column, (needle,), _anywhere)
        case _:
            return None
    return None if any(x.is_null for x in found.literals) else found


def is_scanned(test: ScannedTest) -> bool:
    """Whether its pattern, as it is now, has a part that is long enough."""
    return _has_long_part(*map(shown, test.literals), test.prepare, tuning.text_scans.least_bytes)


def by_scan(e: Call, code: Code) -> Value | None:
    """The value of a test that a text scan makes for all rows; None where it is to be made row by row."""
    texts = code.scannable
    test = None if texts is None else scanned_test(e)
    if texts is None or test is None:
        return None
    nullable = texts.columns.get(test.column)
    selectivity = code.selectivity if code.body is texts.block else texts.inner_selectivity
    if nullable is None or selectivity < tuning.text_scans.least_selectivity:
        return None
    if not decided(_has_long_part, test.literals, test.prepare, tuning.text_scans.least_bytes):
        return None
    bitmap = texts.bitmaps.get(e)
    if bitmap is None:
        given = test.prepare, (test.column,)
        bitmap = code.pointer("u32", _matches(*map(shown, test.literals), *given), "f")
        note_slots(bitmap, _matches, test.prepare, test.literals, (test.column,), code)
        texts.bitmaps[e] = bitmap
    return _bit(bitmap, test.column, nullable, texts.row, code)


def _bit(bitmap: ir.Name, column: int, nullable: bool, row: ir.Name, code: Code) -> Value:
    ok = None
    if nullable:
        valid = code.pointer("u8", ColumnPart(None, column, "validity"), "m")
        ok = code.let(code.call("truth", ir.Load(valid, row)))
    word = code.let(code.call("i64", ir.Load(bitmap, code.call("word_index", row))))
    code.hoisted.update((word,) if ok is None else (word, ok))
    return Value(code.let(code.call("bit_at", word, row)), ok, value_properties(BOOLEAN, nullable=nullable))


def _without_escape(pattern: str) -> bytes:
    return like_pattern(pattern, "")


def _anywhere(needle: str) -> bytes:
    """The prepared pattern of the texts that have ``needle`` in them."""
    some = bytes([ANY])
    return some + needle.encode() + some


def _has_long_part(*given: Any) -> bool:
    *values, prepare, least = given
    return longest_part(prepare(*values)) >= int(least)


def _matches(*given: Any) -> TextMatches:
    *values, prepare, (column,) = given
    return TextMatches(column, scanned_pattern(prepare(*values)))
