"""Primitives that are one Python operator, printed as that operator: calls are most of what interpreting costs.

Values on the python target are Python integers, so ``add_i64(a, b)`` is ``a + b`` once its result is proved to fit. The nodes
are printed so at once: to parse a kernel's text, change its syntax tree and compile that takes five times as long as to
compile a text. The text that EXPLAIN shows keeps the primitives' names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from gquery.kernels.ir import (
    And,
    Call,
    Choice,
    Claim,
    Constant,
    Element,
    Expression,
    For,
    If,
    Item,
    Let,
    Load,
    Name,
    Not,
    Operation,
    Or,
    Parenthesized,
    Return,
    Statement,
    Store,
    Tuple,
    Unpack,
    While,
)
from gquery.kernels.ir.statements import INDENT

_ARITHMETIC = {"add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^"}
_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_SAME = {"i64", "u64", "row_index", "i128_from_i64", "i64_from_i128"}
_OPERATORS = {
    **{f"{name}_{suffix}": sign for name, sign in (_ARITHMETIC | _COMPARISONS).items() for suffix in ("i64", "i128")},
    "mul_i64_i128": "*", "add_f64": "+", "sub_f64": "-", "mul_f64": "*",
}  # fmt: skip
_SUMS = {"accumulate_add_i64", "accumulate_add_f64"}


def inlined(block: Sequence[Statement], level: int = 0) -> list[str]:
    """The lines of a block, as `ir.printed` gives them, with operators for primitives that are one.

    >>> from gquery.kernels.ir.read import read_lines
    >>> inlined(read_lines("x = add_i64(i64(c0[i]), 1)"))
    ['x = (c0[i] + 1)']
    >>> inlined(read_lines("accumulate_add_i64(s0, 3, x)"))  # sums are proved to fit, or accumulated as words of a multiword sum
    ['s0[3] += x']
    >>> inlined(read_lines("x = or_i64(x, i64(1) if eq_i64(a, 0) or f(b) else i64(0))"))
    ['x = (x | (1 if (a == 0) or f(b) else 0))']
    >>> inlined(read_lines("x = mul_i64(i64(a if b else c), 2)"))
    ['x = ((a if b else c) * 2)']
    """
    lines: list[str] = []
    _write(block, INDENT * level, lines)
    return lines


def _write(block: Sequence[Statement], indent: str, lines: list[str]) -> None:
    for s in block:
        match s:
            case Let(target, value):
                lines.append(f"{indent}{target.id} = {_text(value)}")
            case Store(Call(function, (state, slot, value))) if function in _SUMS:
                lines.append(f"{indent}{_text(state)}[{_text(slot)}] += {_text(value)}")
            case Store(call):
                lines.append(indent + _text(call))
            case If(test, then, otherwise):
                lines.append(f"{indent}if {_text(test)}:")
                _write_inner(then, indent, lines)
                if otherwise is not None:
                    lines.append(f"{indent}else:")
                    _write_inner(otherwise, indent, lines)
            case While(test, body):
                lines.append(f"{indent}while {_text(test)}:")
                _write_inner(body, indent, lines)
            case For(target, low, high, body):
                bounds = _text(high) if low is None else f"{_text(low)}, {_text(high)}"
                lines.append(f"{indent}for {target.id} in range({bounds}):")
                _write_inner(body, indent, lines)
            case Unpack() | Return() | Claim():
                _write_flat(s, indent, lines)
            case _:
                assert_never(s)


def _write_flat(s: Unpack | Return | Claim, indent: str, lines: list[str]) -> None:
    match s:
        case Unpack(targets, value):
            lines.append(f"{indent}{', '.join([t.id for t in targets])} = {_text(value)}")
        case Return(value):
            lines.append(f"{indent}return {_text(value)}")
        case Claim(line):
            lines.append(indent + line)


def _write_inner(block: Sequence[Statement], indent: str, lines: list[str]) -> None:
    if block:
        _write(block, indent + INDENT, lines)
    else:
        lines.append(f"{indent}{INDENT}pass")


def _text(e: Expression) -> str:
    match e:
        case Name(id=name):
            return name
        case Call(function, (only,)) if function in _SAME:
            return _operand(only)
        case Call(function, (a, b)) if function in _OPERATORS:
            return f"({_operand(a)} {_OPERATORS[function]} {_operand(b)})"
        case Call(function, arguments):
            return f"{function}({', '.join([_text(a) for a in arguments])})"
        case Load(pointer, index):
            return f"{pointer.id}[{_text(index)}]"
        case Constant() | Element() | Item():
            return e.text()
        case Not() | And() | Or() | Parenthesized() | Operation() | Choice() | Tuple():
            return _over_parts(e).text()
        case _:
            assert_never(e)


def _operand(e: Expression) -> str:
    """A text that stays together beside an operator: an argument needed no parentheses."""
    return f"({_text(e)})" if isinstance(e, Not | And | Or | Operation | Choice) else _text(e)


def _over_parts(e: Not | And | Or | Parenthesized | Operation | Choice | Tuple) -> Expression:
    """The node over parts that stand for their texts: how parts of it are put together is for the node itself to say."""
    match e:
        case Not(operand):
            return Not(_part(operand))
        case And(terms):
            return And(tuple([_part(t) for t in terms]))
        case Or(terms):
            return Or(tuple([_part(t) for t in terms]))
        case Parenthesized(inner):
            return Parenthesized(_part(inner))
        case Operation(left, operator, right):
            return Operation(_part(left), operator, _part(right))
        case Choice(then, test, otherwise):
            return Choice(_part(then), _part(test), _part(otherwise))
        case Tuple(items):
            return Tuple(tuple([_part(i) for i in items]))
        case _:
            assert_never(e)


def _part(e: Expression) -> Expression:
    """A node that keeps its place in its parent: whether it stands in parentheses there depends on its class."""
    return _over_parts(e) if isinstance(e, Not | And | Or | Parenthesized | Operation | Choice | Tuple) else Name(_text(e))
