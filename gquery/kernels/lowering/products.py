"""Products within inner loops, for GPUs: an instruction that libNVVM does not look into.

A loop over the matches of a row adds values of that row again and again. libNVVM (13.5, for architectures before 10.0) works out
what such a loop adds up to, and where a term is a product, and another is added by a condition, that ended the process:
`sum(a.x), var_pop(a.y)` over a join in which a row of ``a`` has several matches. Moving it out of the loop is left to it.
"""

from __future__ import annotations

from collections.abc import Sequence

from gquery.kernels.ir import Block, Call, For, Statement
from gquery.kernels.ir.walk import blocks, with_blocks, with_calls

_APART = {"mul_i64": "mul_i64_apart"}


def with_products_apart(block: Sequence[Statement]) -> Block:
    """The statements with other products in loops over integers."""
    return tuple([_statement(s) for s in block])


def _statement(s: Statement) -> Statement:
    if isinstance(s, For):
        return with_blocks(s, [with_calls(s.body, _apart)])
    return with_blocks(s, [with_products_apart(b) for b in blocks(s)])


def _apart(call: Call) -> Call:
    return Call(_APART[call.function], call.arguments) if call.function in _APART else call
