"""What a row adds to each fold, as variables; and the group that a thread holds back in registers.

Where many rows belong to one group, their atomics wait for each other at one address: the GPU folds some ten thousand million
words a second into many groups, and only one thousand million into one. So each thread holds one group's accumulators in
registers. A row of that group is folded there; any other row goes on to the table, or takes the place if the group that
is held has not come for a while, and that one goes on instead. Where keys are spread, each row goes on one row later, for
a few instructions that a loop bound by memory has time for; a group with a tenth of all rows and more stays held.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gquery.kernels.code import Code
from gquery.kernels.render import describe
from gquery.operators.aggregates import emit_folds
from gquery.operators.reduce import identity_text
from gquery.planner.aggregates import Fold

HELD_FOLDS = 8  # more accumulators would leave a processor fewer threads
PATIENCE = 32  # rows of other groups after which a group that is held gives way

Out = Callable[[str, Sequence[str]], None]
"""``out(key, words)`` writes the lines that fold words into the group of a key."""


def is_guarded(fold: Fold, code: Code) -> bool:
    """Whether some rows add nothing to a fold."""
    return fold.filter is not None or (fold.arg is not None and describe(fold.arg, code.known, code.target).nullable)


def row_words(folds: Sequence[Fold], code: Code) -> list[str]:
    """Variables with what the current row adds to each fold: its identity where that is nothing."""
    names = [code.name("w") for _ in folds]
    for name, fold in zip(names, folds, strict=True):
        if is_guarded(fold, code):
            code.line(f"{name} = {identity_text(fold, code)}")
    emit_folds(folds, code, lambda n, fold, text: code.line(f"{names[n]} = {text}"))
    return names


def fold_words(folds: Sequence[Fold], words: Sequence[str], code: Code, fold_one: Callable[[int, Fold], str]) -> None:
    """Lines that fold words; ``fold_one(n, fold)`` gives the text for one. Sums are passed by where there is nothing to add."""
    for n, (fold, word) in enumerate(zip(folds, words, strict=True)):
        if fold.op == "add" and is_guarded(fold, code):
            with code.block(f"if {code.call(f'ne_{fold.word}', word, code.call(fold.word, '0'))}:"):
                code.line(fold_one(n, fold))
        else:
            code.line(fold_one(n, fold))


def hold(folds: Sequence[Fold], key: str, words: Sequence[str], code: Code, out: Out) -> None:
    """Fold a row into the group that the thread holds, or let it, or that one, go on to ``out``."""
    zero = code.call("i64", "0")
    is_new = f"held = {zero}" not in code.prologue  # a probe may write what follows it more than once
    if is_new:
        code.prologue += [f"held = {zero}", f"patience = {code.call('i64', '-1')}"]  # -1: no group is held yet
        code.prologue += [f"acc{n} = {identity_text(fold, code)}" for n, fold in enumerate(folds)]
    with code.block(f"if {code.call('eq_i64', key, 'held')}:"):
        code.line(f"patience = {code.call('i64', str(PATIENCE))}")
        for n, (fold, word) in enumerate(zip(folds, words, strict=True)):
            code.line(f"acc{n} = {code.call(f'{fold.op}_{fold.word}', f'acc{n}', word)}")
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
            out("held", [f"acc{n}" for n in range(len(folds))])

    if is_new:
        code.after_rows(flush)
