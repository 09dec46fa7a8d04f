"""Placement: which rows each rank has of what the stages of a program read and make.

All ranks run the same stages. A stage runs over a rank's *part* of the rows or over the *whole* of them. Parts lie in rank order:
those of all ranks one after another are the rows in their order. Where a stage needs more than its part, the ranks exchange:

- *hash*: the rows of both sides of a join go to the ranks by the hash of their keys (`distributed.divide_joins` says of which),
  and so do those of a window or of groups in an order, by what partitions them;
- *gather*: every rank gets all rows of an earlier stage's frame (what a join table is built of, what is sorted);
- *merge*: the states of aggregates become one, which every rank has, and so do join tables that are arrays over their keys and
  need no rows behind them. Of large states of groups each rank gets and merges a *part* alone, by the hash of their keys, or by
  the cut of a table that they are joined with later;
- nothing, where the rows that belong together lie on one rank: tables that are joined on sorted columns are cut at the same
  keys (`distributed.cuts`), so that a row and its matches lie together, and so do the rows of a group.

A column that says on which rank a row lies is *located*: all rows of one of its values are on one rank.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import assert_never

from gquery.distributed.agreement import agreeing
from gquery.distributed.cuts import table_reads
from gquery.distributed.hashed_source import hashed_columns, hashed_rows
from gquery.distributed.kept_together import (
    has_located_key,
    is_mergeable,
    is_of_segments,
    may_lie_together,
    met_keys,
    only,
    own_keys,
    set_apart,
    splits_segments,
    state_bytes,
)
from gquery.distributed.located import (
    NOWHERE,
    ChosenKeys,
    HashKeys,
    Located,
    MadeBy,
    hashed_by,
    is_located,
    lie_together,
    wished,
)
from gquery.distributed.merged_builds import merging_pays
from gquery.distributed.ranks import Ranks
from gquery.distributed.row_bytes import has_few_rows, input_bytes
from gquery.distributed.slots_cost import sending_slots_pays, slices
from gquery.distributed.stage_placement import HashedRows, Placement, Rows, StagePlacement
from gquery.errors import InternalError
from gquery.expression.expr import Column
from gquery.operators.cut_keys import CutKeys, GroupParts
from gquery.operators.merge_groups import merges_slots
from gquery.operators.scan_ranges import unwidened
from gquery.planner.cut_pipeline import is_in_order
from gquery.planner.logical.nodes import JoinKind
from gquery.planner.partition_keys import partition_keys
from gquery.planner.physical import (
    Build,
    ByHash,
    Compute,
    ConcatRows,
    DistinctRows,
    Group,
    HostRows,
    JoinTable,
    Materialize,
    OrderedGroups,
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
    RecursiveRows,
    Reduce,
    RoundRows,
    SliceRows,
    SortRows,
    Source,
    Stage,
    Step,
    Stored,
    UnmatchedRows,
    UnnestRows,
    WindowRows,
)
from gquery.planner.stage_columns import makes_lists
from gquery.planner.stage_inputs import stage_inputs
from gquery.runtime.records import replace


def place(program: Program, located: Callable[[ReadTable], Located | None], ranks: Ranks) -> Placement:
    """The placement of a program's stages. ``located`` gives the located columns of a table that is cut, None for one that every
    rank has whole."""
    together = frozenset(
        s.number for s in program.stages if isinstance(s.work, Pipeline) and may_lie_together(s.work.sink)
    )
    if all(located(read) is None for read in table_reads(program)):
        ranks = ranks.without_tables()
    wishes: dict[int, GroupParts] = {}
    while True:
        placing = _Placing(program.stages, together, located, ranks, wishes)
        placed = tuple([placing.stage(stage) for stage in program.stages])
        if placing.wishes:
            wishes = {**placing.wishes, **wishes}
            continue
        if not placing.apart:
            return agreeing(program, placed)
        if not placing.apart & together:
            raise InternalError(f"what stages {sorted(placing.apart)} make lies on no rank as a whole")
        together -= placing.apart


class _Placing:
    """One way through the stages of a program. ``together`` are the join tables that are taken to have all matches of a rank's
    rows on that rank, and the sparse groups that are taken to be read on the rank of their rows alone; those for which a stage
    shows that this is wrong are ``apart`` in the end."""

    def __init__(
        self,
        stages: Sequence[Stage],
        together: frozenset[int],
        located: Callable[[ReadTable], Located | None],
        ranks: Ranks,
        granted: Mapping[int, GroupParts],
    ) -> None:
        self.stages = stages
        self.together, self.located_of, self.ranks, self.granted = together, located, ranks, granted
        self.wishes: dict[int, GroupParts] = {}  # by the stage of groups where a later stage would have them lie
        self.apart: set[int] = set()
        self.rows: dict[int, Rows] = {}  # by stage, what it makes
        self.located: dict[int, Located] = {}
        self.by_hash: ByHash | None = None  # of the stage at hand, where it probes what `hashed` built
        self.hashed: dict[int, ByHash] = {}  # of earlier stages that build
        self.parts: dict[int, GroupParts] = {}  # by stage, groups of which each rank merges a part
        self.sparse: dict[
            int, CutKeys | HashKeys
        ] = {}  # by stage, sparse groups of a rank's own: what locates their key
        self.met: tuple[tuple[int, int], ...] = ()  # of the stage at hand, see `StagePlacement.met_keys`

    def stage(self, stage: Stage) -> StagePlacement:
        """The placement of the next stage."""
        work = stage.work
        if isinstance(work, Pipeline):
            made, located = self._pipeline(work, stage.number)
        else:
            made, located = self._breaker(work, stage.number)
        self.rows[stage.number], self.located[stage.number] = made.makes, located
        return made

    # ---- pipelines ----

    def _pipeline(self, work: Pipeline, number: int) -> tuple[StagePlacement, Located]:
        self.by_hash, self.met = None, ()
        if isinstance(work.source, ReadStage) and work.source.by_hash is not None:
            if work.source.by_hash.probed == work.source.stage:
                self.by_hash = work.source.by_hash
            elif work.source.by_hash.probed is not None:
                self.hashed[number] = work.source.by_hash
        reads, located = self._source(work.source)
        if reads == "part" and (
            splits_segments(work, located)
            or not self._takes_parts(work, located, number)
            or self._is_too_small(work, located, number)
        ):
            reads, located = "whole", NOWHERE
        if reads == "whole" and self.ranks.cuts_frame(work) and self._can_cut(work):
            reads = "part"
        for step in work.steps:
            located = self._behind(step, reads, located)
        makes, merges, made = self._sink(work, reads, located, number)
        own = () if reads == "whole" or merges else own_keys(work.sink, located)
        missing = self._missing(work.source, reads)
        hashed = hashed_rows(work) if reads == "part" else None
        met = () if isinstance(work.source, ReadStage) and work.source.numbered is not None else self.met  # slots have no rows
        if not merges or not isinstance(work.sink, Group):
            ranges = set_apart(work.sink, located) if merges else None
            return StagePlacement(reads, makes, merges, missing, own, met, hashed=hashed, ranges=ranges), made
        size, parts = state_bytes(work.sink, work.rows), self.parts.get(number)
        return StagePlacement(reads, makes, merges, missing, (), met, parts, size, hashed), made

    def _source(self, source: Source) -> tuple[Rows, Located]:
        match source:
            case ReadTable():
                located = self.located_of(source)
                return ("whole", NOWHERE) if located is None else ("part", located)
            # slots are numbered alike on all ranks
            case ReadStage(stage, numbered=Stored(column=key)) if stage in self.sparse:
                return "part", {key.id: self.sparse[stage]}
            case ReadStage(stage, columns, origins, numbered):
                if source.by_hash is not None:
                    return "part", hashed_columns(source, source.by_hash)
                if self.rows[stage] == "whole" or numbered is not None:  # the number of a row is that among all
                    return "whole", NOWHERE
                below = self.located[stage]
                return "part", {s.column.id: below[o] for s, o in zip(columns, origins, strict=True) if o in below}
            case ReadRange() | ReadOne():
                return "whole", NOWHERE
            case _:
                assert_never(source)

    def _is_too_small(self, work: Pipeline, located: Located, number: int) -> bool:
        """Whether to gather the few rows of an earlier stage first takes no longer than to have each rank run over its part."""
        source = work.source
        if not isinstance(source, ReadStage) or source.by_hash is not None or source.stage in self.sparse:
            return False
        tables, limits = [s.table.stage for s in work.steps if isinstance(s, Probe)], self.ranks.limits
        if isinstance(work.sink, Build):
            lies_here = self._lies_together(work.sink.table, located, number)
        else:
            lies_here = isinstance(work.sink, Group) and has_located_key(work.sink, located)
        most = limits.gathered_located_rows if lies_here else limits.gathered_rows
        is_small = has_few_rows(self.stages[source.stage].work, most)
        return is_small and all(self.rows[n] == "whole" for n in tables)

    def _takes_parts(self, work: Pipeline, located: Located, number: int) -> bool:
        """Whether the sink of a pipeline can do with parts of the rows of its source."""
        match work.sink:
            case Build(table):
                if self._lies_together(table, located, number):
                    return True
                has_parts = any(isinstance(s, Probe) and self.rows[s.table.stage] == "part" for s in work.steps)
                return is_mergeable(table) and (has_parts or merging_pays(self.stages, work, table, self.ranks))
            case Group(layout="row-id hash") as sink:  # its keys are compared where they stand: in one frame
                return has_located_key(sink, located)
            case Materialize() | Reduce() | Group():
                return True
            case _:
                assert_never(work.sink)

    def _can_cut(self, work: Pipeline) -> bool:
        """Whether each rank can take a part of the rows of a frame that all have."""
        source = work.source
        if not isinstance(source, ReadStage) or source.numbered is not None:
            return False
        if any(map(is_of_segments, work.steps)):
            return False
        if isinstance(work.sink, Build):
            table = work.sink.table
            return is_mergeable(table) and merging_pays(self.stages, work, table, self.ranks, has_rows=True)
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
                self.met += met_keys(step, located, self.located[table.stage])
                return {**self.located[table.stage], **located} if step.kind is JoinKind.INNER else located
            case _:
                return located

    def _matches_lie_here(self, probe: Probe, located: Located) -> bool:
        """Whether all rows of a join table that a rank's rows match are on that rank: a key of both sides is located alike."""
        build, keys = self.located[probe.table.stage], tuple([k.id for k in probe.table.keys])
        own, other = self.by_hash, self.hashed.get(probe.table.stage)
        if own is not None and other is not None and (own.probed, other.keys) == (other.probed, keys):
            if own.keys == tuple([e.id for e in probe.keys if isinstance(e, Column)]):
                return True
        for key, column in zip(probe.keys, probe.table.keys, strict=True):
            e = unwidened(key)
            at, there = located.get(e.id) if isinstance(e, Column) else None, build.get(column.id)
            if at is not None and at == there:
                return True
            wish = wished(at, there)
            if wish is not None and wish[0].stage not in self.granted:
                self.wishes[wish[0].stage] = GroupParts(wish[0].position, wish[1])
        return False

    def _lies_together(self, table: JoinTable, located: Located, number: int) -> bool:
        """Whether a join table of a rank's rows is taken to have all matches of rows of that rank."""
        return number in self.together and (number in self.hashed or lie_together(located, [k.id for k in table.keys]))

    def _sink(self, work: Pipeline, reads: Rows, located: Located, number: int) -> tuple[Rows, bool, Located]:
        """What the sink makes, whether its states are merged, and the located columns of its frame."""
        match work.sink:
            case Materialize(columns=columns):
                return reads, False, only(located, [s.column.id for s in columns])
            case Build(table):
                if reads == "part" and not self._lies_together(table, located, number):
                    return "whole", True, NOWHERE
                return reads, False, only(located, [s.column.id for s in table.columns])
            case Reduce():
                return "whole", reads == "part", NOWHERE
            case Group(keys=keys) as sink:
                found = {c.id: located[e.id] for c, e, _ in keys if isinstance(e, Column) and is_located(located, e.id)}
                if found and sink.sparse and number in self.together:
                    (self.sparse[number],) = found.values()
                    return reads, False, NOWHERE
                if reads == "whole" or (found and not sink.sparse):
                    return reads, False, found
                names = {e.id: c.id for c, e, _ in keys if isinstance(e, Column)}
                if not sink.sparse and lie_together(located, tuple(names)):
                    return reads, False, {names[i]: at for i, at in located.items() if i in names}
                if self._is_parted(sink, work.rows, number):
                    return reads, True, self._parted(work, sink, reads, number)
                return "whole", True, NOWHERE
            case _:
                assert_never(work.sink)

    def _is_parted(self, sink: Group, rows: int, number: int) -> bool:
        """Whether each rank merges a part of the groups. Sparse ones are parted where they are read as they lie."""
        if merges_slots(sink) or any(c.dtype.is_opaque for c, _, _ in sink.keys):
            return False
        return state_bytes(sink, rows) >= self.ranks.limits.parted_bytes and (
            not sink.sparse or number in self.together
        )

    def _parted(self, work: Pipeline, sink: Group, reads: Rows, number: int) -> Located:
        """Choose where the parts of merged groups lie; the located columns of their frame."""
        columns = [c for c, _, _ in sink.keys]
        parts, by_slots = self.granted.get(number), sending_slots_pays(work, sink, reads, self.ranks)
        if parts is None and (sink.sparse or by_slots):
            parts = GroupParts(0, ChosenKeys(slices(sink, self.ranks.count), MadeBy(number, 0)))
        if parts is not None and parts.cut is not None and by_slots:
            parts = replace(parts, by_slots=True)
        self.parts[number] = parts = parts or GroupParts()
        if sink.sparse:
            assert parts.cut is not None
            self.sparse[number] = parts.cut
            return NOWHERE
        if parts.cut is not None:
            return {columns[parts.position].id: parts.cut}
        return hashed_by(columns, number)

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

    def _breaker(self, work: PipelineBreaker, number: int) -> tuple[StagePlacement, Located]:
        match work:
            case WindowRows() | OrderedGroups() if self._are_divided(work):
                return self._divided(work, number)
            case HostRows(source=source):
                reads, located = self._source(source)
                if makes_lists(work):  # whose numbers are those of one rank
                    gathers = self._missing(source, "whole")
                    return StagePlacement("whole", "whole", gathers=gathers), NOWHERE
                return StagePlacement(reads, reads, gathers=self._missing(source, reads)), located
            case RoundRows():
                return StagePlacement("whole", "whole"), NOWHERE
            case UnmatchedRows(table=table):
                rows = self.rows[table.stage]
                return StagePlacement(rows, rows), NOWHERE
            case (
                SortRows() | SliceRows() | ConcatRows() | RankEncode() | RankDecode() | WindowRows() | DistinctRows()
                | UnnestRows() | OrderedGroups() | RecursiveRows()
            ):  # fmt: skip
                gathers = self._gathered(stage_inputs(work))
                return StagePlacement("part" if gathers else "whole", "whole", gathers=gathers), NOWHERE
            case _:
                assert_never(work)

    def _are_divided(self, work: WindowRows | OrderedGroups) -> bool:
        """Whether each rank computes some of the partitions: it has a part of the rows, and nobody asks for their order."""
        if self.rows[work.stage] == "whole" or work.stage in self.sparse or not partition_keys(work):
            return False
        return isinstance(work, OrderedGroups) or not is_in_order(self.stages, ReadStage(work.stage, (), ()))

    def _divided(self, work: WindowRows | OrderedGroups, number: int) -> tuple[StagePlacement, Located]:
        """Rows go to ranks by the hash of what partitions them, unless the rows of a partition lie on one rank already."""
        keys, below = partition_keys(work), self.located[work.stage]
        if lie_together(below, [k.id for k in keys]):
            hashed, found = None, below
        else:
            hashed = HashedRows(work.stage, tuple([k.name for k in keys]), input_bytes(self.stages, work))
            found = hashed_by(keys, number)
        if isinstance(work, OrderedGroups):
            found = {new.id: found[source.id] for new, source in work.keys if source.id in found}
        return StagePlacement("part", "part", hashed=hashed), only(found, [s.column.id for s in work.columns])
