"""GROUP BY as sets of keys: GROUPING SETS, ROLLUP and CUBE, beside plain keys and inside each other.

What stands in GROUP BY with commas between is multiplied: each set of one with each set of the next. A plain key is the one set
of itself. The sets of what stands in GROUPING SETS are those of all its parts together.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations, product

from sqlglot import exp

from gquery import tuning
from gquery.errors import NotSupportedError

Keys = tuple[exp.Expr, ...]
_SETS = (exp.GroupingSets, exp.Rollup, exp.Cube)


def has_sets(nodes: Iterable[exp.Expr]) -> bool:
    """Whether a GROUP BY has more than keys."""
    return any(isinstance(n, _SETS) for n in nodes)


def sets_of(nodes: Iterable[exp.Expr]) -> list[Keys]:
    """The sets of a GROUP BY, as nodes of their keys. Raises NotSupportedError for too many."""
    result: list[Keys] = [()]
    for node in nodes:
        own = _sets(node)
        if len(result) * len(own) > tuning.rewrites.most_sets:
            raise NotSupportedError(f"not supported: more than {tuning.rewrites.most_sets} grouping sets")
        result = [a + b for a, b in product(result, own)]
    return result


def keys_of(node: exp.Expr) -> Keys:
    """The keys that stand in parentheses, or alone."""
    return tuple(node.expressions) if isinstance(node, exp.Tuple) else (node,)


def _sets(node: exp.Expr) -> list[Keys]:
    match node:
        case exp.GroupingSets():
            return [s for part in node.expressions for s in _sets(part)]
        case exp.Rollup():
            parts = [keys_of(n) for n in node.expressions]
            return [sum(parts[:n], ()) for n in range(len(parts), -1, -1)]
        case exp.Cube():
            parts = [keys_of(n) for n in node.expressions]
            if 1 << len(parts) > tuning.rewrites.most_sets:
                raise NotSupportedError(f"not supported: more than {tuning.rewrites.most_sets} grouping sets")
            chosen = (c for n in range(len(parts), -1, -1) for c in combinations(parts, n))
            return [sum(c, ()) for c in chosen]
        case _:
            return [keys_of(node)]
