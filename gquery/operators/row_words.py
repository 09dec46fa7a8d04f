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

from gquery.kernels.code import Code
from gquery.kernels.render import describe
from gquery.operators.aggregates import emit_accumulate
from gquery.operators.reduce import identity_text
from gquery.planner.aggregates import Accumulator

HELD_ACCUMULATORS = 8  # more accumulators would leave a processor fewer threads
PATIENCE = 32  # rows of other groups after which a group that is held gives way

Out = Callable[[str, Sequence[str]], None]
"""``out(key, words)`` writes the lines that accumulate words into the group of a key."""


def is_guarded(accumulator: Accumulator, code: Code) -> bool:
    """Whether some rows add nothing to an accumulator."""
    return accumulator.filter is not None or (
        accumulator.arg is not None and describe(accumulator.arg, code.known, code.target).nullable
    )


def row_words(accumulators: Sequence[Accumulator], code: Code) -> list[str]:
    """Variables with what the current row adds to each accumulator: its identity where that is nothing."""
    names = [code.name("w") for _ in accumulators]
    for name, accumulator in zip(names, accumulators, strict=True):
        if is_guarded(accumulator, code):
            code.line(f"{name} = {identity_text(accumulator, code)}")
    emit_accumulate(accumulators, code, lambda n, accumulator, text: code.line(f"{names[n]} = {text}"))
    return names


def accumulate_words(
    accumulators: Sequence[Accumulator],
    words: Sequence[str],
    code: Code,
    accumulate_one: Callable[[int, Accumulator], str],
) -> None:
    """Lines that accumulate words; ``accumulate_one(n, accumulator)`` gives the text for one. Sums are passed by where
    there is nothing to add."""
    for n, (accumulator, word) in enumerate(zip(accumulators, words, strict=True)):
        if accumulator.op == "add" and is_guarded(accumulator, code):
            with code.block(f"if {code.call(f'ne_{accumulator.word}', word, code.call(accumulator.word, '0'))}:"):
                code.line(accumulate_one(n, accumulator))
        else:
            code.line(accumulate_one(n, accumulator))


def hold(accumulators: Sequence[Accumulator], key: str, words: Sequence[str], code: Code, out: Out) -> None:
    """Accumulate a row into the group that the thread holds, or let it, or that one, go on to ``out``."""
    zero = code.call("i64", "0")
    is_new = f"held = {zero}" not in code.prologue  # a probe may write what follows it more than once
    if is_new:
        code.prologue += [f"held = {zero}", f"patience = {code.call('i64', '-1')}"]  # -1: no group is held yet
        code.prologue += [f"acc{n} = {identity_text(accumulator, code)}" for n, accumulator in enumerate(accumulators)]
    with code.block(f"if {code.call('eq_i64', key, 'held')}:"):
        code.line(f"patience = {code.call('i64', str(PATIENCE))}")
        for n, (accumulator, word) in enumerate(zip(accumulators, words, strict=True)):
            code.line(f"acc{n} = {code.call(f'{accumulator.op}_{accumulator.word}', f'acc{n}', word)}")
    with code.block("else:"):
        going, leaving = code.let(key), [code.let(word) for word in words]
        state = code.let(zero)
        with code.block(f"if {code.call('gt_i64', 'patience', zero)}:"):
            code.line(f"patience = {code.call('sub_i64', 'patience', code.call('i64', '1'))}")
        with code.block("else:"):
            code.line(f"{state} = patience")
            code.line(f"{going}, held = held, {going}")
            for n, name in enumerate(leaving):
                code.line(f"{name}, acc{n} = acc{n}, {name}")
            code.line(f"patience = {zero}")
        with code.block(f"if {code.call('ge_i64', state, zero)}:"):
            out(going, leaving)

    def flush() -> None:
        with code.block(f"if {code.call('ge_i64', 'patience', zero)}:"):
            out("held", [f"acc{n}" for n in range(len(accumulators))])

    if is_new:
        code.after_rows(flush)
