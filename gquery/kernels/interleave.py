"""Interleaved probes (group prefetching): several rows an iteration through a chain of probes, a step at a time.

A probe waits for memory twice: for its key, and for the place that the key says; the next probe waits again. A thread
that takes one row after the other has one of these loads under way. Here it makes the same step for several rows before
it makes the next one, so that their loads are under way together. The lazy body, a chain of nested ifs, is cut into its
steps; each step of a row runs under a flag that says whether the row got there, and what follows the last probe is
written once a row or as a function, as in `kernels.unroll`.
"""

from __future__ import annotations

from collections.abc import Collection

from gquery import tuning
from gquery.kernels.ir.expressions import FALSE, Constant, Expression, LeafMap, Name, name_of
from gquery.kernels.ir.statements import Block, If, Let, Loop, Statement, line_count
from gquery.kernels.ir.walk import assigned, blocks, loads_memory, over, read, statements
from gquery.kernels.unroll import UnrolledLoop, of_whole_warps, row_function, row_names, split_loads
from gquery.runtime.records import dataclass


@dataclass(frozen=True)
class _Step:
    """Statements that every row which got here makes, and the test that it then has to pass."""

    statements: Block
    test: Expression


def interleaved(body: Block, rows: int, hoisted: Collection[Name], prologue: Block = ()) -> UnrolledLoop | None:
    """``body`` for ``rows`` rows at once, a step at a time; None where no probe stands in its chain, or much behind
    it. ``prologue`` are the statements before the loop, whose variables the rows share.

    >>> from gquery.kernels.ir.read import read_lines
    >>> from gquery.kernels.ir.statements import printed
    >>> body = ["v0 = i64(c0[i])", "v1 = sub_i64(v0, k0)", "v2 = bit_test(b0, v1)", "if v2:", "    n = add_i64(n, v0)"]
    >>> print("\\n".join(printed(interleaved(read_lines(*body), 2, {Name("v0", "row")}).body)))
    v0_0 = i64(c0[i0])
    v0_1 = i64(c0[i1])
    v1_0 = sub_i64(v0_0, k0)
    v2_0 = bit_test(b0, v1_0)
    v1_1 = sub_i64(v0_1, k0)
    v2_1 = bit_test(b0, v1_1)
    if v2_0:
        n = add_i64(n, v0_0)
    if v2_1:
        n = add_i64(n, v0_1)
    """
    loads, rest = split_loads(body, hoisted)
    before, rest, behind = _marks(rest)
    steps, tail = _chain(rest)
    if (
        not steps
        or line_count(tail) > tuning.kernel_texts.interleaved_tail
        or any(isinstance(s, Loop) for s in statements(tail))
    ):
        return None
    function = row_function(tail, assigned((*prologue, *before)))
    if function is not None:
        tail = (function.call,)
    each = [row_names(row) for row in range(rows)]
    out = [s for load in loads for row in each for s in over((load,), row)]
    guard = _interleave(steps, each, out)
    for row in each:
        out += before
        out += _guarded(over(tail, row), guard, row)
        out += of_whole_warps(over(behind, row))
    return UnrolledLoop(rows, tuple(out), (), function)


def _interleave(steps: list[_Step], each: list[LeafMap], out: list[Statement]) -> Name | None:
    """Append each step for all rows; the flag of a row that passed the last one."""
    guard: Name | None = None
    for n, step in enumerate(steps):
        *groups, last = _groups(step.statements) or [()]
        if not isinstance(step.test, Name | Constant):  # what it looks at may still be under way
            groups, last = [*groups, last], ()
        for group in groups:
            for row in each:
                out += _guarded(over(group, row), guard, row)
        if guard is None and isinstance(step.test, Name) and step.test.role == "row":  # a flag that every row has
            for row in each:
                out += over(last, row)
            guard = step.test
            continue
        flag = Name(f"g{n}", "row")
        passed: Block = (*last, Let(flag, step.test))
        for row in each:
            if guard is not None:
                out.append(Let(name_of(row(flag)), FALSE))
            out += _guarded(over(passed, row), guard, row)
        guard = flag
    return guard


def _guarded(block: Block, guard: Name | None, row: LeafMap) -> Block:
    """A row's statements under its flag."""
    return block if guard is None or not block else (If(row(guard), block),)


def _marks(body: Block) -> tuple[Block, Block, Block]:
    """What a body that marks rows does before and behind its chain, for a row at a time, and the chain."""
    match body:
        case (Let(Name(role="mark")) as unmarked, *rest):
            last = max((n for n, s in enumerate(rest, 1) if isinstance(s, If)), default=0)
            return (unmarked,), tuple(rest[:last]), tuple(rest[last:])
        case _:
            return (), body, ()


def _chain(body: Block) -> tuple[list[_Step], Block]:
    """The steps of a body up to its last probe, and what is left for a row that passes their tests."""
    steps: list[_Step] = []
    left, found, waiting, rest = body, 0, 0, body
    while left:
        *first, last = left
        if not isinstance(last, If) or last.otherwise is not None or not all(_is_simple(s) for s in first):
            break
        waiting += any(loads_memory(s) for s in first)
        if waiting > tuning.kernel_texts.interleaved_steps:
            break
        steps.append(_Step(tuple(first), last.test))
        left = last.then
        if any(name.role == "build" for name in read(first)):
            found, rest = len(steps), left
    return steps[:found], rest


def _is_simple(s: Statement) -> bool:
    """Whether it only makes values of its own row: no loop, nothing stored, no state of the thread."""
    match s:
        case Let(target=target):
            return target.role == "row"
        case If():
            return all(_is_simple(inner) for block in blocks(s) for inner in block)
        case _:
            return False


def _groups(block: Block) -> list[Block]:
    """Statements that a row makes one after another; what waits for a load of a group is in a later one."""
    groups: list[list[Statement]] = []
    loaded: set[Name] = set()
    for s in block:
        if not groups or not loaded.isdisjoint(read((s,))):
            groups.append([])
            loaded = set()
        groups[-1].append(s)
        if loads_memory(s):
            loaded |= assigned((s,)).keys()
    return [tuple(group) for group in groups]
