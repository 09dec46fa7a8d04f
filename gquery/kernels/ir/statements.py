"""Statement nodes of a kernel: what it does, one after another, with blocks inside one another.

A statement prints itself (`write`) as lines of Python, four spaces a level; `printed` gives the lines of a block.
"""

from __future__ import annotations

from collections.abc import Sequence

from gquery.expression.frozen import frozen
from gquery.kernels.ir.expressions import Call, Expression, Name

INDENT = "    "


@frozen
class Let:
    """Set a variable, a new one or one that is there."""

    target: Name
    value: Expression

    def write(self, lines: list[str], indent: str) -> None:
        lines.append(f"{indent}{self.target.id} = {self.value.text()}")


@frozen
class Unpack:
    """Set several variables at once, to the items of a tuple."""

    targets: tuple[Name, ...]
    value: Expression

    def write(self, lines: list[str], indent: str) -> None:
        lines.append(f"{indent}{', '.join([t.id for t in self.targets])} = {self.value.text()}")


@frozen
class Store:
    """A call for what it does: it writes to memory, adds to a state, notes an error."""

    call: Call

    def write(self, lines: list[str], indent: str) -> None:
        lines.append(indent + self.call.text())


@frozen
class If:
    """``otherwise`` is None where there is no ``else``."""

    test: Expression
    then: Block
    otherwise: Block | None = None

    def write(self, lines: list[str], indent: str) -> None:
        lines.append(f"{indent}if {self.test.text()}:")
        _write_block(self.then, lines, indent)
        if self.otherwise is not None:
            lines.append(f"{indent}else:")
            _write_block(self.otherwise, lines, indent)


@frozen
class While:
    """A loop while a test holds."""

    test: Expression
    body: Block

    def write(self, lines: list[str], indent: str) -> None:
        lines.append(f"{indent}while {self.test.text()}:")
        _write_block(self.body, lines, indent)


@frozen
class For:
    """A loop over the integers from ``low`` (0 where that is None) up to ``high``, which is not among them."""

    target: Name
    low: Expression | None
    high: Expression
    body: Block

    def write(self, lines: list[str], indent: str) -> None:
        bounds = self.high.text() if self.low is None else f"{self.low.text()}, {self.high.text()}"
        lines.append(f"{indent}for {self.target.id} in range({bounds}):")
        _write_block(self.body, lines, indent)


@frozen
class Return:
    """The result of a function."""

    value: Expression

    def write(self, lines: list[str], indent: str) -> None:
        lines.append(f"{indent}return {self.value.text()}")


@frozen
class Claim:
    """A line for the interpreter under test alone (see `kernels.checks`): no pass meets one."""

    line: str

    def write(self, lines: list[str], indent: str) -> None:
        lines.append(indent + self.line)


Statement = Let | Unpack | Store | If | While | For | Return | Claim
Block = tuple[Statement, ...]
Loop = While | For
Head = Expression | Loop | None
"""How a block begins: the test of an ``if``, a loop without its body, or None for the ``else`` of the ``if`` before it."""


@frozen
class Function:
    """A function of a kernel's module."""

    name: str
    parameters: tuple[Name, ...]
    body: Block

    @property
    def head(self) -> str:
        return f"def {self.name}({', '.join([p.id for p in self.parameters])}):"

    @property
    def lines(self) -> tuple[str, ...]:
        return (self.head, *printed(self.body, 1))


def printed(block: Sequence[Statement], level: int = 0) -> list[str]:
    """The lines of a block at a level of indentation.

    >>> printed([If(Name("v0"), (Let(Name("n"), Name("v1")),), (Store(Call("fail", ())),))])
    ['if v0:', '    n = v1', 'else:', '    fail()']
    """
    lines: list[str] = []
    indent = INDENT * level
    for s in block:
        s.write(lines, indent)
    return lines


def printed_body(block: Block, level: int = 0) -> list[str]:
    """The same for the block of a loop or a function: a ``pass`` where it is empty."""
    return printed(block, level) or [f"{INDENT * level}pass"]


def without_claims(block: Block) -> Block:
    """The statements that are there whether values are checked or not."""
    return tuple([_without_claims(s) for s in block if not isinstance(s, Claim)])


def _without_claims(s: Statement) -> Statement:
    match s:
        case If(test, then, otherwise):
            return If(test, without_claims(then), None if otherwise is None else without_claims(otherwise))
        case While(test, body):
            return While(test, without_claims(body))
        case For(target, low, high, body):
            return For(target, low, high, without_claims(body))
        case _:
            return s


def _write_block(block: Block, lines: list[str], indent: str) -> None:
    indent += INDENT
    for s in block:
        s.write(lines, indent)
    if not block:
        lines.append(f"{indent}pass")


def line_count(block: Sequence[Statement]) -> int:
    """The number of lines that a block prints."""
    count = len(block)
    for s in block:
        match s:
            case If(then=then, otherwise=otherwise):
                count += max(line_count(then), 1)
                if otherwise is not None:
                    count += 1 + max(line_count(otherwise), 1)
            case While(body=body) | For(body=body):
                count += max(line_count(body), 1)
            case _:
                pass
    return count


def with_block(head: Head, block: Block, before: list[Statement]) -> Statement:
    """The statement that a block belongs to: a new one, or the ``if`` that stands last, with an ``else``."""
    match head:
        case Name() | Call():  # most
            return If(head, block)
        case While(test=test):
            return While(test, block)
        case For(target, low, high):
            return For(target, low, high, block)
        case None:
            first = before.pop()
            assert isinstance(first, If) and first.otherwise is None, "an else stands behind its if"
            return If(first.test, first.then, block)
        case test:
            return If(test, block)
