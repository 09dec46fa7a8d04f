"""The staged loop shape: several rows an iteration through a chain of look-ups, a step at a time.

A probe waits for memory twice: for its key, and for the place that the key says; the next probe waits again. A thread that
takes one row after the other has one of these loads under way. Here it makes the same step for several rows before it makes
the next one, so that their loads are under way together. The text of the lazy body, a chain of nested ifs, is cut into its
steps; each step of a row runs under a flag that says whether the row got there, and what follows the last look-up is written
once a row or as a function, as in `kernels.batch`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from gquery.kernels.batch import Batch, assigned, for_row, row_function, split_loads

MOST_STEPS = 4  # nested ifs
MOST_LEFT = 24  # lines behind the last look-up, which are written for each row and take their time to compile
_ASSIGNS = re.compile(r"^\s*(v\d+) = ")
_READS = re.compile(r"\b(?:[cmsb]\d+\[|bit_test\()")  # goes to memory
_LOOKS_UP = re.compile(r"\bb\d+\b")
_NAME = re.compile(r"\bv\d+\b")
_INDENT = "    "
_UNMARKED = "keep = False"  # how a body of `operators.collect` begins that marks the rows which it keeps

Statement = tuple[str, ...]  # a line, and the lines of its block


@dataclass(frozen=True)
class _Step:
    """Statements that every row which got here makes, and the test that it then has to pass."""

    statements: tuple[Statement, ...]
    test: str


def staged(body: Sequence[str], rows: int, ahead: Collection[str], prologue: Sequence[str] = ()) -> Batch | None:
    """``body`` for ``rows`` rows at once, a step at a time; None where no look-up stands in its chain, or much behind it.
    ``prologue`` are the lines before the loop, whose variables the rows share.

    >>> body = ["v0 = i64(c0[i])", "v1 = sub_i64(v0, k0)", "v2 = bit_test(b0, v1)", "if v2:", "    n = add_i64(n, v0)"]
    >>> print("\\n".join(staged(body, 2, {"v0"}).body))
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
    loads, rest = split_loads(body, ahead)
    before, rest, behind = _marks(rest)
    steps, tail = _chain(rest)
    if not steps or len(tail) > MOST_LEFT or any(line.lstrip().startswith(("for ", "while ")) for line in tail):
        return None
    function = row_function(tail, assigned(prologue) | assigned(before))
    if function is not None:
        tail = [function.call]
    out = [for_row(line, row) for line in loads for row in range(rows)]
    guard: str | None = None
    for n, step in enumerate(steps):
        *groups, last = _groups(step.statements) or [[]]
        if not step.test.isidentifier():  # what it looks at may still be under way
            groups, last = [*groups, last], []
        for group in groups:
            for row in range(rows):
                out += _guarded([for_row(line, row) for s in group for line in s], guard, row)
        is_flag = guard is None and _NAME.fullmatch(step.test) is not None  # which every row has
        for row in range(rows):
            lines = [for_row(line, row) for s in last for line in s]
            if not is_flag:
                lines.append(f"g{n}_{row} = {for_row(step.test, row)}")
            out += ([] if guard is None else [f"g{n}_{row} = False"]) + _guarded(lines, guard, row)
        guard = step.test if is_flag else f"g{n}"
    for row in range(rows):
        out += before
        out += _guarded([for_row(line, row) for line in tail], guard, row)
        out += [for_row(line, row) for line in behind]
    return Batch(rows, tuple(out), function=function)


def _guarded(lines: list[str], guard: str | None, row: int) -> list[str]:
    if guard is None or not lines:
        return lines
    return [f"if {guard}_{row}:", *(_INDENT + line for line in lines)]


def _marks(body: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
    """What a body that marks rows does before and behind its chain, for a row at a time, and the chain."""
    if body[0] != _UNMARKED:
        return [], list(body), []
    statements = _statements(body)
    last = max((n for n, s in enumerate(statements) if s[0].startswith("if ") and len(s) > 1), default=0)
    chain = [line for s in statements[1 : last + 1] for line in s]
    return [_UNMARKED], chain, [line for s in statements[last + 1 :] for line in s]


def _chain(body: Sequence[str]) -> tuple[list[_Step], list[str]]:
    """The steps of a body up to its last look-up, and what is left for a row that passes their tests."""
    steps: list[_Step] = []
    left, found, rest = list(body), 0, list(body)
    while left and len(steps) < MOST_STEPS:
        *first, last = _statements(left)
        if not last[0].startswith("if ") or len(last) == 1 or not all(_is_simple(s) for s in first):
            break
        steps.append(_Step(tuple(first), last[0][len("if ") : -1]))
        left = [line[len(_INDENT) :] for line in last[1:]]
        if any(_LOOKS_UP.search(line) for s in first for line in s):
            found, rest = len(steps), left
    return steps[:found], rest


def _statements(lines: Sequence[str]) -> list[Statement]:
    """The statements of a block, each with the lines that belong to it."""
    out: list[list[str]] = []
    for line in lines:
        if out and line.startswith((_INDENT, "else:", "elif ")):
            out[-1].append(line)
        else:
            out.append([line])
    return [tuple(s) for s in out]


def _is_simple(statement: Statement) -> bool:
    """Whether it only makes values of its own row: no loop, nothing stored, no state of the thread."""
    return all(_ASSIGNS.match(line) or line.lstrip().startswith(("if ", "else:", "pass")) for line in statement)


def _groups(statements: Sequence[Statement]) -> list[list[Statement]]:
    """Statements that a row makes one after another; what waits for a load of a group is in a later one."""
    groups: list[list[Statement]] = []
    loaded: set[str] = set()
    for s in statements:
        if not groups or any(name in loaded for line in s for name in _NAME.findall(_after_assignment(line))):
            groups.append([])
            loaded = set()
        groups[-1].append(s)
        if any(_READS.search(line) for line in s):
            loaded |= {m[1] for line in s if (m := _ASSIGNS.match(line))}
    return groups


def _after_assignment(line: str) -> str:
    found = _ASSIGNS.match(line)
    return line[found.end() :] if found else line
