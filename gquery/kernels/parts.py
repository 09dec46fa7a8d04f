"""Parts: a long or deeply nested body is cut into functions that it calls.

Numba takes time with the square of a function's blocks and variables, and Python nests no more than 100 blocks. So the body
of a kernel that has more than MOST_LINES lines, or blocks more than MOST_DEPTH within each other, is cut from the inside out:
a run of statements becomes a function of the variables that it reads, which returns those that others read. What is cut is
the text, so that operators need not know. Functions of one text are one function: their variables are named by first use.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

MOST_LINES = 400  # of a body that stays whole
MOST_DEPTH = 60
PART_LINES = 48  # of a function, unless a single statement has more
PART_DEPTH = 12
MOST_CALLS = 192  # of a block, one behind another: what calls parts has many arguments, which take their time too
MOST_PERIOD = 16  # statements of a column
_ALIKE = 0.8  # of the statements, where they repeat themselves
_INDENT = "    "
_NAME = re.compile(
    r"(?<![.\w])[A-Za-z_]\w*\b(?!\()(?:\[\d+\]|@\d+)?"
)  # `q0[7]` is a constant, `q0@7` those from there on
_ARRAY = re.compile(r"\b(q\d+)(?:\[|@)(\d+)")  # constants of a part stand together: it is given the first one's place
_TARGETS = re.compile(r"^(?:([A-Za-z_]\w*(?:, [A-Za-z_]\w*)*) = |for ([A-Za-z_]\w*) in )")
_ARRAY_FROM = re.compile(r"\b(q\d+)@(\d+)")
_WORDS = frozenset(
    ["if", "else", "elif", "while", "for", "in", "not", "and", "or", "is", "pass", "None", "True", "False", "range"]
)
_BOUND = re.compile(r"\b(?:private|block|shared|warp|reduce)_\w+\(")  # to the kernel's own memory or threads


@dataclass
class _Statement:
    """A line with the block below it (``else:`` stands as a statement of its own, behind its ``if``)."""

    line: str
    block: list[_Statement] = field(default_factory=list)

    @property
    def is_else(self) -> bool:
        return self.line.startswith(("else:", "elif "))

    def lines(self, depth: int = 0) -> Iterable[str]:
        yield _INDENT * depth + self.line
        for s in self.block:
            yield from s.lines(depth + 1)


def parted(body: Sequence[str], outside: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The body, and the functions that it calls, each as a text; ``outside`` are the kernel's lines around it.

    >>> body = ["v0 = i64(c0[i])", *[f"n = add_i64(n, mul_i64(v0, k{k}))" for k in range(500)]]
    >>> text, parts = parted(body, ["n = i64(0)"])
    >>> len(text), len(parts), text[1][:50]
    (11, 3, 'n = part1(n, v0, k47, k48, k49, k50, k51, k52, k53')
    """
    deepest = max((len(line) - len(line.lstrip()) for line in body), default=0) // len(_INDENT)
    if len(body) <= MOST_LINES and deepest <= MOST_DEPTH:
        return tuple(body), ()
    return _Parting(body, outside).result()


_Sized = tuple[list[_Statement], int, int]
"""Statements that stay together, their lines and their depth."""


