"""Lowering of joins: the left side streams through, the right side becomes a join table.

Plan properties and statistics decide which table, never names: a dense key addresses an array directly, a key that is
proved unique needs no range of rows, a join that only asks for existence needs a bitmap. Where several keys together are
too wide to address an array but one of them is narrow and selective, that one is addressed and the others are tested on
each match.
"""

from __future__ import annotations

from gquery import tuning
from gquery.expression.expr import Call, Column, Expr, new_column
from gquery.expression.frozen import frozen_open
from gquery.expression.traverse import conjunction, conjuncts, walk
from gquery.expression.types import BOOLEAN
from gquery.kernels.bindings import NeedsHostError
from gquery.kernels.host_calls import is_host_call, may_fail, outermost
from gquery.kernels.render import describe
from gquery.kernels.targets.capabilities import capabilities
from gquery.kernels.values import ValueProperties, value_properties
from gquery.planner.join_layout import (
    BuildFacts,
    JoinKey,
    is_clustered,
    is_one_integer,
    is_radix_partitioned,
    is_worth_inlining,
    layout_of,
    meets_text,
    payload_of,
)
from gquery.planner.layouts import KeyEncoding, inline_payload_of, nullable
from gquery.planner.logical.nodes import Join, JoinKind
from gquery.planner.logical.properties import equality, is_unique, key_pair, one_row_at_most
from gquery.planner.logical.tree import column_ids, used_columns
from gquery.planner.lower_full_join import full_join
from gquery.planner.lower_stream import Stream, text_weight
from gquery.planner.lowering import Lowering
from gquery.planner.physical import (
    FilterRows,
    JoinLayout,
    JoinTable,
    Probe,
    ReadStage,
    ReadTable,
    Stored,
)
from gquery.runtime.records import replace


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
    tested = frozenset(
        i for r in residual for i in used_columns(r)
    )  # with what the host has computed of the right side
    payload_wanted = (wanted & right_ids) | (tested & (right_ids | right.columns.keys()) - left.columns.keys())
    return _probe(lowering, _Sides(plan, left, right, keys, residual, payload_wanted, null_key), wanted)


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
        is_same = probe is key.probe and build is key.build
        new_keys.append(key if is_same else replace(key, probe=probe, build=build))
    left, right, residual = _sides_computed(lowering, left, right, residual)
    return left, right, new_keys, residual


def _sides_computed(
    lowering: Lowering, left: Stream, right: Stream, residual: list[Expr]
) -> tuple[Stream, Stream, list[Expr]]:
    """The sides with columns for calls of the host's that need one side alone and cannot fail, and the residual over them."""
    found: dict[Expr, Column] = {}

    def column_of(e: Expr) -> Expr:
        if not is_host_call(e) or may_fail(e) or not used_columns(e):
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


@frozen_open
class _Sides:
    """A join that is lowered: its plan and streams, the equalities that find matches, what is tested on each of them, the
    right side's columns that are wanted of it, and whether a NULL key takes part."""

    plan: Join
    left: Stream
    right: Stream
    keys: list[JoinKey]
    residual: list[Expr]
    payload: frozenset[int]
    null_key: bool

    @property
    def is_full(self) -> bool:
        return self.plan.kind is JoinKind.FULL


@frozen_open
class _Built:
    """A join table whose stage is there, and the sides as its probe needs them; ``at_hand`` are the columns of a build row
    that it may read."""

    table: JoinTable
    sides: _Sides
    at_hand: tuple[Stored, ...]


def _probe(lowering: Lowering, sides: _Sides, wanted: frozenset[int]) -> Stream:
    """The left stream behind a probe of the right one's table."""
    built = _build(lowering, sides)
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
    )
    known = _known_behind(sides, table)
    one_match = table.unique or plan.kind in (JoinKind.SEMI, JoinKind.ANTI, JoinKind.MARK, JoinKind.SINGLE)
    limit = left.limit if one_match else None
    rows = max(1.0, lowering.estimator.rows(plan))
    work = left.work + _probe_work(left, right, table.layout, one_match)
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


