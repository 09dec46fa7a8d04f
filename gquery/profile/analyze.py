"""EXPLAIN ANALYZE: runs a program twice, once for its times and once with kernels that count rows, and makes the tree.

Counting would take time inside the loops, so the kernels that are timed are those that every other run of the query has.
"""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import Literal, assert_never

from gquery.execution import ExecutionContext, run_with_report
from gquery.execution.feedback import RunFeedback
from gquery.execution.measure import Meter, copy_bandwidth
from gquery.planner.logical.nodes import Query
from gquery.planner.physical import Program
from gquery.profile.tree import Analysis, Explained, explained
from gquery.runtime.stopwatch import part, watched

Format = Literal["text", "json", "html"]


def explain_tree(
    sql: str, query: Query, program: Program, context: ExecutionContext, feedback: RunFeedback, analyze: bool
) -> Explained:
    """The tree of a query, whose text is ``sql``, that was lowered to ``program``; ``analyze`` runs it."""
    analysis = measured(program, context, feedback) if analyze else None
    return explained(sql, query, program, context, feedback, analysis)


def measured(program: Program, context: ExecutionContext, feedback: RunFeedback) -> Analysis:
    """Run a program, timed, then again with kernels that count."""
    meter = Meter(context.device)
    start = time.perf_counter()
    with context.device.activate(), meter.watching():
        table, reports = run_with_report(program, replace(context, meter=meter), feedback)
        context.device.synchronize()
    seconds, rows = time.perf_counter() - start, table.rows
    del table
    counting = Meter(context.device, counts=True)
    with part("measure"), watched(None):  # what a timer calls running is what the tree calls its total
        run_with_report(program, replace(context, meter=counting), feedback)
        bandwidth = copy_bandwidth(context.device, 1 if context.device.is_cuda else context.settings.worker_count)
    return Analysis(reports, meter, counting.steps, seconds, rows, bandwidth)


def formatted(tree: Explained, kind: Format) -> str:
    """The tree as text, JSON or a page of HTML."""
    match kind:
        case "text":
            from gquery.profile.text import as_text

            return as_text(tree)
        case "json":
            return json.dumps(tree.as_dict(), indent=2) + "\n"
        case "html":
            from gquery.profile.page import as_page

            return as_page(tree)
        case _:
            assert_never(kind)
