"""Placement: which rows each rank has of what the stages of a program read and make.

All ranks run the same stages. A stage runs over a rank's *part* of the rows or over the *whole* of them. Parts lie in rank order:
those of all ranks one after another are the rows in their order. Where a stage needs more than its part, the ranks exchange:

- *gather*: every rank gets all rows of an earlier stage's frame (what a join table is built of, what is sorted);
- *merge*: the states of aggregates become one, which every rank has, and so do join tables that are arrays over their keys and
  need no rows behind them;
- nothing, where the rows that belong together lie on one rank: tables that are joined on sorted columns are cut at the same
  keys (`distributed.cuts`), so that a row and its matches lie together, and so do the rows of a group.

A column that says on which rank a row lies is *located*: all rows of one of its values are on one rank.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, assert_never

from gquery.errors import InternalError
from gquery.expression.expr import Column
from gquery.expression.frozen import frozen_open
from gquery.operators.scan_ranges import unwidened
from gquery.planner.logical.nodes import JoinKind
from gquery.planner.physical import (
    Build,
    Compute,
    ConcatRows,
    DistinctRows,
    Group,
    HostRows,
    JoinTable,
    Materialize,
    Pipeline,
    PipelineBreaker,
    Probe,
    Program,
    RankDecode,
    RankEncode,
    ReadOne,
    ReadRange,
    ReadStage,
    ReadTable,
    Reduce,
    SegmentHeads,
    SegmentRows,
    Sink,
    SliceRows,
    SortRows,
    Source,
    Stage,
    Step,
    Stored,
    UnmatchedRows,
)
from gquery.planner.stage_inputs import stage_inputs

Rows = Literal["part", "whole"]


class CutKeys:
    """The values at which tables are cut, ascending: rank r has those from ``bounds[r - 1]`` on that are below ``bounds[r]``.
    Tables that are cut at the same ones have the same object."""

    def __init__(self, bounds: Sequence[int] = ()) -> None:
        self.bounds = tuple(bounds)

    def own(self, rank: int, base: int, width: int) -> tuple[int, int]:
        """The part of ``width`` values from ``base`` on that a rank may have: where it begins, and its width, 1 at least.

        >>> CutKeys([10, 20]).own(1, 5, 12), CutKeys([10, 20]).own(2, 5, 12)
        ((10, 7), (16, 1))
        """
        low = max(self.bounds[rank - 1], base) if rank > 0 else base
        high = min(self.bounds[rank], base + width) if rank < len(self.bounds) else base + width
        low = min(low, base + width - 1)
        return low, max(high - low, 1)


Located = Mapping[int, CutKeys]
"""By the id of a column that is located the cut that says so: rows with equal values of columns of one cut lie on one rank."""

NOWHERE: Located = {}


@frozen_open
class StagePlacement:
    """How the ranks run one stage: the rows of its source that each one ``reads``, those that it ``makes``, whether states are
    merged at its end, and the stages whose frames are gathered before it."""

    reads: Rows
    makes: Rows
    merges: bool = False
    gathers: tuple[int, ...] = ()
    own_keys: tuple[tuple[int, CutKeys], ...] = ()  # the keys of the sink, by position, of which each rank has values of its own

    def text(self, ranks: int) -> str:
        """What EXPLAIN says of it.

        >>> StagePlacement("part", "whole", merges=True).text(2)
        'each of 2 ranks: a part of the rows, states merged'
        """
        rows = "a part of the rows" if self.reads == "part" else "all rows"
        gathers = [f"stage {n} gathered first" for n in self.gathers]
        merges = ["states merged"] if self.merges else []
        return f"each of {ranks} ranks: " + ", ".join([*gathers, rows, *merges])


Placement = tuple[StagePlacement, ...]


def place(
    program: Program, located: Callable[[ReadTable], Located | None], cuts_frame: Callable[[Pipeline], bool]
) -> Placement:
    """The placement of a program's stages. ``located`` gives the located columns of a table that is cut, None for one that every
    rank has whole. ``cuts_frame`` says whether each rank takes a part of the rows of a frame that all have."""
    together = frozenset(
        s.number for s in program.stages if isinstance(s.work, Pipeline) and _may_lie_together(s.work.sink)
    )
    while True:
        placing = _Placing(together, located, cuts_frame)
        placed = tuple([placing.stage(stage) for stage in program.stages])
        if not placing.apart:
            return placed
        if not placing.apart & together:
            raise InternalError(f"what stages {sorted(placing.apart)} make lies on no rank as a whole")
        together -= placing.apart


class _Placing:
    """One way through the stages of a program. ``together`` are the join tables that are taken to have all matches of a rank's
    rows on that rank, and the sparse groups that are taken to be read on the rank of their rows alone; those for which a stage
    shows that this is wrong are ``apart`` in the end."""

    def __init__(
        self,
        together: frozenset[int],
        located: Callable[[ReadTable], Located | None],
        cuts_frame: Callable[[Pipeline], bool],
    ) -> None:
        self.together, self.located_of, self.cuts_frame = together, located, cuts_frame
        self.apart: set[int] = set()
        self.rows: dict[int, Rows] = {}  # by stage, what it makes
        self.located: dict[int, Located] = {}
        self.sparse: dict[
            int, CutKeys
        ] = {}  # by stage, sparse groups of which each rank has its own: what locates their key
        self.has_parts: dict[
            int, bool
        ] = {}  # by the stage of a probing pipeline with a FULL join: whether parts probed

    def stage(self, stage: Stage) -> StagePlacement:
        """The placement of the next stage."""
        work = stage.work
        made, located = self._pipeline(work, stage.number) if isinstance(work, Pipeline) else self._breaker(work)
        self.rows[stage.number], self.located[stage.number] = made.makes, located
        return made

    # ---- pipelines ----

    def _pipeline(self, work: Pipeline, number: int) -> tuple[StagePlacement, Located]:
        reads, located = self._source(work.source)
        if reads == "part" and (_splits_segments(work, located) or not self._takes_parts(work, located, number)):
            reads, located = "whole", NOWHERE
        if reads == "whole" and self.cuts_frame(work) and self._can_cut(work):
            reads = "part"
        for step in work.steps:
            located = self._behind(step, reads, located)
        behind = located
        makes, merges, located = self._sink(work.sink, reads, behind, number)
        own_keys = () if reads == "whole" or merges else _own_keys(work.sink, behind)
        return StagePlacement(reads, makes, merges, self._missing(work.source, reads), own_keys), located

    def _source(self, source: Source) -> tuple[Rows, Located]:
        match source:
            case ReadTable():
                located = self.located_of(source)
                return ("whole", NOWHERE) if located is None else ("part", located)
            case ReadStage(stage, numbered=Stored(column=key)) if (
                stage in self.sparse
            ):  # slots are numbered alike on all ranks
                return "part", {key.id: self.sparse[stage]}
            case ReadStage(stage, columns, origins, numbered):
                if self.rows[stage] == "whole" or numbered is not None:  # the number of a row is that among all
                    return "whole", NOWHERE
                below = self.located[stage]
                return "part", {s.column.id: below[o] for s, o in zip(columns, origins, strict=True) if o in below}
            case ReadRange() | ReadOne():
                return "whole", NOWHERE
            case _:
                assert_never(source)

    def _takes_parts(self, work: Pipeline, located: Located, number: int) -> bool:
        """Whether the sink of a pipeline can do with parts of the rows of its source."""
        match work.sink:
            case Build(table):
                return self._lies_together(table, located, number) or _is_mergeable(table)
            case Group(layout="row-id hash", keys=keys):  # its keys are compared where they stand: in one frame
                return any(isinstance(e, Column) and e.id in located for _, e, _ in keys)
            case Materialize() | Reduce() | Group():
                return True
            case _:
                assert_never(work.sink)

    def _can_cut(self, work: Pipeline) -> bool:
        """Whether each rank can take a part of the rows of a frame that all have."""
        source = work.source
        if not isinstance(source, ReadStage) or source.numbered is not None or any(map(_is_of_segments, work.steps)):
            return False
        if isinstance(work.sink, Build):
            return _is_mergeable(work.sink.table)
        return not (isinstance(work.sink, Group) and work.sink.layout == "row-id hash")

    def _behind(self, step: Step, reads: Rows, located: Located) -> Located:
        """The located columns behind a step."""
        match step:
            case Compute(exprs):
                values = {c.id: unwidened(e) for c, e in exprs}
                return {
                    **located,
                    **{i: located[e.id] for i, e in values.items() if isinstance(e, Column) and e.id in located},
                }
            case Probe(table=table):
                if self.rows[table.stage] == "whole":
                    return located
                if reads == "whole" or step.null_key or not self._matches_lie_here(step, located):
                    self.apart.add(table.stage)
                    return located
                return {**self.located[table.stage], **located} if step.kind is JoinKind.INNER else located
            case _:
                return located

    def _matches_lie_here(self, probe: Probe, located: Located) -> bool:
        """Whether all rows of a join table that a rank's rows match are on that rank: a key of both sides is located alike."""
        build = self.located[probe.table.stage]
        for key, column in zip(probe.keys, probe.table.keys, strict=True):
            e = unwidened(key)
            if isinstance(e, Column) and e.id in located and build.get(column.id) == located[e.id]:
                return True
        return False

    def _lies_together(self, table: JoinTable, located: Located, number: int) -> bool:
        """Whether a join table of a rank's rows is taken to have all matches of rows of that rank."""
        return number in self.together and any(k.id in located for k in table.keys)

    def _sink(self, sink: Sink, reads: Rows, located: Located, number: int) -> tuple[Rows, bool, Located]:
        """What the sink makes, whether its states are merged, and the located columns of its frame."""
        match sink:
            case Materialize(columns=columns):
                return reads, False, _only(located, [s.column.id for s in columns])
            case Build(table):
                if reads == "part" and not self._lies_together(table, located, number):
                    return "whole", True, NOWHERE
                return reads, False, _only(located, [s.column.id for s in table.columns])
            case Reduce():
                return "whole", reads == "part", NOWHERE
            case Group(keys=keys):
                found = {c.id: located[e.id] for c, e, _ in keys if isinstance(e, Column) and e.id in located}
                if found and sink.sparse and number in self.together:
                    (self.sparse[number],) = found.values()
                    return reads, False, NOWHERE
                if reads == "whole" or (found and not sink.sparse):
                    return reads, False, found
                return "whole", True, NOWHERE
            case _:
                assert_never(sink)

    def _missing(self, source: Source, reads: Rows) -> tuple[int, ...]:
        """The stages whose frames have to be gathered for a stage that reads the whole of a source."""
        if reads == "whole" and isinstance(source, ReadStage) and self.rows[source.stage] == "part":
            return self._gathered([source.stage])
        return ()

    def _gathered(self, stages: Iterable[int]) -> tuple[int, ...]:
        """The stages among these of which each rank has a part. Sparse groups are merged instead of that."""
        found = tuple([n for n in dict.fromkeys(stages) if self.rows[n] == "part"])
        self.apart.update(n for n in found if n in self.sparse)
        return found

    # ---- pipeline breakers ----

    def _breaker(self, work: PipelineBreaker) -> tuple[StagePlacement, Located]:
        match work:
            case HostRows(source=source):
                reads, located = self._source(source)
                return StagePlacement(reads, reads, gathers=self._missing(source, reads)), located
            case UnmatchedRows(table=table):
                rows = self.rows[table.stage]
                return StagePlacement(rows, rows), NOWHERE
            case SortRows() | SliceRows() | ConcatRows() | RankEncode() | RankDecode() | DistinctRows():
                gathers = self._gathered(stage_inputs(work))
                return StagePlacement("part" if gathers else "whole", "whole", gathers=gathers), NOWHERE
            case _:
                assert_never(work)


