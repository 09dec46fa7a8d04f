"""Whether sqlglot's tree is the text: every name and constant stands in it, and hangs together as DuckDB reads it.

sqlglot drops what it does not expect (an alias here, a modifier there), and some of its operators bind otherwise. The
tokens know better (`gquery.sql.grammar`): each of their leaves must be a leaf of the tree, whole, and what belongs together
must be below one node that has nothing else. So nothing can be lost on the way from the text to the tree, whatever
sqlglot's next version reads past.
"""

from __future__ import annotations

from sqlglot import exp

from gquery.errors import NotSupportedError, point_at
from gquery.sql.grammar_tokens import Reading

_LEAVES = (exp.Identifier, exp.Literal)


def check_covered(nodes: list[exp.Expr], reading: Reading, sql: str) -> None:
    """Raises NotSupportedError where the tree is not what the tokens say. ``nodes``: the tree, parents first."""
    leaves = reading.leaves
    number = {start: n for n, (start, _) in enumerate(leaves)}
    below: dict[int, tuple[int, int]] = {}  # by node, the first and the last leaf that was met below it
    found: set[int] = set()
    spans: set[tuple[int, int]] = set()
    for node in reversed(nodes):
        span = below.get(id(node))
        if type(node) in _LEAVES:
            meta = node._meta
            n = number.get(meta["start"]) if meta is not None and "start" in meta else None
            if n is not None and meta is not None and meta["end"] == leaves[n][1]:
                found.add(n)
                span = n, n
        if span is None:
            continue
        spans.add(span)
        parent = node.parent
        if parent is not None:
            known = below.get(id(parent))
            below[id(parent)] = span if known is None else (min(known[0], span[0]), max(known[1], span[1]))
    for n, (start, end) in enumerate(leaves):
        if n not in found:
            raise _refused(f"{sql[start : end + 1]} at this place", sql, start)
    for first, last in reading.spans:
        if (first, last) not in spans:
            start, end = leaves[first][0], leaves[last][1] + 1
            typed = " ".join(sql[start:end].split())
            typed = typed if len(typed) < 80 else f"{typed[:40]} ... {typed[-30:]}"
            raise _refused(f"{typed} without parentheses around its parts", sql, start)


def _refused(what: str, sql: str, place: int) -> NotSupportedError:
    return NotSupportedError(f"not supported: {what}\n{point_at(sql, place)}")
