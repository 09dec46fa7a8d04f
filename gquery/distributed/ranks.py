"""How many ranks there are, and the numbers by which rows are divided among them: those of GPUs, or of a cluster's workers."""

from __future__ import annotations

from dataclasses import replace

from gquery import tuning
from gquery.expression.frozen import frozen_open
from gquery.planner.physical import Pipeline, ReadStage
from gquery.tuning.dividing import Distribution

_OF_A_THREAD = ("partitioned_ps", "copied_ps", "entered_ps", "ranged_ps", "placed_ps", "ordered_ps", "merged_ps")


@frozen_open
class Ranks:
    """So many ranks, whose work is divided by these numbers."""

    count: int
    limits: Distribution

    @staticmethod
    def of_devices(count: int) -> Ranks:
        """Those of several devices of this process."""
        return Ranks(count, tuning.distribution)

    @staticmethod
    def of_workers(count: int, threads: int) -> Ranks:
        """Those of a cluster, each with so many threads."""
        limits = tuning.worker_distribution
        costs = {name: getattr(limits, name) / threads for name in _OF_A_THREAD}
        return Ranks(count, replace(limits, **costs))

    def cuts_frame(self, pipeline: Pipeline) -> bool:
        """Whether it is worth it that each rank takes a part of a frame that all have."""
        return isinstance(pipeline.source, ReadStage) and pipeline.rows >= self.limits.cut_frame_rows

    def without_tables(self) -> Ranks:
        """The same where no table is cut: much has to come of small tables before ranks gain by dividing it."""
        rows = max(self.limits.cut_frame_rows, self.limits.alone_rows)
        return Ranks(self.count, replace(self.limits, cut_frame_rows=rows))
