"""Marks: the first filters of a loop are computed for a block of rows without a branch, the rest for the rows that they marked.

A processor that guesses wrong whether a row passes a filter throws away some fifteen cycles of work, and where a third of the
rows pass it does so at every third row. Filters that only compare columns cannot fail, so they may as well be computed for
all rows: vectorised, a handful of rows a cycle. Each row of a block gets a byte; 64 bytes become a word, and a loop over its
bits, which is mispredicted about once a word, does the rest of the row. The order of the rows stays.

Columns are loaded again for a marked row, and what the filters computed is computed again where it is used: all lies in the
nearest cache. Only the lowered loop for a processor has this form; the kernel's text, which other compilers take, has not.
"""

from __future__ import annotations

from collections.abc import Collection

from gquery.expression.facts import INT64_BITS
from gquery.kernels.ir.expressions import (
    HIGH,
    LOW,
    ROW,
    And,
    Call,
    Constant,
    Element,
    Expression,
    Load,
    Name,
    Not,
    Operation,
    Or,
    Parenthesized,
)
from gquery.kernels.ir.statements import Block, For, If, Let, Statement, Store, While
from gquery.kernels.ir.walk import blocks, over, read, sets_any
from gquery.kernels.unroll import row_names
from gquery.runtime.records import dataclass

MARKS = Name("marks")
"""The parameter that points to a byte a row of a block, which is the thread's own."""

_FIRST, _END, _WORD, _BITS, _PAD = Name("block"), Name("block_end"), Name("word"), Name("bits"), Name("pad")
_OPERATIONS = frozenset(["add", "sub", "mul", "min", "max", "neg", "eq", "ne", "lt", "le", "gt", "ge"])
PURE = frozenset([f"{name}_{t}" for name in _OPERATIONS for t in ("i64", "f64")]) | frozenset(
    [
        "i64",
        "f64",
        "truth",
        "from_bool",
        "and_i64",
        "or_i64",
        "xor_i64",
        "shl_i64",
        "shr_i64",
        "shr_u64",
        "lt_u64",
        "eq_u32",
    ]
)
"""Primitives that have a value for all arguments and do nothing else."""


@dataclass(frozen=True)
class Filters:
    """The first filters of a loop: the statements that they compute with, the tests that a row has to pass, and what is done for
    one that does."""

    computed: Block
    tests: tuple[Expression, ...]
    rest: Block


def filters(body: Block) -> Filters | None:
    """The filters that a loop's body begins with and that can be computed for any row; None where there are none.

    >>> from gquery.kernels.ir.read import read_lines
    >>> body = read_lines("if lt_i64(v0, k0):", "    if fails(v0):", "        n = add_i64(n, v0)")
    >>> [t.text() for t in filters(body).tests]
    ['lt_i64(v0, k0)']
    """
    computed: list[Statement] = []
    tests: list[Expression] = []
    rest = body
    while rest and isinstance(last := rest[-1], If) and last.otherwise is None and _is_pure(last.test):
        if not all(is_computed(s) for s in rest[:-1]):
            break
        computed += rest[:-1]
        tests.append(last.test)
        rest = last.then
    used = {*read(computed), *[name for test in tests for name in read([If(test, ())])]}
    if not tests or sets_any(rest, used):  # what a row leaves behind may decide about the next one
        return None
    return Filters(tuple(computed), tuple(tests), rest)


def marked_loop(found: Filters, rows: int) -> Block:
    """The loop over the rows ``lo`` to ``hi``: blocks of ``rows``, a multiple of 64, are marked, then the marked rows are done.
    `MARKS` has room for as many bytes."""
    size = Call("uint64", (Constant(rows),))
    end = Call("min_i64", (_integer(Operation(_FIRST, "+", size)), _integer(HIGH)))
    word = Operation(_FIRST, "+", _WORD)
    following = Operation(_WORD, "+", Call("uint64", (Constant(INT64_BITS),)))
    body: Block = (
        Let(_END, Call("row_index", (end,))),
        *_mark(found),
        Let(_WORD, Call("uint64", (Constant(0),))),
        While(Operation(word, "<", _END), (*_do_word(found, word), Let(_WORD, following))),
        Let(_FIRST, _END),
    )
    return (Let(_FIRST, Call("uint64", (LOW,))), While(Operation(_FIRST, "<", HIGH), body))


def _mark(found: Filters) -> Block:
    """Write the byte of each row of a block, and zeros behind them up to a whole word."""
    names = row_names(0)
    tests = [Let(Name(f"test{n}", "row"), test.over(names)) for n, test in enumerate(found.tests)]
    marked = tests[0].target if len(tests) == 1 else And(tuple([t.target for t in tests]))
    row = Name("i0", "row")
    rows = _integer(Operation(_END, "-", _FIRST))
    whole = Call("and_i64", (Call("add_i64", (rows, Constant(INT64_BITS - 1))), Constant(-INT64_BITS)))
    return (
        For(row, _FIRST, _END, (*over(found.computed, names), *tests, _set_mark(Operation(row, "-", _FIRST), marked))),
        For(_PAD, rows, whole, (_set_mark(_PAD, Constant(False)),)),
    )


def _do_word(found: Filters, word: Expression) -> Block:
    """Do the rows of a word's bits, from the lowest up."""
    row = Operation(word, "+", Call("uint64", (Call("lowest_bit", (_BITS,)),)))
    others = Call("and_i64", (_BITS, Call("sub_i64", (_BITS, Constant(1)))))
    body = (Let(ROW, row), Let(_BITS, others), *found.computed, *found.rest)
    return (
        Let(_BITS, Call("marks_word", (MARKS, _integer(_WORD)))),
        While(Call("ne_i64", (_BITS, Constant(0))), body),
    )


def _set_mark(place: Expression, mark: Expression) -> Statement:
    return Store(Call("store_bool", (MARKS, _integer(place), mark)))


def _integer(e: Expression) -> Call:
    return Call("i64", (e,))


def is_computed(s: Statement, functions: Collection[str] = PURE) -> bool:
    """Whether a statement only sets variables of the row, to what has a value for all rows; ``functions`` are the primitives that
    have."""
    match s:
        case Let(target, value):
            return target.role == "row" and _is_pure(value, functions)
        case If(test=test):
            return _is_pure(test, functions) and all(
                is_computed(inner, functions) for block in blocks(s) for inner in block
            )
        case _:
            return False


def _is_pure(e: Expression, functions: Collection[str] = PURE) -> bool:
    match e:
        case Name() | Constant() | Element():
            return True
        case Load(pointer, index):
            return pointer.role == "column" and index == ROW
        case Call(function, arguments):
            return function in functions and all(_is_pure(a, functions) for a in arguments)
        case And(terms) | Or(terms):
            return all(_is_pure(t, functions) for t in terms)
        case Not(inner) | Parenthesized(inner):
            return _is_pure(inner, functions)
        case _:
            return False
