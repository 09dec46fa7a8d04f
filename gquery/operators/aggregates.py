"""The lines that accumulate a row into the words of its aggregates' state (`planner.aggregates` says which words those
are)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import assert_never

from gquery import tuning
from gquery.expression.expr import Call, Case, Cast, Column, Expr, Literal
from gquery.expression.facts import INT64_BITS, INT128_BITS
from gquery.expression.traverse import walk
from gquery.expression.types import Register
from gquery.kernels import ir
from gquery.kernels.bindings import NeedsHostError
from gquery.kernels.bodies import ARITHMETIC
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
    _compute_branch_values((arg for only, arg in by_guard if only is None and arg is not None), code)
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


def _compute_branch_values(exprs: Iterable[Expr], code: Code) -> None:
    """Write what many CASEs among expressions, all of which the row at hand asks for, give in a branch:

    sum(CASE WHEN month = 1 THEN price * quantity ELSE 0 END),        v = price * quantity
    sum(CASE WHEN month = 2 THEN price * quantity ELSE 0 END),   =>   the first sum gets v where month = 1,
    ...                                                               the second where month = 2, ...

    A branch is a block of its own, so each would load both columns and multiply. A row that needs none of them pays for the
    value, which is little beside as many tests; so it has to be a number, and nothing about it may fail."""
    counted: Counter[Expr] = Counter()
    for e in exprs:
        counted.update({v for v in _branch_values(e) if not isinstance(v, Literal)})
    for value, cases in counted.items():
        if cases >= tuning.kernel_texts.shared_branches and _is_harmless(value, code):
            render(value, code)


def _branch_values(e: Expr) -> Iterator[Expr]:
    """The values of the CASEs in an expression that are computed for each row."""
    if isinstance(e, Case):
        yield from (value for _, value in e.branches)
        yield e.otherwise
    elif isinstance(e, Call | Cast):
        for child in e.children:
            yield from _branch_values(child)


def _is_harmless(value: Expr, code: Code) -> bool:
    """Whether a value is a number that is computed in a few steps and without an error, whatever the row holds."""
    for e in walk(value):
        is_written = isinstance(e, Column | Literal | Cast) or (isinstance(e, Call) and e.function in ARITHMETIC)
        if not (is_written and e.dtype.is_numeric):
            return False
    if isinstance(value, Column):
        return True
    trial = Code(code.target, code.known)
    try:
        render(value, trial)
    except NeedsHostError:
        return False
    return not trial.sites and not trial.functions
