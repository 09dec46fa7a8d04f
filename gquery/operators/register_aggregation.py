"""Register pre-aggregation on a GPU: each thread accumulates one group in registers before rows reach a table.

Where many rows belong to one group, their atomics wait for each other at one address: a GPU accumulates some ten thousand
million words a second into many groups, and only one thousand million into one. So each thread keeps one group's accumulators
in registers. A row of that group is accumulated there. A row of another group goes on to the table, and lowers the eviction
count; when that is 0, the row's group takes the registers, and the group that was there is evicted to the table. Where keys are
spread, each row goes on one row later, for a few instructions that a loop bound by memory has time for. A group with a tenth of
all rows and more stays in the registers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gquery import tuning
from gquery.kernels import ir
from gquery.kernels.code import Code
from gquery.kernels.render import described
from gquery.operators.aggregates import emit_accumulate
from gquery.operators.reduce import accumulated, identity
from gquery.planner.aggregates import Accumulator

_KEY, _EVICTION_COUNT = ir.Name("register_key"), ir.Name("eviction_count")

Out = Callable[[ir.Expression, Sequence[ir.Expression]], None]
"""``out(key, words)`` writes the lines that accumulate words into the group of a key."""


def is_guarded(accumulator: Accumulator, code: Code) -> bool:
    """Whether some rows add nothing to an accumulator."""
    return accumulator.filter is not None or (accumulator.arg is not None and described(accumulator.arg, code).nullable)


def row_contributions(accumulators: Sequence[Accumulator], code: Code) -> list[ir.Name]:
    """Variables with what the current row adds to each accumulator: its identity where that is nothing."""
    names = [code.name("w") for _ in accumulators]
    for name, accumulator in zip(names, accumulators, strict=True):
        if is_guarded(accumulator, code):
            code.set(name, identity(accumulator, code))
    emit_accumulate(accumulators, code, lambda n, accumulator, word: code.set(names[n], word))
    return names


def accumulate_words(
    accumulators: Sequence[Accumulator],
    words: Sequence[ir.Expression],
    code: Code,
    accumulate_one: Callable[[int, Accumulator], ir.Expression],
) -> None:
    """Lines that accumulate words; ``accumulate_one(n, accumulator)`` gives the call for one. Sums are skipped where
    there is nothing to add."""
    for n, (accumulator, word) in enumerate(zip(accumulators, words, strict=True)):
        if accumulator.op == "add" and is_guarded(accumulator, code):
            zero = code.call(accumulator.word, ir.Constant(0))
            with code.when(code.call(f"ne_{accumulator.word}", word, zero)):
                code.do(accumulate_one(n, accumulator))
        else:
            code.do(accumulate_one(n, accumulator))


def preaggregate(
    accumulators: Sequence[Accumulator], key: ir.Expression, words: Sequence[ir.Expression], code: Code, out: Out
) -> None:
    """Accumulate a row into the group that the thread holds, or let it, or that one, go on to ``out``."""
    zero = code.integer(0)
    is_new = ir.Let(_KEY, zero) not in code.prologue  # a probe may write what follows it more than once
    if is_new:
        code.prologue += [ir.Let(_KEY, zero), ir.Let(_EVICTION_COUNT, code.integer(-1))]  # -1: no group is held yet
        code.prologue += [ir.Let(accumulated(n), identity(one, code)) for n, one in enumerate(accumulators)]
    with code.when(code.call("eq_i64", key, _KEY)):
        code.set(_EVICTION_COUNT, code.integer(tuning.accumulators.most_evictions))
        for n, (accumulator, word) in enumerate(zip(accumulators, words, strict=True)):
            code.set(accumulated(n), code.call(f"{accumulator.op}_{accumulator.word}", accumulated(n), word))
    with code.otherwise():
        going, leaving = code.let(key), [code.let(word) for word in words]
        state = code.let(zero)
        with code.when(code.call("gt_i64", _EVICTION_COUNT, zero)):
            code.set(_EVICTION_COUNT, code.call("sub_i64", _EVICTION_COUNT, code.integer(1)))
        with code.otherwise():
            code.set(state, _EVICTION_COUNT)
            code.swap(going, _KEY)
            for n, name in enumerate(leaving):
                code.swap(name, accumulated(n))
            code.set(_EVICTION_COUNT, zero)
        with code.when(code.call("ge_i64", state, zero)):
            out(going, leaving)

    def flush() -> None:
        with code.when(code.call("ge_i64", _EVICTION_COUNT, zero)):
            out(_KEY, [accumulated(n) for n in range(len(accumulators))])

    if is_new:
        code.after_rows(flush)
