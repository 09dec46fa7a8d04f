"""Primitives that are one Python operator, written as that operator: calls are most of what interpreting costs.

Values on the python target are Python integers, so ``add_i64(a, b)`` is ``a + b`` once its result is proved to fit; the
generated text keeps the primitive's name, and only the syntax tree that runs has the operator.
"""

from __future__ import annotations

import ast

from gquery.runtime.syntax import parse

_BINARY: dict[str, ast.operator] = {
    "add": ast.Add(), "sub": ast.Sub(), "mul": ast.Mult(), "and": ast.BitAnd(), "or": ast.BitOr(), "xor": ast.BitXor(),
}  # fmt: skip
_COMPARE: dict[str, ast.cmpop] = {
    "eq": ast.Eq(), "ne": ast.NotEq(), "lt": ast.Lt(), "le": ast.LtE(), "gt": ast.Gt(), "ge": ast.GtE(),
}  # fmt: skip
_SAME = {"i64", "u64", "row_index", "i128_from_i64", "i64_from_i128"}
_OPERATORS = {
    **{f"{name}_{suffix}": operator for name, operator in _BINARY.items() for suffix in ("i64", "i128")},
    "mul_i64_i128": ast.Mult(), "add_f64": ast.Add(), "sub_f64": ast.Sub(), "mul_f64": ast.Mult(),
}  # fmt: skip
_COMPARISONS = {f"{name}_{suffix}": test for name, test in _COMPARE.items() for suffix in ("i64", "i128")}


class _Inline(ast.NodeTransformer):
    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        self.generic_visit(node)
        match node.value:
            case ast.Call(func=ast.Name(id="accumulate_add_i64" | "accumulate_add_f64"), args=[state, slot, value]):
                target = ast.copy_location(ast.Subscript(state, slot, ast.Store()), node)
                return ast.copy_location(ast.AugAssign(target, ast.Add(), value), node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        match node:
            case ast.Call(func=ast.Name(id=name), args=[only]) if name in _SAME:
                return only
            case ast.Call(func=ast.Name(id=name), args=[a, b]) if name in _OPERATORS:
                return ast.copy_location(ast.BinOp(a, _OPERATORS[name], b), node)
            case ast.Call(func=ast.Name(id=name), args=[a, b]) if name in _COMPARISONS:
                return ast.copy_location(ast.Compare(a, [_COMPARISONS[name]], [b]), node)
        return node


def inlined(text: str) -> ast.Module:
    """The syntax tree of a kernel's text with operators for primitives that are one.

    >>> ast.unparse(inlined("x = add_i64(i64(c0[i]), 1)"))
    'x = c0[i] + 1'
    >>> ast.unparse(inlined("accumulate_add_i64(s0, 3, x)"))  # sums are proved to fit, or accumulated as words of a multiword sum
    's0[3] += x'
    """
    tree: ast.Module = _Inline().visit(parse(text))
    return tree
