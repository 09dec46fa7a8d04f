"""Lowering of a join's right side: the stage that builds its table, over an array of keys alone or over rows."""

from __future__ import annotations

from gquery import tuning
from gquery.errors import NotSupportedError
from gquery.expression.expr import Column, Expr, new_column
from gquery.expression.frozen import frozen_open
from gquery.expression.types import Register
from gquery.kernels.bindings import NeedsHostError
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
from gquery.planner.layouts import KeyEncoding, inline_payload_of
from gquery.planner.logical.bounds import Comparison, RowBounds, chosen, comparisons
from gquery.planner.logical.nodes import Join, JoinKind
from gquery.planner.logical.properties import is_unique, one_row_at_most
from gquery.planner.logical.tree import column_ids, used_columns
from gquery.planner.lower_stream import Stream
from gquery.planner.lowering import Lowering
from gquery.planner.physical import FilterRows, JoinLayout, JoinTable, ReadStage, ReadTable, Stored
from gquery.runtime.records import replace


@frozen_open
class Sides:
    """A join that is lowered: its plan and streams, the equalities that find matches, what is tested on each of them, the
    right side's columns that are wanted of it, whether a NULL key takes part, and the range that matches lie in."""

    plan: Join
    left: Stream
    right: Stream
    keys: list[JoinKey]
    residual: list[Expr]
    payload: frozenset[int]
    null_key: bool
    bounds: RowBounds | None = None

    @property
    def is_full(self) -> bool:
        return self.plan.kind is JoinKind.FULL


@frozen_open
class Built:
    """A join table whose stage is there, and the sides as its probe needs them; ``at_hand`` are the columns of a build row
    that it may read."""

    table: JoinTable
    sides: Sides
    at_hand: tuple[Stored, ...]


def build(lowering: Lowering, sides: Sides) -> Built:
    """The stage that builds the join table: over an array of keys alone where that will do, else over rows."""
    plan, keys, payload = sides.plan, sides.keys, sides.payload
    single = not keys and one_row_at_most(plan.right)
    unique = single or _proved_unique(plan, keys)
    exists = sides.bounds is None and _asks_existence(sides, unique) and not payload and bool(keys)
    provable = {id(k.term): k for k in keys}
    lowering.estimator.rows(plan.right)  # so that it knows the columns
    likely = {id(k.term) for k in keys if lowering.estimator.is_likely_unique(k.build)}
    read = payload | frozenset(i for r in sides.residual for i in used_columns(r))
    rowless = (
        None
        if sides.null_key or sides.is_full or sides.bounds is not None
        else _rowless(lowering, sides, read, exists, unique)
    )
    layout: JoinLayout = "direct-address"
    tested: list[Expr] = []
    sorted_by: list[Column] = []
    if rowless is not None:
        right, key_encoding, keys, at_hand = rowless
        held = tuple(_described(right, k) for k in keys)
    else:
        with_rows = sides.null_key or not keys or sides.is_full
        facts = BuildFacts(exists, single, sides.null_key, unique)
        right, keys, sorted_by = _framed(lowering, sides, with_rows)
        layout, key_encoding, keys, tested = layout_of(sides.left, right, keys, facts)
        layout = "sorted" if sorted_by and layout == "loop" else layout
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
        expected_unique=not (unique or exists or sorted_by)
        and is_found_at_once
        and any(id(k.term) in likely for k in keys),
        sorted_by=sorted_by[0] if sorted_by else None,
        reach_of=sorted_by[1] if len(sorted_by) > 1 else None,
        is_bounded=sides.bounds is not None and sides.bounds.is_bounded,
    )
    sides = replace(sides, right=right, keys=keys, residual=sides.residual + tested)
    read |= frozenset(i for r in tested for i in used_columns(r))
    return _staged(lowering, Built(table, sides, at_hand), read)


def _staged(lowering: Lowering, built: Built, read: frozenset[int]) -> Built:
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
    return Built(table, sides, built.at_hand)


def _asks_existence(sides: Sides, unique: bool) -> bool:
    """Whether it is enough to know that there is a match."""
    kind = sides.plan.kind
    if sides.residual:
        return False
    return kind in (JoinKind.SEMI, JoinKind.ANTI, JoinKind.MARK) or (kind is JoinKind.INNER and unique)


