"""Uses of what a name stands for: a CTE, a view or a relation is bound once, and each use of it has columns of its own.

A query without columns of a query around it becomes a definition, of which each use is a `Shared` node: the plan grows with
the text, not with the number of ways through it. (`rules.inline_shared` puts in place what is used once.) A correlated one
means something else for each row around it, so that its later uses are copies, as many as a plan can hold.
"""

from __future__ import annotations

from gquery import tuning
from gquery.errors import NotSupportedError
from gquery.planner.logical.nodes import Definition, Query
from gquery.planner.logical.separate import separate
from gquery.planner.logical.shared import new_definition, nodes, use
from gquery.planner.logical.tree import free_columns, fresh_copy
from gquery.runtime.records import dataclass


@dataclass(eq=False)
class Named:
    """A query that a name stands for, and how often it was used."""

    query: Query
    definition: Definition | None
    uses: int = 0


def named(query: Query, name: str, kept: bool | None = None) -> Named:
    """What a name stands for once its query is bound."""
    query = Query(separate(query.plan), query.outputs, query.names)
    return Named(query, None if free_columns(query.plan) else new_definition(query, name, kept))


def relation_use(query: Query) -> Query:
    """One use of a relation, whose query is bound. Its definition stays with the query, so that relations which are made of
    one and then meet have it in common."""
    known: Named = query.__dict__.setdefault("_named", named(query, "relation"))
    return one_use(known)


def one_use(of: Named) -> Query:
    """The query for one use: with columns that no other use has."""
    of.uses += 1
    query = of.query
    if of.definition is not None:
        shared = use(of.definition)
        return Query(shared, shared.columns, query.names)
    if of.uses == 1:
        return query
    if sum(1 for _ in nodes(query.plan)) > tuning.memory.shared_nodes:
        raise NotSupportedError("a CTE that uses columns of the query around it, and is used this often")
    plan, new = fresh_copy(query.plan)
    flags = {c.id: c for c in plan.columns}
    return Query(plan, tuple(flags[new[c.id].id] for c in query.outputs), query.names)
