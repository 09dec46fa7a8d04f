"""Grid: what one thread of a GPU's grid does in a kernel, as nodes.

It takes the rows lo + its number, and from there on every thread-count-th, several at once while there are as many. Indices
are of 32 bits, which wrap, or of 64. All is behind a look at the abort flag. A launch that does not know how many rows there are
has a limit beside its last row: a number in the GPU's memory.

Products within loops over integers are an instruction that libNVVM does not look into. A loop over the matches of a row adds
values of that row again and again; libNVVM (13.5, for architectures before 10.0) works out what it adds up to, and where a term
is a product, and another is added by a condition, that ended the process: `sum(a.x), var_pop(a.y)` over a join in which a row of
``a`` has several matches. Moving it out of the loop is left to it.
"""

from __future__ import annotations

from collections.abc import Sequence

from gquery.kernels.ir import (
    HIGH,
    LOW,
    ROW,
    Block,
    Call,
    Constant,
    Expression,
    For,
    If,
    Let,
    Load,
    Name,
    Operation,
    Statement,
    While,
)
from gquery.kernels.ir.walk import blocks, with_blocks, with_calls
from gquery.kernels.kernel import Kernel
from gquery.kernels.unroll import UnrolledLoop

ABORT = Name("abort")
"""The parameter that points to the abort flag: nothing is done where that is not 0."""

END, LIMIT = Name("row_end"), Name("row_limit")
"""The parameters for the end of the rows, and for where the number lies (int64) of which the lesser one counts."""

_STEP = Name("row_step")
_APART = {"mul_i64": "mul_i64_apart"}
_WARP = 31  # or'ed to a row's index: that of the last lane of its warp


def grid_body(kernel: Kernel) -> Block:
    """The statements of a kernel's entry, whose parameters are ``lo``, ``row_end``, ``abort``, ``row_limit`` and its own. Both
    words are loaded before either is looked at."""
    index = "uint64" if kernel.wide_index else "uint32"
    own: list[Let] = [
        Let(_STEP, Call(index, (Call("thread_count", ()),))),
        Let(ROW, Operation(LOW, "+", Call(index, (Call("thread_index", ()),)))),
    ]
    several: Block = ()
    body = kernel.body
    if kernel.unrolled is not None:
        several = with_products_apart([_several_rows(kernel.unrolled, index)])
        body = kernel.unrolled.single or body
    body = with_products_apart(body)
    rows = While(Operation(ROW, "<", HIGH), (*body, Let(ROW, Operation(ROW, "+", _STEP))))
    least = Call("min_i64", (Call("i64", (END,)), Load(LIMIT, Constant(0))))
    runs = Call("eq_i64", (Load(ABORT, Constant(0)), Constant(0)))
    return (
        Let(HIGH, Call(index, (least,))),
        If(runs, (*own, *kernel.prologue, *several, rows, *kernel.epilogue)),
    )


def _several_rows(unrolled: UnrolledLoop, index: str) -> While:
    """The loop over several rows an iteration. The last of a warp's rows decides, with 64 bits, whether there is one more, so
    that all its lanes take the same loop."""
    last = Call("i64", (Operation(ROW, "|", Call(index, (Constant(_WARP),))),))
    beyond = Operation(Constant(unrolled.rows - 1), "*", _STEP)
    rows = [Let(Name(f"i{k}", "row"), _later(k, index)) for k in range(unrolled.rows)]
    body = (*rows, *unrolled.body, Let(ROW, _later(unrolled.rows, index)))
    return While(Operation(Operation(last, "+", beyond), "<", Call("i64", (HIGH,))), body)


def _later(steps: int, index: str) -> Expression:
    """The row so many steps on."""
    count = Call(index, (Constant(steps),))
    return Operation(ROW, "+", Operation(count, "*", _STEP)) if steps else ROW


def with_products_apart(block: Sequence[Statement]) -> Block:
    """The statements with other products in loops over integers."""
    return tuple([_with_products_apart(s) for s in block])


def _with_products_apart(s: Statement) -> Statement:
    if isinstance(s, For):
        return with_blocks(s, [with_calls(s.body, _apart)])
    return with_blocks(s, [with_products_apart(b) for b in blocks(s)])


def _apart(call: Call) -> Call:
    return Call(_APART[call.function], call.arguments) if call.function in _APART else call
