"""What looks into lists, structs, maps or BLOBs of both sides in the condition of an outer join is a filter of its pairs.

    Join left on a.k = b.k and [a.x, b.y] = [1, 2]     Join left on n = m
      Scan a                                             Shared rows (a, n)
      Scan b                                      =>     Filter [x, b.y] = [1, 2]
                                                           Join inner on k = b.k
                                                             Shared rows (k, x, m)
                                                             Scan b
                                                       rows: a with row numbers, used twice

The host makes such values, and it makes them of whole columns. So the pairs that meet the other terms are made first, as for an
INNER join, and a row of the left side finds its own by its number. SEMI, ANTI and SINGLE joins ask these pairs as a LEFT join
does. A FULL join numbers both sides: the right rows that no pair has follow. A MARK join keeps the pairs whose condition is NULL,
with the condition's value.
"""

from __future__ import annotations

from gquery.expression.expr import TRUE, Column, Expr, IsNull, Or, new_column
from gquery.expression.traverse import conjunction, conjuncts, walk
from gquery.expression.types import BIGINT, BOOLEAN
from gquery.expression.windows import WindowCall
from gquery.kernels.host_calls import is_host_call, may_fail
from gquery.planner.logical.equal_columns import equal
from gquery.planner.logical.nodes import Filter, Join, JoinKind, Plan, Project, Query, Shared, Window
from gquery.planner.logical.properties import key_pair
from gquery.planner.logical.shared import kinds_of, new_definition, transform_kinds
from gquery.planner.logical.tree import column_ids, fresh_copy, remap_expr, used_columns

_KINDS = kinds_of(*JoinKind) & ~kinds_of(JoinKind.INNER)


def nested_conditions(plan: Plan) -> Plan | None:
    """No condition of an outer join needs nested values of both sides any more."""
    new = transform_kinds(plan, _KINDS, lambda n: _node(n) if isinstance(n, Join) else n)
    return None if new is plan else new


def _node(join: Join) -> Plan:
    if join.kind is JoinKind.INNER:
        return join
    terms = conjuncts(join.condition)
    later = [t for t in terms if _is_tested_later(t, join)]
    if not later:
        return join
    made = _full(join, later) if join.kind is JoinKind.FULL else _one_sided(join, later)
    return Project(made, tuple((c, c) for c in join.columns))


def _is_tested_later(term: Expr, join: Join) -> bool:
    """Whether a term has a call of nested values that is no column of one side (`planner.lower_join` computes these)."""
    left, right = column_ids(join.left), column_ids(join.right)
    if key_pair(term, left, right) is not None:
        return False

    def is_needed_here(e: Expr) -> bool:
        if not is_host_call(e) or not any(x.dtype.is_opaque for x in (e, *e.children)):
            return False
        used = used_columns(e)
        return may_fail(e) or not used or not (used <= left or used <= right)

    return any(is_needed_here(e) for e in walk(term))


def _one_sided(join: Join, later: list[Expr]) -> Plan:
    """The join as one of its left rows with their pairs."""
    first, number, second, same = _twice(join.left)
    if join.kind is JoinKind.MARK:
        return _mark(join, (first, number), (second, same))
    pairs = _pairs(join, later, second, join.right, same)
    of = same[number.id]
    own = Project(pairs, ((of, of), *((c, c) for c in join.right.columns)))
    on = [equal(number, of, False)]
    if join.kind is JoinKind.ASOF:  # the nearest of the pairs
        on += [t for t in conjuncts(join.condition) if t not in later]
    return Join(first, own, join.kind, conjunction(tuple(on)))


def _mark(join: Join, left: tuple[Plan, Column], again: tuple[Plan, dict[int, Column]]) -> Plan:
    """The value of the condition is TRUE or NULL in the pairs that a row is asked for."""
    (first, number), (second, same) = left, again
    value, of = new_column("condition", BOOLEAN, join.condition.nullable), same[number.id]
    sure = tuple(t for t in conjuncts(join.condition) if not t.nullable and not any(is_host_call(e) for e in walk(t)))
    pairs = Join(second, join.right, JoinKind.INNER, remap_expr(conjunction(sure), same))
    valued = Project(pairs, ((of, of), (value, remap_expr(join.condition, same))))
    kept = Filter(valued, Or((value, IsNull(value))) if value.nullable else value)
    return Join(first, kept, JoinKind.MARK, conjunction((equal(number, of, False), value)), join.mark)


def _full(join: Join, later: list[Expr]) -> Plan:
    """The left rows with their pairs, and the right rows that are in none."""
    first, number, second, same = _twice(join.left)
    right, right_number, right_again, right_same = _twice(join.right)
    pairs = _pairs(join, later, second, right_again, same | right_same)
    of, right_of = same[number.id], right_same[right_number.id]
    own = Project(pairs, ((of, of), (right_of, right_of)))
    rows = Join(first, own, JoinKind.LEFT, equal(number, of, False))
    found = next(c for c in rows.columns if c.id == right_of.id)
    return Join(rows, right, JoinKind.FULL, equal(found, right_number, False))


def _pairs(join: Join, later: list[Expr], left: Plan, right: Plan, names: dict[int, Column]) -> Plan:
    """The pairs that meet all terms, of sides whose columns have these names."""
    terms = conjuncts(join.condition)
    first = tuple(remap_expr(t, names) for t in terms if t not in later)
    pairs = Join(left, right, JoinKind.INNER, conjunction(first) if first else TRUE)
    return Filter(pairs, conjunction(tuple(remap_expr(t, names) for t in later)))


def _twice(plan: Plan) -> tuple[Plan, Column, Plan, dict[int, Column]]:
    """A plan with row numbers, computed once: under its own columns, the number, under others, and these by its own ids."""
    copy, new = fresh_copy(plan)
    number = new_column("row_number", BIGINT, False)
    rows = Window(copy, (), (), ((number, WindowCall("row_number", (), BIGINT, False)),))
    flags = {c.id: c for c in copy.columns}
    outputs = (*(flags[new[c.id].id] if c.id in new else c for c in plan.columns), number)
    definition = new_definition(Query(rows, outputs, tuple(c.name for c in outputs)), "rows", True)
    fields = tuple(range(len(outputs)))
    own = (*plan.columns, new_column("row_number", BIGINT, False))
    others = tuple(new_column(c.name, c.dtype, c.nullable) for c in outputs)
    same = {c.id: o for c, o in zip(own, others, strict=True)}
    return Shared(definition, own, fields), own[-1], Shared(definition, others, fields), same
