"""What a row adds to each accumulator, as variables; and the group that a thread holds back in registers.

Where many rows belong to one group, their atomics wait for each other at one address: the GPU accumulates some ten
thousand million words a second into many groups, and only one thousand million into one. So each thread holds one
group's accumulators in registers. A row of that group is accumulated there; any other row goes on to the table, or
takes the place if the group that is held has not come for a while, and that one goes on instead. Where keys are spread,
each row goes on one row later, for a few instructions that a loop bound by memory has time for; a group with a tenth of
all rows and more stays held.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gquery import tuning
from gquery.kernels import ir
from gquery.kernels.code import Code
from gquery.kernels.render import describe
from gquery.operators.aggregates import emit_accumulate
from gquery.operators.reduce import accumulated, identity
from gquery.planner.aggregates import Accumulator

_HELD, _PATIENCE = ir.Name("held"), ir.Name("patience")

Out = Callable[[ir.Expression, Sequence[ir.Expression]], None]
"""``out(key, words)`` writes the lines that accumulate words into the group of a key."""


def is_guarded(accumulator: Accumulator, code: Code) -> bool:
    """Whether some rows add nothing to an accumulator."""
    return accumulator.filter is not None or (
        accumulator.arg is not None and describe(accumulator.arg, code.known, code.target).nullable
    )


def row_words(accumulators: Sequence[Accumulator], code: Code) -> list[ir.Name]:
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
    """Lines that accumulate words; ``accumulate_one(n, accumulator)`` gives the call for one. Sums are passed by where
    there is nothing to add."""
    for n, (accumulator, word) in enumerate(zip(accumulators, words, strict=True)):
        if accumulator.op == "add" and is_guarded(accumulator, code):
            zero = code.call(accumulator.word, ir.Constant(0))
            with code.when(code.call(f"ne_{accumulator.word}", word, zero)):
                code.do(accumulate_one(n, accumulator))
        else:
            code.do(accumulate_one(n, accumulator))


def hold(
    accumulators: Sequence[Accumulator], key: ir.Expression, words: Sequence[ir.Expression], code: Code, out: Out
) -> None:
    """Accumulate a row into the group that the thread holds, or let it, or that one, go on to ``out``."""
    zero = code.integer(0)
    is_new = ir.Let(_HELD, zero) not in code.prologue  # a probe may write what follows it more than once
    if is_new:
        code.prologue += [ir.Let(_HELD, zero), ir.Let(_PATIENCE, code.integer(-1))]  # -1: no group is held yet
        code.prologue += [ir.Let(accumulated(n), identity(one, code)) for n, one in enumerate(accumulators)]
    with code.when(code.call("eq_i64", key, _HELD)):
        code.set(_PATIENCE, code.integer(tuning.accumulators.most_evictions))
        for n, (accumulator, word) in enumerate(zip(accumulators, words, strict=True)):
            code.set(accumulated(n), code.call(f"{accumulator.op}_{accumulator.word}", accumulated(n), word))
    with code.otherwise():
        going, leaving = code.let(key), [code.let(word) for word in words]
        state = code.let(zero)
        with code.when(code.call("gt_i64", _PATIENCE, zero)):
            code.set(_PATIENCE, code.call("sub_i64", _PATIENCE, code.integer(1)))
        with code.otherwise():
            code.set(state, _PATIENCE)
            code.swap(going, _HELD)
            for n, name in enumerate(leaving):
                code.swap(name, accumulated(n))
            code.set(_PATIENCE, zero)
        with code.when(code.call("ge_i64", state, zero)):
            out(going, leaving)

    def flush() -> None:
        with code.when(code.call("ge_i64", _PATIENCE, zero)):
            out(_HELD, [accumulated(n) for n in range(len(accumulators))])

    if is_new:
        code.after_rows(flush)