def _own_keys(sink: Sink, located: Located) -> tuple[tuple[int, CutKeys], ...]:
    """The keys of an array over encoded keys, by position, that are located."""
    match sink:
        case Build(table) if table.layout == "direct-address":
            ids = [k.id for k in table.keys]
        case Group(layout="direct-address", keys=keys):
            ids = [e.id if isinstance(e, Column) else -1 for _, e, _ in keys]
        case _:
            return ()
    return tuple([(n, located[i]) for n, i in enumerate(ids) if i in located])


def _may_lie_together(sink: Sink) -> bool:
    return isinstance(sink, Build) or (isinstance(sink, Group) and bool(sink.sparse))


def _is_mergeable(table: JoinTable) -> bool:
    """Whether tables of the parts of the rows are one when they are put on each other: arrays over the keys with nothing behind
    them, whose slots no two ranks set."""
    needs_no_rows = table.exists or (table.unique and table.inline_payload is not None)
    return table.layout == "direct-address" and needs_no_rows


def _only(located: Located, columns: Sequence[int]) -> Located:
    return {i: located[i] for i in columns if i in located}


def _is_of_segments(step: Step) -> bool:
    return isinstance(step, SegmentHeads | SegmentRows)


def _splits_segments(work: Pipeline, located: Located) -> bool:
    """Whether the rows of a segment might lie on two ranks."""
    return any(step.key.column.id not in located for step in work.steps if isinstance(step, SegmentHeads | SegmentRows))
