"""Runtime specialization: a pipeline for the join tables that it probes and the rows that it reads, once they are there.

A plan is made from plan properties and estimates. When a pipeline starts, the tables that it probes are built, and two things are
known that were not: how many groups there can be where each belongs to a row of a build side, and how many rows a fan-out
can make at most. The first chooses between addressing and hashing groups, the second how exact sums are split. A build of too
few rows for an array becomes a hash table. A build whose keys are probably unique speculates that they are, since a probe of
unique keys needs no loop; it validates that, and is repeated where it was wrong. What probes a table is specialized for the
table as it was built. `execution.specialize` applies all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from gquery import tuning
from gquery.device.device import Device
from gquery.expression.facts import SMALL_SUM_WORD_BITS, UNBOUNDED
from gquery.kernels.builtin import grouping
from gquery.operators.base import JoinIndex
from gquery.planner.aggregates import plan_aggregates
from gquery.planner.late_materialization import limits_groups
from gquery.planner.logical.nodes import JoinKind
from gquery.planner.physical import Build, Group, JoinTable, Pipeline, Probe, Reduce
from gquery.runtime.records import replace
from gquery.runtime.tuples import NamedTuple


class ProbedTable(NamedTuple):
    """What specialization looks at of a join table. ``longest``: the most build rows that one probe can match, None where that
    does not matter."""

    table: JoinTable
    rows: int
    frame_rows: int
    longest: int | None


def probed_tables(pipeline: Pipeline, joins: Mapping[int, JoinIndex]) -> tuple[ProbedTable, ...]:
    """The tables that a pipeline probes, as they were built."""
    found = []
    has_limit = _has_small_sums(pipeline)
    for step in pipeline.steps:
        if isinstance(step, Probe):
            index = joins[step.table.stage]
            longest = _longest(index) if has_limit and _fans_out(step) else None
            found.append(ProbedTable(index.table, index.rows, index.frame.rows, longest))
    return tuple(found)


def has_room(pipeline: Pipeline, rows: int, device: Device) -> bool:
    """Whether a build that is to be partitioned first can be: it holds its slots twice beside the table."""
    sink = pipeline.sink
    if not isinstance(sink, Build) or not sink.table.radix_partitioned:
        return True
    return device.free_bytes >= tuning.join_layouts.partitioned_row_bytes * rows


def specialize_for_tables(
    pipeline: Pipeline, rows: int, joins: Mapping[int, JoinIndex], merges: bool = False
) -> Pipeline:
    """The pipeline as it should run over ``rows`` rows with these join tables. Where it ``merges`` its words with those of other
    ranks, whose rows and tables are others, sums are split as they are planned."""
    if any(isinstance(s, Probe) and not _is_built_so(s.table, joins[s.table.stage].table) for s in pipeline.steps):
        pipeline = _with_tables(pipeline, lambda table: _as_built(table, joins[table.stage].table))
    if not merges and _has_small_sums(pipeline):
        pipeline = with_row_limit(pipeline, _row_limit(pipeline, rows, joins))
    sink = pipeline.sink
    if (
        isinstance(sink, Group)
        and sink.layout == "direct-address"
        and sink.key_encoding is not None
        and not sink.sparse
    ):
        groups = _group_limit(pipeline, sink, joins)
        limits = tuning.group_layouts
        if max(groups * limits.hashed_slots_a_group, limits.hashed_least_slots) < sink.key_encoding.size:
            return replace(pipeline, sink=replace(sink, layout="hash", groups=max(groups, 1)))
    if isinstance(sink, Group) and sink.layout == "hash":
        groups = _group_limit(pipeline, sink, joins)
        if groups < sink.groups:
            return replace(pipeline, sink=replace(sink, groups=max(groups, 1)))
    return pipeline


def specialize_build(pipeline: Pipeline, rows: int, has_room: bool, merges: bool) -> Pipeline:
    """A build over ``rows`` rows, now that their number is known. An array with many slots and few rows is a hash table
    instead: what probes it finds it in the cache; not one that is merged with those of other ranks. One that is to be partitioned
    first is not if there is no room."""
    sink = pipeline.sink
    if not isinstance(sink, Build):
        return pipeline
    table = sink.table
    if table.layout == "direct-address" and not table.exists and not merges:
        assert table.key_encoding is not None
        if table.key_encoding.size > max(tuning.join_layouts.slots_a_row * rows, tuning.join_layouts.small_array):
            table = replace(table, layout="hash", inline_keys=True, radix_partitioned=False)
    if table.radix_partitioned and not has_room:
        table = replace(table, radix_partitioned=False)
    return pipeline if table is sink.table else replace(pipeline, sink=Build(table))


def built_by_one(pipeline: Pipeline) -> Pipeline:
    """A build whose rows one thread enters, if it sets bits."""
    sink = pipeline.sink
    if not isinstance(sink, Build) or not (sink.table.exists or sink.table.filter is not None):
        return pipeline
    return replace(pipeline, sink=Build(replace(sink.table, by_one=True)))


def speculate_unique(pipeline: Pipeline) -> Pipeline:
    """A build as it runs first: keys that are expected to be unique are taken to be; DuplicateKeysError where one is not."""
    sink = pipeline.sink
    if isinstance(sink, Build) and sink.table.expected_unique and not sink.table.unique:
        return replace(pipeline, sink=Build(replace(sink.table, unique=True)))
    return pipeline


def _is_built_so(planned: JoinTable, built: JoinTable) -> bool:
    return planned.unique is built.unique and planned.layout == built.layout


def _as_built(planned: JoinTable, built: JoinTable) -> JoinTable:
    return replace(planned, unique=built.unique, layout=built.layout, inline_keys=built.inline_keys)


def _with_tables(pipeline: Pipeline, as_built: Callable[[JoinTable], JoinTable]) -> Pipeline:
    """The pipeline with other tables for its probes."""
    steps = tuple(replace(s, table=as_built(s.table)) if isinstance(s, Probe) else s for s in pipeline.steps)
    return replace(pipeline, steps=steps)


def _group_limit(pipeline: Pipeline, sink: Group, joins: Mapping[int, JoinIndex]) -> int:
    """At most so many groups: the rows of a build side that all keys come from."""
    groups = sink.key_encoding.size if sink.key_encoding is not None else UNBOUNDED
    for step in pipeline.steps:
        if isinstance(step, Probe) and limits_groups(step, sink.keys):
            groups = min(groups, joins[step.table.stage].rows)
    return groups


def _row_limit(pipeline: Pipeline, rows: int, joins: Mapping[int, JoinIndex]) -> int:
    """At most so many rows reach the sink: those of the source, times the longest range of rows that a key has in each
    table."""
    for step in pipeline.steps:
        if isinstance(step, Probe) and _fans_out(step):
            rows *= max(1, _longest(joins[step.table.stage]))
    return rows


def _has_small_sums(pipeline: Pipeline) -> bool:
    """Whether sums are split for the number of rows that reach the sink."""
    sink = pipeline.sink
    return isinstance(sink, Group | Reduce) and any(a.sum_word_bits == SMALL_SUM_WORD_BITS for _, a in sink.aggregates)


def _fans_out(probe: Probe) -> bool:
    """Whether a row may come out several times."""
    return probe.kind in (JoinKind.INNER, JoinKind.LEFT, JoinKind.FULL)


def fan_out(pipeline: Pipeline, joins: Mapping[int, JoinIndex]) -> float:
    """Build rows that a row of the source goes through, in all probes together, where its keys are as frequent as the build
    sides' own: what a million rows have in common, many look for. Tables that lie on a GPU alone are not looked at."""
    turns = 1.0
    for step in pipeline.steps:
        if isinstance(step, Probe) and not step.table.unique and not step.table.exists and not _takes_first(step):
            turns *= max(1.0, _mean_range(joins[step.table.stage]))
    return turns


