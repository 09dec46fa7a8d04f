"""COLLATE in comparisons and in ORDER BY: what is compared is then the text in lower case, or without accents.

A collation is no type here: where it would be one, as of a column of the result or a key of GROUP BY, it is refused.
"""

from __future__ import annotations

from sqlglot import exp

from gquery.errors import NotSupportedError

_FUNCTIONS = {"nocase": "lower", "noaccent": "strip_accents", "binary": "", "c": "", "posix": ""}
_COMPARED = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ)


def collated(node: exp.Expr) -> tuple[exp.Expr, exp.Expr]:
    """Both sides of an operator, as a collation of one of them has them compared."""
    left, right = node.args["this"], node.args["expression"]
    for side in (left, right):
        if type(side) is exp.Collate and isinstance(node, _COMPARED):
            return _by_collation(left, side), _by_collation(right, side)
    return left, right


def sort_node(node: exp.Expr) -> exp.Expr:
    """A key of ORDER BY as its collation orders it."""
    return _by_collation(node, node) if isinstance(node, exp.Collate) else node


def _by_collation(node: exp.Expr, collate: exp.Collate) -> exp.Expr:
    """A value, by the functions that a collation stands for."""
    inner = node.this if isinstance(node, exp.Collate) else node
    made: exp.Expr = inner.copy()
    for name in (p.name for p in _parts(collate.expression)):
        function = _FUNCTIONS.get(name.lower())
        if function is None:
            raise NotSupportedError(f"not supported: COLLATE {name}; NOCASE and NOACCENT are")
        made = exp.Anonymous(this=function, expressions=[made]) if function else made
    return made


def _parts(node: exp.Expr) -> list[exp.Expr]:
    return list(node.parts) if isinstance(node, exp.Column) else [node]
