"""The layout of a join table: an array that the key addresses, a hash table, one row or a loop; what it holds inline."""

from __future__ import annotations

from gquery import tuning
from gquery.columns.table import ColumnStatistics
from gquery.expression.expr import Column, Expr
from gquery.expression.facts import ROW_ID_BYTES
from gquery.expression.frozen import frozen, frozen_open
from gquery.expression.types import Register
from gquery.functions import call
from gquery.kernels.targets.capabilities import capabilities
from gquery.planner.layouts import InlinePayload, KeyEncoding, inline_payload_of, key_encoding_of
from gquery.planner.lower_stream import Stream
from gquery.planner.lowering import Lowering
from gquery.planner.physical import (
    FilterRows,
    JoinLayout,
    JoinTable,
    ReadTable,
    Stored,
)


@frozen_open
class JoinKey:
    """One equality of a join condition: an expression of the probing side and one of the building side."""

    probe: Expr
    build: Expr
    null_safe: bool
    term: Expr


def meets_text(left: Stream, right: Stream, key: JoinKey) -> bool:
    """Whether a dictionary string of the build side is compared with plain text."""
    if not key.build.dtype.is_string:
        return False
    build = right.describe(key.build)
    return build.dictionary is not None and left.describe(key.probe).dictionary is None


@frozen
class BuildFacts:
    """What is asked of a join table, and known of its rows: whether only existence is asked (``exists``), whether there is at
    most one row (``single``), whether a NULL key is told from one without a match, whether no key comes twice."""

    exists: bool
    single: bool = False
    null_key: bool = False
    unique: bool = False


def layout_of(
    left: Stream, right: Stream, keys: list[JoinKey], facts: BuildFacts
) -> tuple[JoinLayout, KeyEncoding | None, list[JoinKey], list[Expr]]:
    """How the table is addressed; the keys that address it, and equalities that are tested on each match instead."""
    if not keys:
        return ("one" if facts.single else "loop"), None, [], []
    rows = max(right.source_rows, 1)
    usable = [k for k in keys if _same_registers(left, right, k)]
    limits = tuning.join_layouts
    array = max(limits.slots_a_row * rows, limits.small_array)
    key_encoding = None
    if len(usable) == len(keys):
        key_encoding = key_encoding_of([right.columns[build_id(k)] for k in keys], [k.null_safe for k in keys])
        most = max(limits.bits_a_row * rows, limits.small_bitmap) if facts.exists else array
        if key_encoding is not None and key_encoding.size <= min(most, limits.largest):
            return "direct-address", key_encoding, keys, []
    # where several rows of one key would be scanned
    is_found_at_once = key_encoding is not None and (facts.exists or facts.unique)
    if len(keys) > 1 and not facts.null_key and not is_found_at_once:
        for key in sorted(usable, key=lambda k: -_width(right, k)):
            alone = key_encoding_of([right.columns[build_id(key)]], [key.null_safe])
            if alone is None or alone.size > min(array, limits.largest):
                continue
            if alone.size < limits.range_slots:  # which tells few rows apart, should more come than are expected
                continue
            if alone.size <= right.rows <= limits.range_keys * alone.size:  # else all rows may lie in few of the slots
                tested = [equality(k) for k in keys if k is not key]
                return "direct-address", alone, [key], tested
    return "hash", key_encoding, keys, []


def is_one_integer(left: Stream, right: Stream, keys: list[JoinKey]) -> bool:
    """Whether the key is one integer of up to 64 bits, and a row with NULL takes no part."""
    if len(keys) != 1 or keys[0].build.dtype.is_string or not _same_registers(left, right, keys[0]):
        return False
    what = right.columns[build_id(keys[0])]
    return what.register is Register.I64 and not (keys[0].null_safe and what.nullable)


def payload_of(table: JoinTable, read: list[Stored]) -> InlinePayload | None:
    """What a table with one row a key holds in place of row numbers: the columns that are read of it, if they are few bits."""
    if (
        table.exists
        or not (table.unique or table.expected_unique)
        or not (table.inline_keys or table.layout == "direct-address")
    ):
        return None
    inline = inline_payload_of([(s.column, s.properties) for s in read])
    if inline is None or table.layout == "hash":
        return inline
    assert table.key_encoding is not None
    return inline if is_worth_inlining(inline, table.key_encoding, table.rows) else None


def is_radix_partitioned(lowering: Lowering, right: Stream, table: JoinTable) -> bool:
    """Whether an array is so large, and its rows in no order, that filling it part by part is faster. (A hash table is not filled
    faster so: 100 million keys took 20.8 ms with their probes, and 19.5 entered as they come.)"""
    if (
        not capabilities(lowering.target).partitions_builds
        or table.exists
        or not (table.unique or table.expected_unique)
    ):
        return False
    if not all(
        isinstance(s, FilterRows) and s.selectivity >= tuning.join_layouts.partitioned_selectivity for s in right.steps
    ):
        return False
    if table.layout != "direct-address" or table.key_encoding is None or _may_be_in_order(right, table):
        return False
    width = ROW_ID_BYTES if table.inline_payload is None else table.inline_payload.physical_type.bytes
    size, limits = table.key_encoding.size, tuning.join_layouts
    is_dense = width <= ROW_ID_BYTES and size <= limits.partitioned_slots_a_row * table.rows
    return is_dense and width * size >= limits.partitioned_caches * lowering.profile.cache_bytes


def _may_be_in_order(right: Stream, table: JoinTable) -> bool:
    """Whether the rows come in the order of their key, as those of many tables and of what is left of them do."""
    known = _key_statistics(right, table)
    return known is None or known.is_sorted


def is_clustered(right: Stream, table: JoinTable) -> bool:
    """Whether neighbouring rows set the same bit of a bitmap: they are known to come in the order of a key that repeats."""
    known = _key_statistics(right, table)
    is_bitmap = table.exists and table.layout == "direct-address"
    return is_bitmap and known is not None and known.is_sorted and not known.is_unique


def _key_statistics(right: Stream, table: JoinTable) -> ColumnStatistics | None:
    """What is known of a table's only key, if it is a column of the scanned table."""
    source = right.source
    if not isinstance(source, ReadTable) or len(table.keys) != 1:
        return None
    fields = {s.column.id: f for s, f in zip(source.columns, source.fields, strict=True)}
    field = fields.get(table.keys[0].id)
    return None if field is None else source.source.statistics(field)


def is_worth_inlining(inline: InlinePayload | None, key_encoding: KeyEncoding, rows: int) -> bool:
    """Whether an array of words takes no more room than one of row numbers, or hardly more than the rows themselves."""
    if inline is None:
        return False
    slots = tuning.join_layouts.wide_slots_a_row * max(rows, 1)
    return inline.physical_type.bytes <= ROW_ID_BYTES or key_encoding.size <= slots


def _width(right: Stream, key: JoinKey) -> int:
    bounds = right.columns[build_id(key)].bounds
    return bounds.width if bounds is not None else 0


def _same_registers(left: Stream, right: Stream, key: JoinKey) -> bool:
    """Whether both sides of an equality are held in 64 bits, so that one addresses what the other entered."""
    a, b = left.describe(key.probe), right.columns[build_id(key)]
    if b.dtype.is_string:
        return a.dictionary is not None and b.dictionary is not None
    return a.register is b.register and a.register in (Register.I64, Register.BOOL)


def build_id(key: JoinKey) -> int:
    assert isinstance(key.build, Column)
    return key.build.id


def equality(key: JoinKey) -> Expr:
    return call("is_not_distinct_from" if key.null_safe else "eq", key.probe, key.build)
