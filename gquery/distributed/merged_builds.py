"""Join tables that are arrays over their keys: merged of what ranks have entered, or made by each rank of all rows.

Merging moves arrays as large as the range of the keys, however few rows are entered. To have all rows of a table a worker of a
cluster reads the rest of its files, and to have those of a frame the ranks gather them.
"""

from __future__ import annotations

from collections.abc import Sequence

from gquery.distributed.build_cost import entering_ps
from gquery.distributed.ranks import Ranks
from gquery.distributed.row_bytes import array_bytes, frame_bytes, source_bytes
from gquery.planner.physical import JoinTable, Pipeline, ReadStage, Stage


def merging_pays(
    stages: Sequence[Stage], work: Pipeline, table: JoinTable, ranks: Ranks, has_rows: bool = False
) -> bool:
    """Whether it costs each rank less to enter its part of the rows of a pipeline and to merge the table than to enter all. Where
    it ``has_rows``, it has all of them already."""
    limits, others = ranks.limits, ranks.count - 1
    if not limits.unmerged_most:
        return True
    moved = array_bytes(table) * others * (limits.received_ps + limits.copied_ps)
    share = others / ranks.count
    entered = table.rows * entering_ps(stages, work, table, limits) * share
    if has_rows:
        more = 0.0
    elif isinstance(work.source, ReadStage):
        more = frame_bytes(stages[work.source.stage].work) * (limits.received_ps * share + limits.copied_ps)
    else:
        more = source_bytes(work.source, work.rows) * limits.copied_ps / 2 * share  # read and not written
    return moved * limits.unmerged_most < more + entered
