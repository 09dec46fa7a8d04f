"""Read: Python that was written by hand, as nodes. Strict: what no node stands for is an error.

The kernels of `kernels.builtin` are written as lines, and so are tests; the bodies of primitives are functions. Python's own
parser reads them. What a name's role is says its first letter, as in ``c0``; others are of the thread.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import lru_cache

from gquery.kernels.ir.expressions import (
    FALSE,
    MARK,
    NONE,
    ROW,
    TRUE,
    And,
    Call,
    Choice,
    Constant,
    Element,
    Expression,
    Item,
    Load,
    Name,
    Not,
    Operation,
    Operator,
    Or,
    Role,
    Tuple,
)
from gquery.kernels.ir.statements import Block, For, If, Let, Return, Statement, Store, Unpack, While
from gquery.runtime.syntax import parse

_ROLES: dict[str, Role] = {
    "v": "row", "j": "row", "c": "column", "m": "column", "s": "state", "b": "build", "t": "table", "k": "scalar",
}  # fmt: skip
_OPERATORS: dict[type[ast.AST], Operator] = {ast.Lt: "<", ast.Sub: "-", ast.IsNot: "is not"}
_KNOWN = {name.id: name for name in (ROW, MARK)}
_CONSTANTS = {True: TRUE, False: FALSE, None: NONE}


@lru_cache(maxsize=256)
def read_lines(*lines: str) -> Block:
    """The statements that lines are.

    >>> read_lines("v0 = c0[i]")
    (Let(target=Name(id='v0', role='row'), value=Load(pointer=Name(id='c0', role='column'), index=Name(id='i', role='row'))),)
    """
    return read_tree(parse("\n".join(lines)).body)


def read_tree(body: Sequence[ast.stmt]) -> Block:
    """The same of statements that Python's parser has read."""
    return _block(body)


def _block(body: Sequence[ast.stmt]) -> Block:
    return tuple([read for s in body if not isinstance(s, ast.Pass) for read in _statements(s)])


def _statements(s: ast.stmt) -> list[Statement]:
    """One of Python's as one of ours, but for ``a = b = value``, which sets one after the other."""
    match s:
        case ast.Assign(targets=[ast.Name(), *_, ast.Name(id=last)] as several, value=value):
            first = _name(last)
            names = [_name(ast.unparse(t)) for t in several[:-1]]
            return [Let(first, _expression(value)), *[Let(name, first) for name in names]]
        case _:
            return [_statement(s)]


def _statement(s: ast.stmt) -> Statement:
    match s:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return Let(_name(name), _expression(value))
        case ast.Assign(targets=[ast.Tuple(elts=several)], value=value):
            return Unpack(tuple([_name(ast.unparse(t)) for t in several]), _expression(value))
        case ast.Expr(value=ast.Call() as call):
            return Store(_call(call))
        case ast.If(test=test, body=body, orelse=orelse):
            return If(_expression(test), _block(body), _block(orelse) if orelse else None)
        case ast.While(test=test, body=body, orelse=[]):
            return While(_expression(test), _block(body))
        case ast.For(target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range"), args=bounds), body=body):
            *low, high = [_expression(b) for b in bounds]
            return For(_name(name), low[0] if low else None, high, _block(body))
        case ast.Return(value=ast.expr() as value):
            return Return(_expression(value))
        case _:
            raise SyntaxError(f"no statement of a kernel: {ast.unparse(s)}")


def _name(name: str) -> Name:
    if name in _KNOWN:
        return _KNOWN[name]
    return Name(name, _ROLES.get(name[0], "thread") if name[1:].isdigit() else "thread")


def _call(e: ast.Call) -> Call:
    assert isinstance(e.func, ast.Name) and not e.keywords, ast.unparse(e)
    return Call(e.func.id, tuple([_expression(a) for a in e.args]))


def _expression(e: ast.expr) -> Expression:
    match e:
        case ast.Name(id=name):
            return _name(name)
        case ast.Constant(value=bool() | None as value):
            return _CONSTANTS[value]
        case ast.Constant(value=int() | float() as value):
            return Constant(value)
        case ast.Call():
            return _call(e)
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=int() as place)):
            found = _name(name)
            if name[0] == "q":
                return Element(found, place)
            return Item(found, place) if found.role == "row" else Load(found, Constant(place))
        case ast.Subscript(value=ast.Name(id=name), slice=index):
            return Load(_name(name), _expression(index))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return Not(_expression(operand))
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return Constant(-value)
        case ast.BoolOp(op=ast.And(), values=terms):
            return And(tuple([_expression(t) for t in terms]))
        case ast.BoolOp(op=ast.Or(), values=terms):
            return Or(tuple([_expression(t) for t in terms]))
        case ast.IfExp(test=test, body=then, orelse=otherwise):
            return Choice(_expression(then), _expression(test), _expression(otherwise))
        case ast.Tuple(elts=items):
            return Tuple(tuple([_expression(i) for i in items]))
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _OPERATORS:
            return Operation(_expression(left), _OPERATORS[type(op)], _expression(right))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return Operation(_expression(left), _OPERATORS[type(op)], _expression(right))
        case _:
            raise SyntaxError(f"no expression of a kernel: {ast.unparse(e)}")
