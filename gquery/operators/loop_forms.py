"""The form in which a kernel's loop goes over its rows: one after another, several at once, or a block at a time.

All give the same rows; which is the fastest depends on what a row waits for: columns, probes, or filters that let few pass.
"""

from __future__ import annotations

from collections.abc import Collection

from gquery import tuning
from gquery.kernels import ir
from gquery.kernels.kernel import Kernel
from gquery.kernels.marks import filters
from gquery.kernels.targets.capabilities import capabilities
from gquery.kernels.unroll import unrolled
from gquery.operators import materialize
from gquery.operators.accumulate import state_location
from gquery.planner.physical import (
    Build,
    Group,
    Materialize,
    Pipeline,
    Probe,
    ReadStage,
    ReadTable,
    SegmentHeads,
)
from gquery.runtime.records import replace

_SEARCHES = frozenset({"shared_find", "one_of", "hash_str"})
"""Primitives with loops whose length is another for each row: four copies of one take an assembler four times as long."""


def in_form(kernel: Kernel, pipeline: Pipeline, target: str, hoisted: Collection[ir.Name], is_whole: bool) -> Kernel:
    """The kernel of a pipeline with the form of its loop. ``hoisted``: variables whose loads may come first, for several rows at
    once. ``is_whole``: the loop's rows are those of the pipeline's source."""
    limits = tuning.loops
    if _gains_from_stages(pipeline, target, kernel):
        from gquery.kernels.interleave import interleaved

        steps = interleaved(kernel.body, limits.unrolled_rows, hoisted, kernel.prologue)
        if steps is not None:
            return replace(kernel, unrolled=steps)
    if not is_whole:
        return kernel
    if hoisted and _gains_from_unrolling(pipeline, target, kernel):
        return replace(kernel, unrolled=unrolled(kernel.body, limits.unrolled_rows, hoisted, kernel.prologue))
    if _marks_rows(pipeline, target, kernel):
        return replace(kernel, marked_rows=limits.marked_rows)
    if _prefetches(pipeline, target, kernel):
        return replace(kernel, lookup_rows=limits.lookup_rows)
    return kernel


def _marks_rows(pipeline: Pipeline, target: str, kernel: Kernel) -> bool:
    """Whether the first filters are computed for a block of rows: where there are rows enough for a larger kernel."""
    if not capabilities(target).marks_rows or pipeline.rows < tuning.loops.marked_least_rows:
        return False
    return filters(kernel.written) is not None  # the body would have a long loop cut into functions now


def _prefetches(pipeline: Pipeline, target: str, kernel: Kernel) -> bool:
    """Whether rows are looked up in a table of row numbers a block at a time: where there are rows enough for a larger kernel,
    and in a table that is probed, too, so that it does not stay in a cache."""
    if not capabilities(target).marks_rows or pipeline.rows < tuning.loops.lookup_least_rows:
        return False
    probed = next((s.table for s in pipeline.steps if isinstance(s, Probe)), None)
    if probed is None and not isinstance(pipeline.sink, Group | Build):
        return False
    if probed is not None and probed.rows < tuning.loops.lookup_table_rows:
        return False
    from gquery.kernels.prefetch import lookup

    return lookup(kernel.written) is not None


def _gains_from_unrolling(pipeline: Pipeline, target: str, kernel: Kernel) -> bool:
    """Whether the loop is bound by waiting for columns: a sink that accumulates into registers or shared memory, or marks rows.
    What enters tables waits for these. A long loop is bound by what it computes, and an assembler takes its time for each copy
    of it: the more so where rows also meet tables, and most of all where each row has a search of its own."""
    if not capabilities(target).interleaves_rows or not isinstance(pipeline.source, ReadTable | ReadStage):
        return False
    if kernel.primitives & _SEARCHES:
        return False
    sink = pipeline.sink
    lines = ir.line_count(kernel.body) + sum(ir.line_count(part.body) for part in kernel.parts)
    if any(isinstance(s, SegmentHeads) for s in pipeline.steps):  # few rows get to the sink
        return lines <= tuning.loops.unrolled_lines and pipeline.rows >= tuning.loops.interleaved_rows
    if isinstance(sink, Build) or (isinstance(sink, Group) and state_location(sink, target) == "global"):
        is_windowed = isinstance(sink, Group) and sink.windows > 1  # most rows are passed over
        return is_windowed and lines <= tuning.loops.unrolled_lines
    if isinstance(sink, Materialize):
        return lines <= tuning.loops.unrolled_lines and materialize.materialize_mode(pipeline.steps, True) in (
            "dense",
            "selection_bitmap",
        )
    if len(kernel.prologue) > tuning.loops.unrolled_variables:
        return False
    if any(isinstance(s, Probe) for s in pipeline.steps):
        return lines <= tuning.loops.unrolled_lines and pipeline.rows >= tuning.loops.interleaved_rows
    return lines <= tuning.loops.unrolled_lines_reduced


def _gains_from_stages(pipeline: Pipeline, target: str, kernel: Kernel) -> bool:
    """Whether the loop waits for probes: a row's come one after another, and there are rows enough to take several at once."""
    limits = tuning.loops
    if not capabilities(target).interleaves_rows or pipeline.rows < limits.interleaved_rows:
        return False
    if ir.line_count(kernel.body) > limits.interleaved_lines:
        return False
    return isinstance(pipeline.source, ReadTable | ReadStage) and any(isinstance(s, Probe) for s in pipeline.steps)