def _proved_unique(plan: Join, keys: list[JoinKey]) -> bool:
    """Whether at most one right row can match, by what is known of the right side's keys."""
    columns = frozenset(k.build.id for k in keys if isinstance(k.build, Column) and not k.null_safe)
    return bool(columns) and is_unique(plan.right, columns & column_ids(plan.right))


def _rowless(
    lowering: Lowering, sides: Sides, read: frozenset[int], exists: bool, unique: bool
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


def _framed(lowering: Lowering, sides: Sides, all_rows: bool) -> tuple[Stream, list[JoinKey], list[Column]]:
    """The build side as rows that lie still, and keys that are columns of it, as are those that it is sorted by: a table or frame
    whose rows a filter skips, or else materialized. ``all_rows``: every row of the frame must belong to the side (it is looped
    over or counted)."""
    left, right, keys, bounds = sides.left, sides.right, sides.keys, sides.bounds
    source = right.source
    at_hand = {s.column.id for s in source.columns} if isinstance(source, ReadTable | ReadStage) else set()
    by = [] if bounds is None else [e for e in (bounds.by, bounds.reach_of) if e is not None]
    exprs = [*(k.build for k in keys), *by]
    needed = sides.payload | frozenset(e.id for e in exprs if isinstance(e, Column))
    plain = all(isinstance(e, Column) for e in exprs)
    texts = any(meets_text(left, right, k) for k in keys)
    selects = all(isinstance(s, FilterRows) for s in right.steps) and not (all_rows and right.steps)
    if selects and plain and not texts and needed <= at_hand and at_hand:
        return right, keys, [e for e in by if isinstance(e, Column)]
    made = [e if isinstance(e, Column) and not texts else new_column("key", e.dtype, e.nullable) for e in exprs]
    right = lowering.compute(right, tuple((c, e) for c, e in zip(made, exprs, strict=True) if c is not e))
    columns = [right.by_id[i] for i in sorted(sides.payload)] + made
    frame = lowering.materialized(right, columns, "build side", plain=texts)
    named = [replace(k, build=c) for k, c in zip(keys, made, strict=False)]
    return frame, named, made[len(keys) :]


def row_bounds(lowering: Lowering, sides: Sides) -> RowBounds | None:
    """The range of rows that matches lie in, where it is worth it to sort the right side for it: where nothing is equal to
    anything, or a key has many rows."""
    plan, keys = sides.plan, sides.keys
    is_asof = plan.kind is JoinKind.ASOF
    is_found_at_once = _proved_unique(plan, keys) if keys else one_row_at_most(plan.right)
    if not (sides.residual or is_asof) or sides.null_key or is_found_at_once:
        return None
    if keys and not is_asof:
        rows, known = lowering.estimator.rows(plan.right), 1.0
        for k in keys:
            known *= lowering.estimator.distinct(k.build, rows)
        if rows < tuning.join_layouts.sorted_rows * known:
            return None
    left, right = frozenset(sides.left.columns), frozenset(sides.right.columns)
    found = chosen([c for c in comparisons(sides.residual, left, right) if _is_ordinal(c, sides)])
    if found is None and is_asof:
        types = sorted({str(c.build.dtype) for c in comparisons(sides.residual, left, right)})
        raise NotSupportedError(f"an ASOF JOIN by a comparison of {' and '.join(types) or 'a constant'}")
    return found


def _described(right: Stream, key: JoinKey) -> Stored:
    """A key of a table that keeps no rows, as the build side gives it."""
    assert isinstance(key.build, Column)
    known = right.columns[key.build.id]
    return Stored(key.build, known, known.physical_type)


def _is_ordinal(c: Comparison, sides: Sides) -> bool:
    """Whether both sides of a comparison are numbers that sort as 64 bits. None may be NULL for a mark."""
    try:
        a, b = sides.right.describe(c.build), sides.left.describe(c.bound.expr)
    except NeedsHostError:
        return False
    if a.dtype.is_string or b.dtype.is_string or (sides.plan.kind is JoinKind.MARK and (a.nullable or b.nullable)):
        return False
    return a.register is b.register and a.register in (Register.I64, Register.F64)