def _build(lowering: Lowering, sides: _Sides) -> _Built:
    """The stage that builds the join table: over an array of keys alone where that will do, else over rows."""
    plan, keys, payload = sides.plan, sides.keys, sides.payload
    single = not keys and one_row_at_most(plan.right)
    unique = single or _proved_unique(plan, keys)
    exists = _asks_existence(sides, unique) and not payload and bool(keys)
    provable = {id(k.term): k for k in keys}
    lowering.estimator.rows(plan.right)  # so that it knows the columns
    likely = {id(k.term) for k in keys if lowering.estimator.is_likely_unique(k.build)}
    read = payload | frozenset(i for r in sides.residual for i in used_columns(r))
    rowless = None if sides.null_key or sides.is_full else _rowless(lowering, sides, read, exists, unique)
    layout: JoinLayout = "direct-address"
    tested: list[Expr] = []
    if rowless is not None:
        right, key_encoding, keys, at_hand = rowless
        held = tuple(_described(right, k) for k in keys)
    else:
        with_rows = sides.null_key or not keys or sides.is_full
        facts = BuildFacts(exists, single, sides.null_key, unique)
        right, keys = _framed(lowering, sides.left, sides.right, keys, payload, with_rows)
        layout, key_encoding, keys, tested = layout_of(sides.left, right, keys, facts)
        held = at_hand = right.source.columns if isinstance(right.source, ReadTable | ReadStage) else ()
    if tested:
        exists = False
        unique = _proved_unique(plan, [provable[id(k.term)] for k in keys])
    inline_keys = layout == "hash" and (key_encoding is not None or is_one_integer(sides.left, right, keys))
    is_found_at_once = inline_keys or layout == "direct-address"
    table = JoinTable(
        stage=len(lowering.stages),
        layout=layout,
        unique=unique,
        exists=exists,
        columns=held,
        keys=tuple(k.build for k in keys if isinstance(k.build, Column)),
        null_safe=tuple(k.null_safe for k in keys),
        key_encoding=key_encoding,
        rows=right.source_rows,
        probe_rows=int(sides.left.rows),
        inline_keys=inline_keys,
        counted=rowless is not None and not exists,
        expected_unique=not (unique or exists) and is_found_at_once and any(id(k.term) in likely for k in keys),
    )
    sides = replace(sides, right=right, keys=keys, residual=sides.residual + tested)
    read |= frozenset(i for r in tested for i in used_columns(r))
    return _staged(lowering, _Built(table, sides, at_hand), read)


def _staged(lowering: Lowering, built: _Built, read: frozenset[int]) -> _Built:
    """The table with what it holds inline of the columns that are read, and its stage."""
    table, sides = built.table, built.sides
    inline = None if sides.is_full else payload_of(table, [s for s in built.at_hand if s.column.id in read])
    if inline is not None:
        table = replace(table, inline_payload=inline)
    if is_radix_partitioned(lowering, sides.right, table):
        table = replace(table, radix_partitioned=True)
    if is_clustered(sides.right, table):
        table = replace(table, clustered=True)
    number = lowering.build(sides.right, table, f"build for {sides.plan.kind.value} join")
    assert number == table.stage, "a stage came between a join table and its build"
    return _Built(table, sides, built.at_hand)


def _asks_existence(sides: _Sides, unique: bool) -> bool:
    """Whether it is enough to know that there is a match."""
    kind = sides.plan.kind
    if sides.residual:
        return False
    return kind in (JoinKind.SEMI, JoinKind.ANTI, JoinKind.MARK) or (kind is JoinKind.INNER and unique)


def _known_behind(sides: _Sides, table: JoinTable) -> dict[int, ValueProperties]:
    """What is known of the columns behind the probe; those of the right side get a name in the left stream."""
    left, right, kind = sides.left, sides.right, sides.plan.kind
    known = dict(left.columns)
    filled = kind in (JoinKind.LEFT, JoinKind.SINGLE, JoinKind.FULL)
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


