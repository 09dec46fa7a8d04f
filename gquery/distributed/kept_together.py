"""What placement asks of a pipeline: whether ranks can do with parts of its rows, and what its sink makes of parts."""

from __future__ import annotations

from collections.abc import Sequence

from gquery.distributed.located import Located, is_located
from gquery.expression.expr import Column
from gquery.expression.facts import INT64_BYTES
from gquery.operators.cut_keys import CutKeys
from gquery.operators.scan_ranges import unwidened
from gquery.planner.physical import (
    Build,
    Group,
    JoinTable,
    Pipeline,
    Probe,
    SegmentHeads,
    SegmentRows,
    Sink,
    Step,
)


def own_keys(sink: Sink, located: Located) -> tuple[tuple[int, CutKeys], ...]:
    """The keys of an array over encoded keys, by position, that are located."""
    match sink:
        case Build(table) if table.layout == "direct-address":
            ids = [k.id for k in table.keys]
        case Group(layout="direct-address", keys=keys):
            ids = [e.id if isinstance(e, Column) else -1 for _, e, _ in keys]
        case _:
            return ()
    found = [(n, located.get(i)) for n, i in enumerate(ids)]
    return tuple([(n, keys) for n, keys in found if isinstance(keys, CutKeys)])


def set_apart(sink: Sink, located: Located) -> CutKeys | None:
    """Which keys each rank's rows have of those of a join table that is an array over one; None where that is not known."""
    match sink:
        case Build(table) if table.key_encoding is not None and len(table.key_encoding.parts) == 1:
            (part,), found = table.key_encoding.parts, own_keys(sink, located)
            return found[0][1] if found and not part.nullable else None
        case _:
            return None


def met_keys(probe: Probe, located: Located, build: Located) -> tuple[tuple[int, int], ...]:
    """The keys of a join table, each as its stage and position, of which rows that are looked up have values of the rank's own
    alone: both sides lie where a table is cut, and is cut at the same values."""
    keys = [(unwidened(e), column) for e, column in zip(probe.keys, probe.table.keys, strict=True)]
    cuts = [(located.get(e.id) if isinstance(e, Column) else None, build.get(column.id)) for e, column in keys]
    return tuple([(probe.table.stage, n) for n, (at, cut) in enumerate(cuts) if isinstance(at, CutKeys) and at == cut])


def has_located_key(sink: Group, located: Located) -> bool:
    """Whether a key of groups says on which rank their rows lie."""
    return any(isinstance(e, Column) and is_located(located, e.id) for _, e, _ in sink.keys)


def may_lie_together(sink: Sink) -> bool:
    """Whether what the sink makes may be taken to lie with the rows that need it."""
    return isinstance(sink, Build) or (isinstance(sink, Group) and bool(sink.sparse))


def is_mergeable(table: JoinTable) -> bool:
    """Whether tables of the parts of the rows are one when they are put on each other: arrays over the keys with nothing behind
    them, whose slots no two ranks set."""
    needs_no_rows = table.exists or (table.unique and table.inline_payload is not None)
    return table.layout == "direct-address" and needs_no_rows


def only(located: Located, columns: Sequence[int]) -> Located:
    """The located ones among columns."""
    return {i: located[i] for i in columns if i in located}


def is_of_segments(step: Step) -> bool:
    """Whether a step needs the rows of a segment together."""
    return isinstance(step, SegmentHeads | SegmentRows)


def splits_segments(work: Pipeline, located: Located) -> bool:
    """Whether the rows of a segment might lie on two ranks."""
    return any(
        not is_located(located, step.key.column.id)
        for step in work.steps
        if isinstance(step, SegmentHeads | SegmentRows)
    )


def state_bytes(sink: Group, rows: int) -> int:
    """What each rank has of groups before they are merged, about: it may have met all of them."""
    return min(sink.groups, rows) * (1 + len(sink.accumulators)) * INT64_BYTES
