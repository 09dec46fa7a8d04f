"""Bodies: Python functions over registers, the bodies of primitives and of scalar functions, read as functions of nodes.

They are written in the few forms that nodes stand for. Numbers of their module are constants; ``math.sqrt(x)`` is the call
of ``math_sqrt``.
"""

from __future__ import annotations

import ast
import inspect
import math
import textwrap
from collections.abc import Callable
from typing import Any

from gquery.kernels import ir
from gquery.kernels.ir.read import read_tree
from gquery.kernels.kernel import function_source


def read_body(function: Callable[..., Any]) -> ir.Function:
    """A Python function as nodes; SyntaxError, with the text, for what no node stands for."""
    tree = ast.parse(textwrap.dedent(function_source(function))).body[0]
    if not isinstance(tree, ast.FunctionDef):
        raise SyntaxError(f"no function of a kernel: {ast.unparse(tree)}")
    body = tree.body[1:] if ast.get_docstring(tree) is not None else tree.body
    parameters = tuple([ir.Name(a.arg) for a in tree.args.args])
    local = {p.id for p in parameters} | {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and _is_set(n)}
    numbers = {
        name: value
        for name, value in inspect.unwrap(function).__globals__.items()
        if isinstance(value, bool | int | float) and name not in local
    }
    plain = _Plain(numbers)
    return ir.Function(tree.name, parameters, read_tree([plain.visit(s) for s in body]))


def _is_set(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)


class _Plain(ast.NodeTransformer):
    """Numbers in place of names for them, plain names in place of those of `math`."""

    def __init__(self, numbers: dict[str, int | float]) -> None:
        self._numbers = numbers

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(self._numbers[node.id]) if node.id in self._numbers else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if not isinstance(node.value, ast.Name) or node.value.id != "math":
            raise SyntaxError(f"no expression of a kernel: {ast.unparse(node)}")
        number = getattr(math, node.attr, None)
        return ast.Constant(number) if isinstance(number, float) else ast.Name(f"math_{node.attr}", ast.Load())
