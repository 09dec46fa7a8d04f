"""Reduce: aggregates without keys. Each thread accumulates into variables; one row comes out, also for no input.

On a GPU the variables are registers. Many of them leave room for few threads, then spill, and compilers take time with their
square. So many accumulators are computed in several passes over the rows, by a kernel each. The kernels of passes that differ
in constants alone are one kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from gquery import tuning
from gquery.expression.expr import Expr
from gquery.kernels import ir
from gquery.kernels.code import Code
from gquery.kernels.targets.capabilities import Capabilities
from gquery.operators.aggregates import emit_accumulate
from gquery.operators.base import words_part
from gquery.planner.aggregates import Accumulator
from gquery.planner.physical import Probe
from gquery.runtime.records import replace

if TYPE_CHECKING:
    from gquery.planner.physical import Reduce, Step


def passes(sink: Reduce, steps: Sequence[Step], able: Capabilities) -> tuple[Reduce, ...]:
    """The sink as the passes over the rows that compute it, in each as many accumulators; those of one value stay together."""
    limits, accumulators = tuning.accumulators, sink.accumulators
    total = most = len(accumulators)
    if able.has_shared_memory:
        most = limits.pass_words_behind_joins if any(isinstance(s, Probe) for s in steps) else limits.pass_words
    if total <= most:
        return (sink,)
    count = -(-total // most)
    cuts = {0, total}
    for cut in range(0, total, -(-total // count)):
        while 0 < cut < total and _value(accumulators[cut]) == _value(accumulators[cut - 1]):
            cut += 1
        cuts.add(cut)
    return tuple(replace(sink, accumulators=accumulators[low:high], first=low) for low, high in pairwise(sorted(cuts)))


def _value(accumulator: Accumulator) -> tuple[Expr | None, Expr | None]:
    """What a row is computed for."""
    return accumulator.filter, accumulator.arg


def roles(count: int) -> tuple[str, ...]:
    """The kernels of so many passes, one after another."""
    return ("main", *(f"pass {n}" for n in range(2, count + 1)))


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


def end(sink: Reduce, code: Code) -> None:
    """Write the statements behind the loop: each variable goes into the state, against other threads."""
    for n, accumulator in enumerate(sink.accumulators):
        state = code.pointer(accumulator.word, replace(words_part(accumulator.word), number=sink.first or None), "s")
        call = code.call(f"reduce_{accumulator.op}_{accumulator.word}", state, ir.Constant(n), accumulated(n))
        code.epilogue.append(ir.Store(call))
