"""Lowering of joins: the left side streams through, the right side becomes a join table.

Plan properties and statistics decide which table, never names: a dense key addresses an array directly, a key that is
proved unique needs no range of rows, a join that only asks for existence needs a bitmap. Where several keys together are
too wide to address an array but one of them is narrow and selective, that one is addressed and the others are tested on
each match. Where a condition bounds a column of the right side, its rows are sorted by that (`row_bounds`).
"""

from __future__ import annotations

from math import log2

from gquery import tuning
from gquery.expression.expr import Call, Column, Expr, new_column
from gquery.expression.traverse import conjunction, conjuncts, walk
from gquery.expression.types import BOOLEAN
from gquery.kernels.bindings import NeedsHostError
from gquery.kernels.host_calls import is_host_call, may_fail, outermost
from gquery.kernels.render import describe
from gquery.kernels.targets.capabilities import capabilities
from gquery.kernels.values import ValueProperties, value_properties
from gquery.planner.join_layout import JoinKey
from gquery.planner.layouts import nullable
from gquery.planner.logical.nodes import Join, JoinKind
from gquery.planner.logical.properties import equality, key_pair
from gquery.planner.logical.tree import column_ids, used_columns
from gquery.planner.lower_full_join import full_join
from gquery.planner.lower_join_build import Sides, build, row_bounds
from gquery.planner.lower_stream import Stream, text_weight
from gquery.planner.lowering import Lowering
from gquery.planner.physical import JoinTable, Probe
from gquery.runtime.records import replace

_ONE_MATCH = (JoinKind.SEMI, JoinKind.ANTI, JoinKind.MARK, JoinKind.SINGLE, JoinKind.ASOF)


def join(lowering: Lowering, plan: Join, wanted: frozenset[int]) -> Stream:
    """The stream of a join."""
    later = tuple(t for t in conjuncts(plan.condition) if _is_tested_later(t, plan))
    if later:
        rest = tuple(t for t in conjuncts(plan.condition) if t not in later)
        below = wanted | frozenset(i for t in later for i in used_columns(t))
        pairs = join(lowering, replace(plan, condition=conjunction(rest)), below)
        return lowering.filter(pairs, conjunction(later), lowering.estimator.rows(plan))
    left_ids, right_ids = column_ids(plan.left), column_ids(plan.right)
    condition_ids = used_columns(plan.condition)
    keys, residual = split_condition(plan.condition, left_ids, right_ids)
    below = wanted | condition_ids
    left = lowering.plan(plan.left, below & left_ids)
    right = lowering.plan(plan.right, below & right_ids)
    for c in (*plan.left.columns, *plan.right.columns):
        left.by_id.setdefault(c.id, c)
    left, right, keys, residual = _computable(lowering, left, right, keys, residual)

    null_key = False
    if plan.kind is JoinKind.MARK:
        keys, residual, null_key = _mark_keys(left, right, keys, residual)
    sides = Sides(plan, left, right, keys, residual, frozenset(), null_key)
    bounds = row_bounds(lowering, sides)
    if bounds is not None:
        residual = [r for r in residual if r not in bounds.terms]
    # with what the host has computed of the right side
    tested = frozenset(i for r in residual for i in used_columns(r))
    payload_wanted = (wanted & right_ids) | (tested & (right_ids | right.columns.keys()) - left.columns.keys())
    return _probe(lowering, replace(sides, residual=residual, payload=payload_wanted, bounds=bounds), wanted)


def split_condition(condition: Expr, left: frozenset[int], right: frozenset[int]) -> tuple[list[JoinKey], list[Expr]]:
    """A join's condition as equalities between the sides, and the rest."""
    keys, rest = [], []
    for term in conjuncts(condition):
        pair = key_pair(term, left, right)
        if pair is None:
            rest.append(term)
        else:
            is_safe = isinstance(term, Call) and term.function == "is_not_distinct_from"
            keys.append(JoinKey(*pair, is_safe, term))
    return keys, rest


def _is_tested_later(term: Expr, plan: Join) -> bool:
    """Whether a term of an INNER join's condition needs both sides and the host: then it is a filter of the pairs."""
    if plan.kind is not JoinKind.INNER or equality(term) is not None:
        return False
    if not any(is_host_call(x) for x in walk(term)):
        return False
    used = used_columns(term)
    return not (used <= column_ids(plan.left) or used <= column_ids(plan.right)) and not _is_key(term, plan)


def _is_key(term: Expr, plan: Join) -> bool:
    return bool(split_condition(term, column_ids(plan.left), column_ids(plan.right))[0])


def _computable(
    lowering: Lowering, left: Stream, right: Stream, keys: list[JoinKey], residual: list[Expr]
) -> tuple[Stream, Stream, list[JoinKey], list[Expr]]:
    """Expressions without a kernel body are computed as columns on their own side first."""
    new_keys = []
    for key in keys:
        probe, build = key.probe, key.build
        try:
            left.describe(probe)
        except NeedsHostError:
            column = new_column("key", probe.dtype)
            left, probe = lowering.compute(left, ((column, probe),)), column
        try:
            right.describe(build)
        except NeedsHostError:
            column = new_column("key", build.dtype)
            right, build = lowering.compute(right, ((column, build),)), column
        if probe is not key.probe or build is not key.build:
            term = Call("is_not_distinct_from" if key.null_safe else "eq", (probe, build), BOOLEAN, not key.null_safe)
            key = JoinKey(probe, build, key.null_safe, term)
        new_keys.append(key)
    left, right, residual = _sides_computed(lowering, left, right, residual)
    return left, right, new_keys, residual


