"""What it costs ranks to send each other slots of groups that are in arrays over their key, not the groups that there are."""

from __future__ import annotations

from gquery import tuning
from gquery.distributed.kept_together import state_bytes
from gquery.distributed.ranks import Ranks
from gquery.distributed.row_bytes import rows_behind
from gquery.distributed.stage_placement import Rows
from gquery.expression.facts import INT64_BYTES
from gquery.operators.part_groups import has_slots
from gquery.planner.physical import Group, Pipeline


def slots_ps(sink: Group, among: Ranks) -> float:
    """Picoseconds that a rank takes to get the slots of its own keys, and to put them on its own."""
    limits, ranks = among.limits, among.count
    assert sink.key_encoding is not None
    moved = sink.key_encoding.size * (len(sink.accumulators) * INT64_BYTES + 1) * (ranks - 1) / ranks
    return moved * (limits.received_ps + 2 * limits.copied_ps)


def slices(sink: Group, ranks: int) -> list[int]:
    """The values at which the slots of groups are divided about evenly; where ranks go on with slots of their own in place, each
    part begins where memory could."""
    assert sink.key_encoding is not None
    (slots,), apart = sink.key_encoding.parts, 1 if sink.sparse else tuning.transfers.together_alignment
    return [slots.base + slots.width * r // ranks // apart * apart for r in range(1, ranks)]


def sending_slots_pays(work: Pipeline, sink: Group, reads: Rows, among: Ranks) -> bool:
    """Whether a rank takes less for slots than for the groups that it has and gets, each rank a part of all."""
    if not has_slots(sink):
        return False
    limits, ranks = among.limits, among.count
    rows = rows_behind(work, len(work.steps)) / (ranks if reads == "part" else 1)
    groups = min(sink.groups, rows)
    received = state_bytes(sink, work.rows) * limits.received_ps * (ranks - 1) / ranks
    return slots_ps(sink, among) < received + groups * limits.merged_ps
