"""What EXPLAIN says of several ranks: which rows each runs, what they exchange, and what each of them took."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gquery.execution import ExecutionContext, StageReport
from gquery.execution.feedback import RunFeedback
from gquery.execution.ranked import ranked
from gquery.planner.physical import Program
from gquery.runtime.amounts import format_bytes


def placement_texts(program: Program, context: ExecutionContext, feedback: RunFeedback) -> list[str]:
    """How several ranks run each stage of a program; nothing where one device has all rows."""
    if context.remote is not None:
        return [p.text(context.remote.size) for p in context.remote.placed(program, feedback).placement]
    if not context.ranks:
        return []
    size = len(context.ranks)
    return [p.text(size) for p in ranked(program, size, feedback).placement]


def ranks_text(reports: Sequence[StageReport]) -> Iterator[str]:
    """What the ranks took for a stage: the rows that each read, its time, and the bytes that came from others."""
    if len(reports) < 2:
        return
    if any(r.rows for r in reports):
        yield "rows read by rank: " + ", ".join(f"{r.rows:,}" for r in reports)
    yield "milliseconds by rank: " + ", ".join(f"{1000 * (r.seconds - r.compile_seconds):.2f}" for r in reports)
    if reports[0].heavy_keys:
        yield f"heavy keys, whose rows are shared evenly: {reports[0].heavy_keys}"
    if any(r.received_bytes for r in reports):
        yield "received by rank: " + ", ".join(format_bytes(r.received_bytes) for r in reports)
