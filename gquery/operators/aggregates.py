"""The lines that accumulate a row into the words of its aggregates' state (`planner.aggregates` says which words those
are)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import assert_never

from gquery.expression.expr import Expr
from gquery.expression.facts import INT64_BITS, INT128_BITS
from gquery.expression.types import Register
from gquery.kernels import ir
from gquery.kernels.code import Code
from gquery.kernels.render import condition, render
from gquery.kernels.values import Value
from gquery.planner.aggregates import Accumulator, Address, Length, One, Ordered, Piece, Whole


def emit_accumulate(
    accumulators: Sequence[Accumulator], code: Code, accumulate_into: Callable[[int, Accumulator, ir.Expression], None]
) -> None:
    """Write the lines that accumulate the current row: ``accumulate_into(index, accumulator, word)`` writes one."""
    by_guard: dict[tuple[Expr | None, Expr | None], list[int]] = {}
    for n, accumulator in enumerate(accumulators):
        by_guard.setdefault((accumulator.filter, accumulator.arg), []).append(n)
    for (only, arg), indices in by_guard.items():
        depth = 0
        if only is not None:
            code.open_if(condition(only, code))
            depth += 1
        value = render(arg, code) if arg is not None else None
        if value is not None and value.ok is not None:
            code.open_if(value.ok)
            depth += 1
        for n in indices:
            accumulate_into(n, accumulators[n], _word(accumulators[n], value, code))
        code.close(depth)


def _word(accumulator: Accumulator, value: Value | None, code: Code) -> ir.Expression:
    if isinstance(accumulator.input, One):
        return code.integer(1)
    assert value is not None
    match accumulator.input:
        case Whole():
            is_truth = value.properties.register is Register.BOOL
            return code.call("from_bool", value.var) if is_truth else value.var
        case Ordered():
            return code.call("f64_order", value.var)
        case Address():
            return code.call("str_address", value.var)
        case Length():
            return code.call("str_bytes", value.var)
        case Piece(number, bits):
            return _piece(number, bits, value, code)
        case _:
            assert_never(accumulator.input)


def _piece(number: int, bits: int, value: Value, code: Code) -> ir.Expression:
    """``bits`` bits of a value from bit ``number * bits`` on; with the sign if they are the last."""
    first_bit, width, var = number * bits, INT64_BITS, value.var
    if value.properties.register is Register.I128:
        width = INT128_BITS
        var = code.let(code.call("low_i128" if first_bit < INT64_BITS else "high_i128", var))
    shift = first_bit % INT64_BITS
    shifted = code.call("shr_i64", var, code.integer(shift)) if shift else var
    if first_bit + bits == width:
        return shifted
    return code.call("and_i64", shifted, code.integer((1 << bits) - 1))
