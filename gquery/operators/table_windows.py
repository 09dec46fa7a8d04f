"""Windows: on a GPU, a table of groups that is larger than the cache is filled a window of its slots after the other.

An atomic on a place that is in the cache takes a quarter of the time of one that is not: that fetches a sector of memory and
writes it back. So where rows come in no order, and many to a slot, the kernel runs once a window, each time over all rows, and a
row whose slot is outside of the window is passed over. Reading a row's key again costs a fraction of the atomic. Filters that
drop few rows, and read little of each, are tested again in each window. For others, the rows that get past them are found first
(see `operators.selection`): the number of a row is read in each window then, and its key not next to its neighbours' keys.
"""

from __future__ import annotations

from collections.abc import Collection

from gquery import tuning
from gquery.device.profile import DeviceProfile
from gquery.expression.expr import And, Expr, Not
from gquery.expression.facts import INT64_BYTES
from gquery.kernels import ir
from gquery.kernels.bindings import StatePart
from gquery.kernels.code import Code
from gquery.kernels.text_matches import is_scanned, scanned_test
from gquery.operators.accumulate import state_location
from gquery.operators.materialize import selectivity
from gquery.operators.text_scans import scannable_columns
from gquery.planner.logical.tree import used_columns
from gquery.planner.physical import FilterRows, Group, Pipeline, Probe, ReadStage, ReadTable
from gquery.runtime.records import replace


def windowed(pipeline: Pipeline, rows: int, target: str, profile: DeviceProfile) -> Pipeline:
    """The pipeline over ``rows`` rows, with a table that is filled in windows where that is a gain."""
    sink = pipeline.sink
    if not isinstance(sink, Group) or sink.layout != "direct-address" or sink.clustered_key is not None:
        return pipeline
    assert sink.key_encoding is not None
    slots, limits = sink.key_encoding.size, tuning.windows
    windows = -(
        -slots * len(sink.accumulators) * INT64_BYTES // max(1, int(limits.cache_fraction * profile.cache_bytes))
    )
    meets_memory = (
        state_location(sink, target) == "global" and rows * selectivity(pipeline.steps) >= limits.rows_a_slot * slots
    )
    if not 1 < windows <= limits.most or not meets_memory or not _is_cheap(pipeline):
        return pipeline
    selection_steps = 0 if _tests_again(pipeline, target) else len(pipeline.steps)
    return replace(pipeline, sink=replace(sink, windows=windows), selection_steps=selection_steps)


def _is_cheap(pipeline: Pipeline) -> bool:
    """Whether what is done for each row behind its filters is little: it is done once a window."""
    return isinstance(pipeline.source, ReadTable | ReadStage) and not any(isinstance(s, Probe) for s in pipeline.steps)


def _tests_again(pipeline: Pipeline, target: str) -> bool:
    """Whether testing a row's filters again reads no more than the number of a row that was found to get past them."""
    limits = tuning.windows
    if pipeline.selection_steps or selectivity(pipeline.steps) < limits.tested_again_selectivity:
        return False
    scannable = scannable_columns(pipeline, target)
    read: set[int] = set()
    for step in pipeline.steps:
        if isinstance(step, FilterRows):
            read |= _columns_of(step.predicate, scannable)
    source = pipeline.source
    stored = {s.column.id: s.physical_type for s in source.columns} if isinstance(source, ReadTable | ReadStage) else {}
    if not read <= stored.keys() or any(stored[c].is_string for c in read):
        return False
    return sum(stored[c].bytes for c in read) <= limits.tested_again_bytes


def _columns_of(e: Expr, scannable: Collection[int]) -> frozenset[int]:
    """The columns that a predicate reads, but for tests that nearly all rows get to and that a text scan makes: a bit a row."""
    match e:
        case Not(inner):
            return _columns_of(inner, scannable)
        case And(terms):
            return frozenset[int]().union(*(_columns_of(term, scannable) for term in terms))
        case _:
            test = scanned_test(e)
            if test is not None and test.column in scannable and is_scanned(test):
                return frozenset()
            return used_columns(e)


def is_inside(slot: ir.Expression, code: Code) -> ir.Expression:
    """A variable that says whether a slot is in the window of a launch."""
    low, high = code.scalar(StatePart("window_low")), code.scalar(StatePart("window_high"))
    return code.let(ir.And((code.call("ge_i64", slot, low), code.call("lt_i64", slot, high))))
