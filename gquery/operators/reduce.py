"""Reduce: aggregates without keys. Each thread accumulates into variables; one row comes out, also for no input."""

from __future__ import annotations

from collections.abc import Sequence

from gquery.kernels import ir
from gquery.kernels.code import Code
from gquery.operators.aggregates import emit_accumulate
from gquery.operators.base import words_part
from gquery.planner.aggregates import Accumulator


def begin(accumulators: Sequence[Accumulator], code: Code) -> None:
    """Write the statements before the loop: each accumulator is a variable with its identity."""
    for n, accumulator in enumerate(accumulators):
        code.prologue.append(ir.Let(accumulated(n), identity(accumulator, code)))


def accumulated(n: int) -> ir.Name:
    """The thread's variable of accumulator ``n``."""
    return ir.Name(f"acc{n}")


def identity(accumulator: Accumulator, code: Code) -> ir.Expression:
    """The value that changes no other one, as an expression."""
    if accumulator.op == "add":
        return code.call(accumulator.word, ir.Constant(0 if accumulator.word == "i64" else 0.0))
    return code.constant(accumulator.identity)


def emit(accumulators: Sequence[Accumulator], code: Code) -> None:
    """Write the statements that accumulate the current row into the variables."""

    def into(n: int, accumulator: Accumulator, word: ir.Expression) -> None:
        total = accumulated(n)
        code.set(total, code.call(f"{accumulator.op}_{accumulator.word}", total, word))

    emit_accumulate(accumulators, code, into)


def end(accumulators: Sequence[Accumulator], code: Code) -> None:
    """Write the statements behind the loop: each variable goes into the state, against other threads."""
    for n, accumulator in enumerate(accumulators):
        state = code.pointer(accumulator.word, words_part(accumulator.word), "s")
        call = code.call(f"reduce_{accumulator.op}_{accumulator.word}", state, ir.Constant(n), accumulated(n))
        code.epilogue.append(ir.Store(call))
