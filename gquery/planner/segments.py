"""The steps of a pipeline that aggregates segments: groups of a sorted key, whose rows lie together, so that they need no table.

    lines, sorted by order                 segment heads: the first row of each order
      group by order: sum(quantity)    =>  rows of the segment: it and those behind it
      select sum > 300                     aggregate the segment: sum(quantity), in registers
                                           select sum > 300

The row that heads a segment stands for its group in all that follows.
"""

from __future__ import annotations

from collections.abc import Sequence

from gquery.planner.physical import AggregateSegment, SegmentHeads, SegmentRows, Step
from gquery.runtime.records import dataclass


@dataclass(frozen=True)
class SegmentSteps:
    """Steps in their order: ``heads`` are made for the first row of a segment alone and begin with a `SegmentHeads`,
    ``inner`` for each of its rows, ``after`` for its group."""

    heads: tuple[Step, ...]
    rows: SegmentRows
    inner: tuple[Step, ...]
    aggregate: AggregateSegment
    after: tuple[Step, ...]

    @property
    def block(self) -> tuple[Step, ...]:
        """The steps from the rows of a segment to its aggregates."""
        return (self.rows, *self.inner, self.aggregate)


def segment_steps(steps: Sequence[Step]) -> SegmentSteps | None:
    """The parts of steps that aggregate segments; None where they do not."""
    for at, step in enumerate(steps):
        if isinstance(step, SegmentRows):
            close = closing(steps, at)
            aggregate = steps[close]
            assert isinstance(aggregate, AggregateSegment)
            return SegmentSteps(
                tuple(steps[:at]), step, tuple(steps[at + 1 : close]), aggregate, tuple(steps[close + 1 :])
            )
    return None


def closing(steps: Sequence[Step], at: int) -> int:
    """The place of the step that aggregates the rows which step ``at`` passes on."""
    return next(n for n, s in enumerate(steps) if n > at and isinstance(s, AggregateSegment))


def finds_heads(steps: Sequence[Step]) -> bool:
    """Whether rows stand for segments: the first rows of the source would not do, as a segment may go on behind them."""
    return any(isinstance(s, SegmentHeads) for s in steps)
