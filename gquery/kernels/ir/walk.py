"""What passes ask of nodes: the names that statements read and set, and copies of statements over other names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import assert_never

from gquery.kernels.ir.expressions import (
    IN_MEMORY,
    And,
    Call,
    Choice,
    Expression,
    Leaf,
    LeafMap,
    Load,
    Name,
    Not,
    Operation,
    Or,
    Parenthesized,
    Tuple,
    name_of,
)
from gquery.kernels.ir.statements import Block, Claim, For, If, Let, Return, Statement, Store, Unpack, While

BIT_TESTS = frozenset(["bit_test"])
"""Primitives that wait for one element of the array that they are given. Those that search a table wait by themselves."""


def names(e: Expression) -> list[Name]:
    """The names that an expression reads, in the order of the text."""
    found: list[Leaf] = []
    e.leaves(found)
    return [leaf if isinstance(leaf, Name) else leaf.array for leaf in found]


def values(s: Statement) -> tuple[Expression, ...]:
    """The expressions that a statement itself computes, without those of its blocks."""
    if isinstance(s, Let):  # most are
        return (s.value,)
    match s:
        case Unpack(value=value) | Return(value=value):
            return (value,)
        case Store(call=call):
            return (call,)
        case If(test=test) | While(test=test):
            return (test,)
        case For(low=low, high=high):
            return (high,) if low is None else (low, high)
        case Claim():
            return ()
        case _:
            assert_never(s)


def targets(s: Statement) -> tuple[Name, ...]:
    """The names that a statement itself sets."""
    if isinstance(s, Let):
        return (s.target,)
    match s:
        case For(target=target):
            return (target,)
        case Unpack(targets=several):
            return several
        case _:
            return ()


def blocks(s: Statement) -> tuple[Block, ...]:
    """The blocks of a statement, one after another."""
    match s:
        case If(then=then, otherwise=otherwise):
            return (then,) if otherwise is None else (then, otherwise)
        case While(body=body) | For(body=body):
            return (body,)
        case _:
            return ()


def statements(block: Iterable[Statement]) -> list[Statement]:
    """All statements of a block and of the blocks in it, in the order of the text."""
    found: list[Statement] = []
    _collect(block, found)
    return found


_PLAIN = (Let, Store)  # no blocks in them


def _collect(block: Iterable[Statement], found: list[Statement]) -> None:
    for s in block:
        found.append(s)
        if not isinstance(s, _PLAIN):
            for inner in blocks(s):
                _collect(inner, found)


def read(block: Iterable[Statement]) -> list[Name]:
    """The names that statements read, as often as they do, in the order of the text."""
    return [name for s in statements(block) for e in values(s) for name in names(e)]


def leaves(block: Iterable[Statement]) -> list[Leaf]:
    """The names and constants of arrays that statements read, in the order of the text."""
    found: list[Leaf] = []
    for s in statements(block):
        for e in values(s):
            e.leaves(found)
    return found


def assigned(block: Iterable[Statement]) -> dict[Name, None]:
    """The names that statements set, in the order of the text."""
    return dict.fromkeys(name for s in statements(block) for name in targets(s))


def sets_any(block: Iterable[Statement], some: Iterable[Name]) -> bool:
    """Whether statements set one of the names."""
    ids = {name.id for name in some}
    waiting: list[Iterable[Statement]] = [block]
    while waiting:
        for s in waiting.pop():
            if isinstance(s, Let):
                if s.target.id in ids:
                    return True
            elif not isinstance(s, Store):
                if any(target.id in ids for target in targets(s)):
                    return True
                waiting += blocks(s)
    return False


def expressions(e: Expression) -> Iterator[Expression]:
    """An expression and those that it is made of."""
    yield e
    match e:
        case Call(arguments=inner) | And(terms=inner) | Or(terms=inner) | Tuple(items=inner):
            for x in inner:
                yield from expressions(x)
        case Load(pointer=pointer, index=index):
            yield pointer
            yield from expressions(index)
        case Not(operand=x) | Parenthesized(inner=x):
            yield from expressions(x)
        case Operation(left=left, right=right):
            yield from expressions(left)
            yield from expressions(right)
        case Choice(then=then, test=test, otherwise=otherwise):
            for x in (then, test, otherwise):
                yield from expressions(x)
        case _:
            pass


def loads_memory(s: Statement) -> bool:
    """Whether a statement waits for an element of a large array."""
    return any(_is_load(x) for inner in statements((s,)) for e in values(inner) for x in expressions(e))


def _is_load(e: Expression) -> bool:
    match e:
        case Load(pointer=pointer):
            return pointer.role in IN_MEMORY
        case Call(function=function):
            return function in BIT_TESTS
        case _:
            return False


def with_calls(block: Sequence[Statement], change: Callable[[Call], Call]) -> Block:
    """The statements with other calls in place of those whose result is set or left, wherever they stand."""
    return tuple([_with_calls(s, change) for s in block])


def _with_calls(s: Statement, change: Callable[[Call], Call]) -> Statement:
    match s:
        case Let(target, Call() as call):
            return Let(target, change(call))
        case Unpack(several, Call() as call):
            return Unpack(several, change(call))
        case Store(call):
            return Store(change(call))
        case _:
            return with_blocks(s, [with_calls(block, change) for block in blocks(s)])


def with_blocks(s: Statement, inner: Sequence[Block]) -> Statement:
    """A statement with other blocks in it."""
    match s:
        case If(test=test):
            return If(test, inner[0], inner[1] if len(inner) > 1 else None)
        case While(test=test):
            return While(test, inner[0])
        case For(target, low, high):
            return For(target, low, high, inner[0])
        case _:
            return s


def over(block: Sequence[Statement], leaf: LeafMap) -> Block:
    """The statements with other leaves; what is set has to stay a name."""
    return tuple([_over(s, leaf) for s in block])


def _over(s: Statement, leaf: LeafMap) -> Statement:
    if isinstance(s, Let):
        return Let(name_of(leaf(s.target)), s.value.over(leaf))
    match s:
        case Unpack(several, value):
            return Unpack(tuple([name_of(leaf(t)) for t in several]), value.over(leaf))
        case Store(call):
            return Store(call.over(leaf))
        case If(test, then, otherwise):
            return If(test.over(leaf), over(then, leaf), None if otherwise is None else over(otherwise, leaf))
        case While(test, body):
            return While(test.over(leaf), over(body, leaf))
        case For(target, low, high, body):
            start = None if low is None else low.over(leaf)
            return For(name_of(leaf(target)), start, high.over(leaf), over(body, leaf))
        case Return(value):
            return Return(value.over(leaf))
        case Claim():
            return s
        case _:
            assert_never(s)