def _takes_first(probe: Probe) -> bool:
    """Whether the first row of a range decides."""
    is_tested = probe.residual is not None or probe.reach is not None
    return not is_tested and probe.kind in (JoinKind.ASOF, JoinKind.SEMI, JoinKind.ANTI, JoinKind.MARK, JoinKind.SINGLE)


def _mean_range(index: JoinIndex) -> float:
    """Build rows that a build row's own key has, in the mean."""
    starts = index.arrays.starts
    if index.table.sorted_by is not None and index.table.is_bounded:
        return float(min(_longest(index), tuning.join_layouts.range_matches))
    host = None if starts is None else starts.cpu
    if starts is not None and host is None:
        return 1.0
    longest = _longest(index)
    if host is None or longest <= tuning.join_layouts.short_range:
        return float(longest)
    ranges = np.diff(host).astype(np.float64)
    return float(ranges @ ranges / max(1.0, ranges.sum()))


def _longest(index: JoinIndex) -> int:
    """The most build rows that one probe can match."""
    if index.longest is None:
        starts = index.arrays.starts
        if (known := _longest_run(index)) is not None:
            index.longest = known
        elif starts is not None:
            index.longest = grouping.longest_range(starts.on(starts.devices[0]))
        else:  # every row of the side, or one
            index.longest = index.frame.rows if index.table.layout in ("one", "loop", "sorted") else 1
    return index.longest


def _longest_run(index: JoinIndex) -> int | None:
    """What the column of the one key says of it, where the rows of a table lie in its order."""
    if index.arrays.gathers != 0 or len(index.table.keys) != 1:
        return None
    return index.frame.columns[index.table.keys[0].id].statistics.longest_run


def with_row_limit(pipeline: Pipeline, rows: int) -> Pipeline:
    """The pipeline with its sums split for at most ``rows`` rows; what is known of the results stays as it was planned."""
    sink = pipeline.sink
    assert isinstance(sink, Group | Reduce)
    planned = [a for _, a in sink.aggregates]
    known = [a.arg if a.call.args else None for a in planned]
    accumulators, plans = plan_aggregates(
        [a.call for a in planned], known, rows, isinstance(sink, Group), [a.result for a in planned]
    )
    named = tuple([(c, p) for (c, _), p in zip(sink.aggregates, plans, strict=True)])
    return replace(pipeline, sink=replace(sink, accumulators=accumulators, aggregates=named))

