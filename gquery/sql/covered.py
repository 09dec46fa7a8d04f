"""Whether sqlglot's tree is the text: every name and constant stands in it, and hangs together as DuckDB reads it.

sqlglot drops what it does not expect (an alias here, a modifier there), and some of its operators bind otherwise. The
tokens know better (`gquery.sql.grammar`): each of their leaves must be a leaf of the tree, whole, and what belongs together
must be below one node that has nothing else. So nothing can be lost on the way from the text to the tree, whatever
sqlglot's next version reads past.
"""

from __future__ import annotations

from sqlglot import exp

from gquery.errors import NotSupportedError, point_at
from gquery.sql.grammar.tokens import Reading

_LEAVES = (exp.Identifier, exp.Literal)


def check_covered(nodes: list[exp.Expr], reading: Reading, sql: str) -> None:
    """Raises NotSupportedError where the tree is not what the tokens say. ``nodes``: the tree, parents first, with names in place
    of those expressions that the reader has made, or without."""
    leaves = reading.leaves
    number = {start: n for n, (start, _) in enumerate(leaves)}
    made = {(m.start, m.end): m for m in reading.made}
    whole: dict[int, int] = {}  # by leaf of an expression that was made, where that begins
    below: dict[int, tuple[int, int]] = {}  # by node, the first and the last leaf that was met below it
    joined: dict[int, tuple[int, int]] = {}  # the same below the joins that hang on a table: that is a part by itself, too
    found: set[int] = set()
    spans: set[tuple[int, int]] = set()
    for node in reversed(nodes):
        span = below.get(id(node))
        if type(node) in _LEAVES:
            meta = node._meta
            place = (meta["start"], meta["end"]) if meta is not None and "start" in meta else None
            if place is not None and (m := made.get(place)) is not None:
                if m.behind > m.first:
                    found.update(range(m.first, m.behind))
                    whole.update(dict.fromkeys(range(m.first, m.behind), m.first))
                    span = m.first, m.behind - 1
            elif place is not None and (n := number.get(place[0])) is not None and place[1] == leaves[n][1]:
                found.add(n)
                span = n, n
        if span is None:
            continue
        spans.add(span)
        if id(node) in joined:
            more = joined[id(node)]
            span = min(span[0], more[0]), max(span[1], more[1])
            spans.add(span)
        parent = node.parent
        if parent is not None:
            of = joined if node.arg_key == "joins" and type(parent) is not exp.Select else below
            known = of.get(id(parent))
            of[id(parent)] = span if known is None else (min(known[0], span[0]), max(known[1], span[1]))
    for n, (start, end) in enumerate(leaves):
        if n not in found:
            raise _refused(f"{sql[start : end + 1]} at this place", sql, start)
    for first, last in reading.spans:
        if (first, last) not in spans and whole.get(first, -1) != whole.get(last, -2):
            start, end = leaves[first][0], leaves[last][1] + 1
            typed = " ".join(sql[start:end].split())
            typed = typed if len(typed) < 80 else f"{typed[:40]} ... {typed[-30:]}"
            raise _refused(f"{typed} without parentheses around its parts", sql, start)


def _refused(what: str, sql: str, place: int) -> NotSupportedError:
    return NotSupportedError(f"not supported: {what}\n{point_at(sql, place)}")
