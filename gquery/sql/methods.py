"""Methods: ``s.upper()`` is ``upper(s)``, ``l.list_sort().list_reverse()`` is ``list_reverse(list_sort(l))``.

`sql.grammar.values` has sqlglot read a call of two arguments, the value and the call behind its dot: of a dot it makes fields
of all columns before. The tree is changed before anyone reads it, so that a method is a call as any other.
"""

from __future__ import annotations

from sqlglot import exp

from gquery.sql.grammar.tokens import METHOD, marked

_META = "gquery method"
_NAME = marked(METHOD)


def is_method(node: exp.Expr) -> bool:
    """Whether a call was written behind a dot."""
    return node._meta is not None and bool(node._meta.get(_META))


def call_methods(tree: exp.Expr) -> None:
    """Puts calls in the places of values and methods."""
    for node in reversed([*tree.bfs()]):  # the values of methods first
        if isinstance(node, exp.Anonymous) and node.this == _NAME:
            value, made = node.expressions
            node.replace(made)
            made.set("expressions", [value, *made.expressions])
            made.meta[_META] = True