class _Parting:
    def __init__(self, body: Sequence[str], outside: Iterable[str]) -> None:
        self.statements = _tree(body)
        self.uses: dict[str, int] = {}  # by name, the lines that name it
        for line in (*body, *outside):
            for name in set(_names(line)):
                self.uses[name] = self.uses.get(name, 0) + 1
        self.functions: dict[str, str] = {}  # by text without its name, the name

    def result(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        statements, _ = self._cut(self.statements)
        lines = tuple(_ARRAY_FROM.sub(r"\1, i64(\2)", line) for s in statements for line in s.lines())
        return lines, tuple(f"def {name}{text}" for text, name in self.functions.items())

    def _cut(self, statements: list[_Statement]) -> tuple[list[_Statement], int]:
        """The statements of a block in parts, where they are many or deep, and the depth of what is left of them."""
        depths = []
        for s in statements:
            s.block, depth = self._cut(s.block)
            depths.append(depth + 1 if s.block else 0)
        groups = _groups(statements, depths)
        if sum(size for _, size, _ in groups) <= PART_LINES and max(depths, default=0) < PART_DEPTH:
            return statements, max(depths, default=0)
        while True:
            out: list[_Sized] = []
            for chunk in _chunks(groups):
                call = self._part([s for group, _, _ in chunk for s in group])
                out += chunk if call is None else [([call], 1, 0)]
            if len(out) <= MOST_CALLS or len(out) > 0.7 * len(groups):
                break
            groups = out
        return [s for group, _, _ in out for s in group], max((depth for _, _, depth in out), default=0)

    def _part(self, statements: list[_Statement]) -> _Statement | None:
        """A call of these statements as a function; None where they have to stay."""
        lines = [line for s in statements for line in s.lines()]
        if len(lines) < 2 or any(_BOUND.search(line) for line in lines):
            return None
        inside: dict[str, int] = {}
        for line in lines:
            for name in set(_names(line)):
                inside[name] = inside.get(name, 0) + 1
        read: dict[str, None] = {}
        assigned = _flow(statements, set(), read)
        written = dict.fromkeys(name for line in lines for name in _targets(line))
        results = [name for name in written if self.uses.get(name, 0) > inside[name]]
        read |= dict.fromkeys(name for name in results if name not in assigned)
        bases = _bases(lines)
        given = [name for r in read for name in ((r, f"{r}@") if r in bases else (r,))]
        new = {name: f"x{n}" for n, name in enumerate((*given, *(w for w in written if w not in read)))}
        body = [_INDENT + _renamed(line, new, bases) for line in lines]
        if results:
            body.append(f"{_INDENT}return {', '.join(new[name] for name in results)}")
        text = "\n".join([f"({', '.join(new[name] for name in given)}):", *body]) + "\n"
        function = self.functions.setdefault(text, f"part{len(self.functions)}")
        call = f"{function}({', '.join(f'{r}@{bases[r]}' if r in bases else r for r in read)})"
        line = f"{', '.join(results)} = {call}" if results else call
        for name, count in inside.items():  # those lines are one now
            self.uses[name] = self.uses.get(name, 0) - count
        for name in set(_names(line)):
            self.uses[name] = self.uses.get(name, 0) + 1
        return _Statement(line)


def _tree(body: Sequence[str]) -> list[_Statement]:
    stack: list[list[_Statement]] = [[]]
    for line in body:
        text = line.lstrip()
        depth = (len(line) - len(text)) // len(_INDENT)
        while len(stack) <= depth:
            stack.append(stack[-1][-1].block)
        del stack[depth + 1 :]
        stack[-1].append(_Statement(text))
    return stack[0]


def _groups(statements: list[_Statement], depths: list[int]) -> list[_Sized]:
    """Statements with what belongs to them (an ``if`` and its ``else``), their lines and their depth."""
    out: list[_Sized] = []
    for s, depth in zip(statements, depths, strict=True):
        size = sum(1 for _ in s.lines())
        if s.is_else:
            group, before, deepest = out.pop()
            out.append(([*group, s], before + size, max(deepest, depth)))
        else:
            out.append(([s], size, depth))
    return out


def _chunks(groups: list[_Sized]) -> Iterable[list[_Sized]]:
    """Neighbours, as many as make a part. What repeats itself, as the columns of a wide result do, is cut where it does, so
    that its parts are one function."""
    every = _period(groups)
    chunk: list[_Sized] = []
    first = _phase(groups, every)
    for at in range(first - every if first else 0, len(groups), every):
        unit = groups[max(at, 0) : at + every]
        if chunk and sum(size for _, size, _ in (*chunk, *unit)) > PART_LINES:
            yield chunk
            chunk = []
        chunk += unit
    if chunk:
        yield chunk


def _period(groups: list[_Sized]) -> int:
    """After how many statements most look the same again; 1 where they do not."""
    shapes = [tuple(_NAME.sub("_", line) for s in group for line in s.lines()) for group, _, _ in groups]
    for every in range(1, min(MOST_PERIOD, len(shapes) // 2) + 1):
        same = sum(a == b for a, b in zip(shapes, shapes[every:], strict=False))
        if same >= _ALIKE * (len(shapes) - every):
            return every
    return 1


def _phase(groups: list[_Sized], every: int) -> int:
    """Where in the first ``every`` statements repetitions begin: the fewest variables are alive between two of them."""
    middle = len(groups) // 2 // every * every

    def alive(first: int) -> int:
        before = {name for group, _, _ in groups[: middle + first] for s in group for name in _assigned(s)}
        return len(before & {n for group, _, _ in groups[middle + first :] for s in group for n in _all_names(s)})

    return min(range(every), key=alive) if every > 1 else 0


def _assigned(statement: _Statement) -> Iterable[str]:
    return (name for line in statement.lines() for name in _targets(line))


def _all_names(statement: _Statement) -> Iterable[str]:
    return (name for line in statement.lines() for name in _names(line))


def _bases(lines: Iterable[str]) -> dict[str, int]:
    """By array of constants, the first one that lines name."""
    bases: dict[str, int] = {}
    for line in lines:
        for name, place in _ARRAY.findall(line):
            bases[name] = min(bases.get(name, int(place)), int(place))
    return bases


def _names(line: str) -> Iterable[str]:
    """The variables that a line names, as often as it does."""
    for found in _NAME.findall(line):
        if found not in _WORDS:
            yield found.partition("[")[0].partition("@")[0]


def _targets(line: str) -> list[str]:
    found = _TARGETS.match(line.lstrip())
    return (found[1] or found[2]).split(", ") if found else []


def _renamed(line: str, new: dict[str, str], bases: dict[str, int]) -> str:
    def rename(found: re.Match[str]) -> str:
        whole = found[0]
        if array := _ARRAY.match(whole):
            name, place = array[1], int(array[2]) - bases[array[1]]
            index = f"add_i64({new[f'{name}@']}, i64({place}))" if place else new[f"{name}@"]
            return f"{new[name]}[{index}]" if "[" in whole else f"{new[name]}, {index}"
        name, bracket, index = whole.partition("[")
        return new.get(name, name) + bracket + index

    return _NAME.sub(rename, line)


def _flow(statements: list[_Statement], assigned: set[str], read: dict[str, None]) -> set[str]:
    """What is surely assigned behind the statements; what they may read before it is goes to ``read``."""
    before: set[str] = set()
    branch: set[str] = set()
    for s in statements:
        targets = _targets(s.line)
        found = _TARGETS.match(s.line)
        values = s.line[found.end() :] if found else s.line
        known = before if s.is_else else assigned
        read |= dict.fromkeys(name for name in _names(values) if name not in known)
        if s.block:
            then = _flow(s.block, known | set(targets), read)
            if s.is_else:
                assigned = assigned | (then & branch)
            else:
                before, branch = assigned, then
        if not s.line.startswith("for "):
            assigned = assigned | set(targets)
    return assigned
