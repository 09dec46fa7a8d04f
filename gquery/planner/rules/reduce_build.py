"""Rows that no one will look up are not built into a table.

    Join semi on k = j and x <> y           Join semi on k = j and x <> y
      Join inner (few rows)                   Join inner (few rows)
      Scan big                          =>    Join semi on k = key
                                                Scan big
                                                Project key = k
                                                  Join inner (few rows)

A SEMI or ANTI join with a condition besides its equalities keeps all rows of its right side, in lists by key: the dearest
kind of table. Where the left side holds few of the keys, it pays to compute the left side's keys first, and keep only
their rows. `join_order` asks for this when it has put the left side together; the engine computes the keys once, however
many joins ask for them.
"""

from __future__ import annotations

from gquery.expression.expr import Call, Column, conjuncts, new_column
from gquery.expression.types import BOOLEAN
from gquery.planner.logical.cardinality import Estimator
from gquery.planner.logical.nodes import Join, JoinKind, Plan, Project, Scan
from gquery.planner.logical.properties import key_pairs
from gquery.planner.logical.tree import column_ids, fresh_copy, walk

_SHARE = 0.1  # of the keys that the left side may hold
_LEAST_ROWS = 100_000
_READING = 0.25  # the right side's rows over the rows that computing the left side anew reads, at least


def reduce_build(left: Plan, join: Join, right: Plan, estimator: Estimator) -> Plan:
    """The right side of a SEMI or ANTI join with ``left``, without the rows whose key the left side does not hold."""
    pairs = key_pairs(join.condition, column_ids(left), column_ids(right))
    plain = [(a, b) for a, b in pairs if isinstance(a, Column) and isinstance(b, Column)]
    rows = estimator.rows(right)
    if join.kind not in (JoinKind.SEMI, JoinKind.ANTI) or len(pairs) == len(conjuncts(join.condition)):
        return right  # only whether a key is there is asked: a bitmap will do
    if rows < _LEAST_ROWS or not plain or rows < _READING * _read_rows(left):
        return right
    shares = [(estimator.match_share([(b, a)], rows, estimator.rows(left)), a, b) for a, b in plain]
    share, mine, theirs = min(shares, key=lambda s: s[0])
    if share > _SHARE:
        return right
    copy, names = fresh_copy(left)
    key = new_column(mine.name, mine.dtype, mine.nullable)
    found = names[mine.id]
    found = Column(found.id, found.name, found.dtype, mine.nullable)
    keys = Project(copy, ((key, found),))
    condition = Call("eq", (theirs, key), BOOLEAN, theirs.nullable or key.nullable)
    return Join(right, keys, JoinKind.SEMI, condition)


def _read_rows(plan: Plan) -> float:
    return float(sum(n.source.rows for n in walk(plan) if isinstance(n, Scan)))