def _probe_work(left: Stream, right: Stream, layout: JoinLayout, one_match: bool) -> float:
    """The row-steps of a probe for each row of the left side, and for its matches."""
    costs = tuning.interpreter_costs
    if layout == "loop":
        return left.rows * (costs.probe + right.rows) * (1.0 if one_match else right.rows)
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


def _proved_unique(plan: Join, keys: list[JoinKey]) -> bool:
    """Whether at most one right row can match, by what is known of the right side's keys."""
    columns = frozenset(k.build.id for k in keys if isinstance(k.build, Column) and not k.null_safe)
    return bool(columns) and is_unique(plan.right, columns & column_ids(plan.right))


def _rowless(
    lowering: Lowering, sides: _Sides, read: frozenset[int], exists: bool, unique: bool
) -> tuple[Stream, KeyEncoding | None, list[JoinKey], tuple[Stored, ...]] | None:
    """The build side as a stream that ends in an array over its keys which needs no rows behind it: a bitmap where only
    existence is asked, words where a key is unique and few bits are read of its row. So the rows need not be materialized
    first, whatever steps they come through. With the key encoding and the keys, and the columns that are read."""
    left, right, keys = sides.left, sides.right, sides.keys
    is_plain = isinstance(right.source, ReadTable | ReadStage) and all(isinstance(s, FilterRows) for s in right.steps)
    if not exists and (not unique or is_plain):
        return None
    if not keys or any(meets_text(left, right, k) for k in keys):
        return None
    made = [k.build if isinstance(k.build, Column) else new_column("key", k.build.dtype) for k in keys]
    computed = tuple((c, k.build) for c, k in zip(made, keys, strict=True) if c is not k.build)
    stream = lowering.compute(right, computed) if computed else right
    named = [replace(k, build=c) for k, c in zip(keys, made, strict=True)]
    layout, key_encoding, named, tested = layout_of(left, stream, named, BuildFacts(exists))
    if layout != "direct-address" or tested:
        return None
    if exists:
        return stream, key_encoding, named, ()
    columns = [(stream.by_id[i], stream.columns[i]) for i in sorted(read) if i in stream.columns]
    assert key_encoding is not None
    if not is_worth_inlining(inline_payload_of(columns), key_encoding, stream.source_rows):
        return None
    return stream, key_encoding, named, tuple(Stored(c, known, known.physical_type) for c, known in columns)


def _framed(
    lowering: Lowering, left: Stream, right: Stream, keys: list[JoinKey], payload: frozenset[int], all_rows: bool
) -> tuple[Stream, list[JoinKey]]:
    """The build side as rows that lie still, and keys that are columns of it: a table or frame whose rows a filter
    skips, or else materialized. ``all_rows``: every row of the frame must belong to the side (it is looped over or
    counted)."""
    source = right.source
    at_hand = {s.column.id for s in source.columns} if isinstance(source, ReadTable | ReadStage) else set()
    needed = payload | frozenset(k.build.id for k in keys if isinstance(k.build, Column))
    plain = all(isinstance(k.build, Column) for k in keys)
    texts = any(meets_text(left, right, k) for k in keys)
    selects = all(isinstance(s, FilterRows) for s in right.steps) and not (all_rows and right.steps)
    if selects and plain and not texts and needed <= at_hand and at_hand:
        return right, keys
    made = [k.build if isinstance(k.build, Column) and not texts else new_column("key", k.build.dtype) for k in keys]
    right = lowering.compute(right, tuple((c, k.build) for c, k in zip(made, keys, strict=True) if c is not k.build))
    columns = [right.by_id[i] for i in sorted(payload)] + made
    frame = lowering.materialized(right, columns, "build side", plain=texts)
    return frame, [replace(k, build=c) for k, c in zip(keys, made, strict=True)]


def _described(right: Stream, key: JoinKey) -> Stored:
    """A key of a table that keeps no rows, as the build side gives it."""
    assert isinstance(key.build, Column)
    known = right.columns[key.build.id]
    return Stored(key.build, known, known.physical_type)
