"""What lowering makes streams and stages of: scans, fused steps, sinks, frames. `lower` decides which, operator by operator.

The modules of joins, groups, whole frames and calls on the host work on a `Lowering`; so it knows none of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

from gquery import tuning
from gquery.columns.table import ColumnData, Dictionary, TableSource
from gquery.device.profile import DeviceProfile
from gquery.expression.expr import Column, Expr, new_column
from gquery.expression.facts import ROW_ID_BITS, UNBOUNDED
from gquery.expression.traverse import conjunction, conjuncts
from gquery.expression.types import BIGINT, Bounds, DType
from gquery.kernels.bindings import NeedsHostError
from gquery.kernels.bodies import has_body
from gquery.kernels.dictionaries import code_properties
from gquery.kernels.values import ValueProperties, opaque_properties, value_properties
from gquery.planner.logical.cardinality import Estimator
from gquery.planner.logical.nodes import (
    Plan,
    Query,
    Scan,
    Shared,
)
from gquery.planner.logical.shared import scans
from gquery.planner.lower_stream import Stream, sink_weight, stored_of
from gquery.planner.physical import (
    Build,
    Compute,
    FilterRows,
    JoinTable,
    Materialize,
    Pipeline,
    PipelineBreaker,
    Program,
    RankEncode,
    RankOf,
    ReadStage,
    ReadTable,
    Sink,
    SliceRows,
    Stage,
    Stored,
)
from gquery.planner.stage_columns import stage_columns
from gquery.runtime.records import replace


class Lowering(ABC):
    """One query on its way to a program for ``target`` (the name of the target that compiled pipelines run on), planned for
    the sizes of ``profile``."""

    def __init__(self, target: str, profile: DeviceProfile) -> None:
        self.target = target
        self.profile = profile
        self.stages: list[Stage] = []
        self.estimator = Estimator()
        self._tables: dict[int, tuple[TableSource, dict[int, ColumnData]]] = {}
        self._known: dict[tuple[int, int], ValueProperties] = {}  # by source and field: a query may scan a table often
        self.shared: dict[int, Stream] = {}  # by definition: its rows, under the columns of the definition

    @abstractmethod
    def plan(self, plan: Plan, wanted: frozenset[int]) -> Stream:
        """The stream of a plan; ``wanted`` are the columns that are used above it."""

    @abstractmethod
    def round_program(self, step: Query, number: int, columns: tuple[Stored, ...]) -> Program:
        """The program of a round of the recursion of that number."""

    @abstractmethod
    def on_host(self, stream: Stream, exprs: tuple[tuple[Column, Expr], ...]) -> Stream:
        """The stream with columns whose expressions no kernel can compute."""

    # ---- sources ----

    def load(self, plan: Plan) -> None:
        """Load the columns that the query touches, one call a table."""
        wanted: dict[int, tuple[TableSource, set[int]]] = {}
        for scan in scans(plan):
            wanted.setdefault(id(scan.source), (scan.source, set()))[1].update(scan.fields)
        for key, (source, fields) in wanted.items():
            order = sorted(fields)
            table = source.load(order)
            self._tables[key] = (source, dict(zip(order, table.columns, strict=True)))

    def estimate(self, plan: Plan) -> float:
        """How many rows a plan has by the estimator, 1 at least."""
        return max(1.0, self.estimator.rows(plan))

    def scan(self, plan: Scan) -> Stream:
        source, loaded = self._tables[id(plan.source)]
        stored = []
        for column, position in zip(plan.columns, plan.fields, strict=True):
            data = loaded[position]
            known = self._known.get((id(source), position))
            if known is None:
                known = self._known[id(source), position] = properties_of(data, column.dtype)
            stored.append(Stored(column, known, data.physical_type))
        rows = next(iter(loaded.values())).length if loaded else source.rows
        read = ReadTable(source, plan.fields, tuple(stored))
        return Stream(read, {s.column.id: s.properties for s in stored}, rows, rows, rows)

    def use(self, plan: Shared) -> Stream:
        """The rows of a definition under the names of one use and no others: two uses may meet in a join."""
        made = self.shared[plan.definition.number]
        source = made.source
        assert isinstance(source, ReadStage)
        at = {s.column.id: (s, o) for s, o in zip(source.columns, source.origins, strict=True)}
        found = [at[c.id] for c in plan.outputs]
        stored = tuple(Stored(c, s.properties, s.physical_type) for c, (s, _) in zip(plan.columns, found, strict=True))
        read = ReadStage(source.stage, stored, tuple(o for _, o in found))
        rows = self.estimate(plan)
        known = {s.column.id: s.properties for s in stored}
        return Stream(read, known, int(min(rows, UNBOUNDED)), rows, made.limit)

    # ---- fused steps ----

    def filter(self, stream: Stream, predicate: Expr, rows: float | None = None) -> Stream:
        selectivity = min(1.0, stream.rows / max(stream.source_rows, 1))
        terms = conjuncts(predicate)
        most = tuning.kernel_texts.nested_terms
        if len(terms) > most:  # each is a block inside the one before
            terms = (*terms[: most - 1], conjunction(terms[most - 1 :]))
        for term in terms:
            selectivity *= self.estimator.selectivity(term)
            if not (has_body(term) or self._is_rendered(stream, term)):
                column = new_column("condition", term.dtype)
                stream, term = self.on_host(stream, ((column, term),)), column
            stream = stream.then(FilterRows(term, selectivity))
        return replace(stream, rows=min(stream.rows, rows if rows is not None else stream.rows))

    @staticmethod
    def _is_rendered(stream: Stream, e: Expr) -> bool:
        """Whether a kernel can compute an expression: by rendering it."""
        try:
            stream.describe(e)
        except NeedsHostError:
            return False
        return True

    def compute(self, stream: Stream, exprs: Sequence[tuple[Column, Expr]]) -> Stream:
        """New columns. Plain renames of stored columns become further names of the source's columns."""
        renamed = [(c, e) for c, e in exprs if isinstance(e, Column) and c.id != e.id]
        stream = self._rename(stream, renamed)
        rest, host = [], []
        if not all(c.id in stream.columns for c, _ in exprs):
            stream = stream.with_own_columns()
        for c, e in exprs:
            if c.id in stream.columns:
                continue
            try:
                stream.columns[c.id] = stream.describe(e)
                rest.append((c, e))
            except NeedsHostError:
                host.append((c, e))
        if rest:
            stream = stream.then(Compute(tuple(rest)))
        for c, _ in exprs:
            stream.by_id[c.id] = c
        return self.on_host(stream, tuple(host)) if host else stream

    def _rename(self, stream: Stream, pairs: Iterable[tuple[Column, Expr]]) -> Stream:
        source = stream.source
        if not isinstance(source, ReadTable | ReadStage):
            return stream
        at = {s.column.id: n for n, s in enumerate(source.columns)}
        columns = dict(stream.columns)
        indices: list[int] = []
        made: list[Stored] = []
        for new, old in pairs:
            assert isinstance(old, Column)
            if (n := at.get(old.id)) is None or new.id in columns:
                continue
            stored = Stored(new, source.columns[n].properties, source.columns[n].physical_type)
            indices.append(n)
            made.append(stored)
            columns[new.id] = stored.properties
        if not made:
            return stream
        all_columns = (*source.columns, *made)
        if isinstance(source, ReadTable):
            fields = (*source.fields, *[source.fields[n] for n in indices])
            return replace(stream, source=replace(source, fields=fields, columns=all_columns), columns=columns)
        origins = (*source.origins, *[source.origins[n] for n in indices])
        return replace(stream, source=replace(source, origins=origins, columns=all_columns), columns=columns)

    # ---- stages ----

    def stage(self, work: Pipeline | PipelineBreaker, label: str) -> int:
        self.stages.append(Stage(len(self.stages), work, label))
        return len(self.stages) - 1

    def sink(self, stream: Stream, sink: Sink, label: str, host: str | None = None) -> int:
        """End a stream in a sink."""
        work = int(min(stream.work + stream.source_rows + stream.rows * sink_weight(sink), UNBOUNDED))
        return self.stage(Pipeline(stream.source, stream.steps, sink, stream.source_rows, work, host), label)

    def read(self, stage: int, columns: Sequence[Column], rows: float, limit: int | None) -> Stream:
        """A stream that reads a stage's frame."""
        made = {s.column.id: s for s in stage_columns(self.stages[stage].work)}
        stored = tuple(made[c.id] for c in columns)
        source = ReadStage(stage, stored, tuple(c.id for c in columns))
        known = {s.column.id: s.properties for s in stored}
        return Stream(source, known, int(min(rows, UNBOUNDED)), rows, limit, by_id={c.id: c for c in columns})

    def materialized(
        self,
        stream: Stream,
        columns: Sequence[Column],
        label: str,
        host: str | None = None,
        plain: bool = False,
        enough: int | None = None,
    ) -> Stream:
        """The stream as a frame of these columns: itself if it reads such a frame and does nothing more. ``plain`` reads
        dictionary strings as text. With ``enough`` the first so many rows will do."""
        columns = tuple({c.id: c for c in columns}.values())
        if isinstance(stream.source, ReadStage) and not stream.steps and host is None and not plain:
            if all(c.id in stream.columns for c in columns):
                return stream
        stored = []
        for c in columns:
            known = stream.columns[c.id]
            if plain and isinstance(known.dictionary, Dictionary):
                known = ValueProperties(known.dtype, None, known.nullable)
            stored.append(Stored(c, known, known.physical_type))
        number = self.sink(stream, Materialize(tuple(stored), ordered=True, limit=enough), label, host)
        return self.read(number, columns, stream.rows, stream.limit)

    def renamed_frame(self, stream: Stream) -> int:
        """The number of a stage whose frame has the stream's columns under their own ids."""
        source = stream.source
        assert isinstance(source, ReadStage)
        if all(s.column.id == o for s, o in zip(source.columns, source.origins, strict=True)):
            return source.stage
        return self.stage(SliceRows(source.stage, source.columns, source.origins, None, 0), "rename")

    def rank_encoded(
        self, stream: Stream, number: int, ranked: Sequence[Column], extremes: bool, alone: bool
    ) -> tuple[int, dict[int, Column]]:
        """A frame with a column of ranks beside some columns, and these by column; see `RankEncode`."""
        stored = {s.column.id: s for s in stored_of(stream)}
        ranks = tuple((stored[c.id], new_column(f"rank of {c.name}", BIGINT, c.nullable)) for c in ranked)
        most = 2 if extremes else stream.limit
        known = [rank_properties(s.properties, most) for s, _ in ranks]
        codes = tuple(Stored(code, k, k.physical_type) for (_, code), k in zip(ranks, known, strict=True))
        kept = tuple(s for s, _ in ranks) if alone else tuple(stored.values())
        work = RankEncode(number, ranks, kept + codes, extremes, alone)
        return self.stage(work, "rank values"), {s.column.id: code for s, code in ranks}

    def rank_within_groups(
        self, stream: Stream, number: int, keys: Sequence[Column], ranked: Sequence[tuple[Column, RankOf]], alone: bool
    ) -> tuple[int, list[Column]]:
        """A frame with a column of codes for each of the extremes of groups that are asked for, and these; see `RankEncode`."""
        stored = {s.column.id: s for s in stored_of(stream)}
        pairs = tuple((stored[c.id], new_column(f"rank of {c.name}", BIGINT, c.nullable)) for c, _ in ranked)
        known = [rank_properties(s.properties, stream.limit) for s, _ in pairs]
        codes = tuple(Stored(code, k, k.physical_type) for (_, code), k in zip(pairs, known, strict=True))
        within = tuple(how for _, how in ranked)
        work = RankEncode(number, pairs, (*stored.values(), *codes), alone=alone, keys=tuple(keys), within=within)
        return self.stage(work, "rank values of groups"), [code for _, code in pairs]

    def build(self, stream: Stream, table: JoinTable, label: str) -> int:
        """End a stream in a join table."""
        return self.sink(stream, Build(table), label)


def properties_of(data: ColumnData, dtype: DType) -> ValueProperties:
    """What is known of the values of a column that is loaded."""
    nullable = data.validity is not None
    if isinstance(data.dictionary, Dictionary):
        return code_properties(data.dictionary, nullable)
    if data.dictionary is not None:
        return opaque_properties(dtype, data.dictionary, nullable)
    return value_properties(dtype, data.statistics.bounds, nullable)


def rank_properties(what: ValueProperties, limit: int | None) -> ValueProperties:
    """What is known of the ranks of values."""
    return ValueProperties(BIGINT, Bounds(0, max(limit if limit is not None else 1 << ROW_ID_BITS, 1)), what.nullable)
