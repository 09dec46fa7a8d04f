"""Grid: what one thread of a GPU's grid does in a kernel, as nodes.

It takes the rows lo + its number, and from there on every thread-count-th, several at once while there are as many. Indices
are of 32 bits, which wrap, or of 64. All is behind a look at the abort flag. A launch that does not know how many rows there are
has a limit beside its last row: a number in the GPU's memory.
"""

from __future__ import annotations

from gquery.kernels.ir import HIGH, LOW, ROW, Block, Call, Constant, Expression, If, Let, Load, Name, Operation, While
from gquery.kernels.kernel import Kernel
from gquery.kernels.lowering.products import with_products_apart
from gquery.kernels.unroll import UnrolledLoop

ABORT = Name("abort")
"""The parameter that points to the abort flag: nothing is done where that is not 0."""

END, LIMIT = Name("row_end"), Name("row_limit")
"""The parameters for the end of the rows, and for where the number lies (int64) of which the lesser one counts."""

_STEP = Name("row_step")
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