def _sides_computed(
    lowering: Lowering, left: Stream, right: Stream, residual: list[Expr]
) -> tuple[Stream, Stream, list[Expr]]:
    """The sides with columns for calls of the host's that need one side alone and cannot fail, and the residual over them. No row
    by itself makes a constant of nested values or bytes: it is a column, too."""
    found: dict[Expr, Column] = {}

    def column_of(e: Expr) -> Expr:
        if not is_host_call(e):
            return e
        by_row = may_fail(e) if used_columns(e) else not any(x.dtype.is_opaque for x in walk(e))
        if by_row:
            return e
        sides = [s for s in (left, right) if used_columns(e) <= s.columns.keys()]
        return found.setdefault(e, new_column("argument", e.dtype, e.nullable)) if sides else e

    over = [outermost(term, column_of) for term in residual]
    for e, column in found.items():
        if used_columns(e) <= left.columns.keys():
            left = lowering.compute(left, ((column, e),))
        else:
            right = lowering.compute(right, ((column, e),))
    return left, right, over


def _mark_keys(
    left: Stream, right: Stream, keys: list[JoinKey], residual: list[Expr]
) -> tuple[list[JoinKey], list[Expr], bool]:
    """Which equalities of a MARK join may be probed. NULL has to be told from FALSE: an equality over columns without NULL
    is a key; one nullable equality alone is a key with a flag for NULLs; others are tested on each row."""
    sure: list[JoinKey] = []
    unsure: list[JoinKey] = []
    for key in keys:
        null = left.describe(key.probe).nullable or right.describe(key.build).nullable
        (unsure if null and not key.null_safe else sure).append(key)
    if not unsure:
        return sure, residual, False
    if len(unsure) == 1 and not sure and not residual:
        return unsure, residual, True
    return sure, residual + [k.term for k in unsure], False


def _probe(lowering: Lowering, sides: Sides, wanted: frozenset[int]) -> Stream:
    """The left stream behind a probe of the right one's table."""
    built = build(lowering, sides)
    bounds = sides.bounds
    table, plan, sides = built.table, sides.plan, built.sides
    left, right = sides.left, sides.right
    probe = Probe(
        table=table,
        kind=plan.kind,
        keys=tuple(k.probe for k in sides.keys),
        residual=conjunction(tuple(sides.residual)) if sides.residual else None,
        payload=tuple(right.by_id[i] for i in sorted(sides.payload) if i in right.by_id),
        mark=plan.mark,
        records_matches=sides.is_full,
        null_key=sides.null_key,
        selectivity=min(1.0, lowering.estimator.rows(plan) / max(left.source_rows, 1)),
        low=() if bounds is None else bounds.low,
        high=() if bounds is None else bounds.high,
        reach=None if bounds is None else bounds.reach,
    )
    known = _known_behind(sides, table)
    one_match = table.unique or plan.kind in _ONE_MATCH
    limit = left.limit if one_match else None
    rows = max(1.0, lowering.estimator.rows(plan))
    work = left.work + _probe_work(left, right, table, one_match)
    work += left.rows * text_weight(probe.keys, left.columns)
    stream = replace(left, steps=(*left.steps, probe), columns=known, work=work, rows=rows, limit=limit)
    may_call = capabilities(lowering.target).is_interpreted
    host = None if may_call else _host_function(sides.residual, {**left.columns, **right.columns})
    if sides.is_full:
        return full_join(lowering, stream, plan, probe, wanted, host)
    if host is None:
        return stream
    columns = tuple(stream.by_id[i] for i in stream.columns if i in stream.by_id)
    return lowering.materialized(stream, columns, f"{host}, interpreted", host=host)


def _known_behind(sides: Sides, table: JoinTable) -> dict[int, ValueProperties]:
    """What is known of the columns behind the probe; those of the right side get a name in the left stream."""
    left, right, kind = sides.left, sides.right, sides.plan.kind
    known = dict(left.columns)
    filled = kind in (JoinKind.LEFT, JoinKind.SINGLE, JoinKind.ASOF, JoinKind.FULL)
    if (kind is JoinKind.INNER or filled) and not table.exists:
        for i, what in right.columns.items():
            if table.inline_payload is not None and i not in sides.payload:
                continue  # the table holds nothing else
            known[i] = nullable(what) if filled else what
            if i in right.by_id:
                left.by_id.setdefault(i, right.by_id[i])
    if kind is JoinKind.MARK:
        mark = sides.plan.mark
        assert mark is not None
        known[mark.id] = value_properties(BOOLEAN, nullable=sides.null_key or bool(sides.residual))
        left.by_id[mark.id] = mark
    return known


def _probe_work(left: Stream, right: Stream, table: JoinTable, one_match: bool) -> float:
    """The row-steps of a probe for each row of the left side, and for its matches."""
    costs = tuning.interpreter_costs
    if table.layout == "loop":
        return left.rows * (costs.probe + right.rows) * (1.0 if one_match else right.rows)
    if table.sorted_by is not None:
        search = costs.probe * max(1.0, log2(max(right.source_rows, 2)))
        most = tuning.join_layouts.range_matches if table.is_bounded else right.rows
        return left.rows * (search + (1.0 if one_match else costs.duplicate_probe * min(right.rows, most)))
    if one_match:
        return left.rows * (costs.probe + 1)
    fan_out = max(1.0, right.rows / max(right.source_rows, 1))
    return left.rows * (costs.probe + costs.duplicate_probe) * fan_out


def _host_function(residual: list[Expr], known: dict[int, ValueProperties]) -> str | None:
    """A function without a kernel body among what is tested on each match: then the join's pipeline is interpreted."""
    for term in residual:
        try:
            describe(term, known)
        except NeedsHostError as missing:
            return missing.function
    return None
