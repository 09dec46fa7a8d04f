"""Materialize: a pipeline's rows become a frame, in the order of its source.

Where every row of the source gives exactly one (*dense*), a row's slot is its index. Where no row gives more than one, each
morsel of a CPU writes from its own first row on, and its gaps are closed behind it (per-morsel compaction). A GPU marks the
rows to keep in a *selection bitmap*, a word a warp; a second kernel, which need not test again, writes each row where the bits
before it say. Else one kernel counts the rows, and a second one writes them (*count, then scatter*): on a GPU counts are kept
for each row, and only those of groups of rows are scanned; on a CPU they are kept for each unit of rows. Where few rows are
expected, a CPU speculates that no morsel gives more rows than it has, and compacts them as above, in one kernel
(*bounded compaction*); it counts those that find no room, and the pipeline runs again if there are any.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import field
from typing import Literal, assert_never

from gquery import tuning
from gquery.columns.table import ColumnData
from gquery.device.array import Array
from gquery.device.device import Device
from gquery.expression.facts import BITMAP_BITS
from gquery.expression.types import PhysicalType
from gquery.kernels import ir
from gquery.kernels.bindings import SinkName, StatePart
from gquery.kernels.builtin import gathers, scans
from gquery.kernels.builtin.gathers import Pieces
from gquery.kernels.code import Code
from gquery.kernels.convert import convert
from gquery.kernels.kernel import ElementType
from gquery.kernels.readback import Count
from gquery.kernels.stored import element_type, store, store_call
from gquery.kernels.values import Value
from gquery.operators.base import Frame, Launch, SinkRun, SinkState, make_column, words_a_row
from gquery.operators.pieces import TOO_MANY, close_gaps, pieces_of
from gquery.planner.logical.nodes import JoinKind
from gquery.planner.logical.tree import used_columns
from gquery.planner.physical import (
    AggregateSegment,
    Compute,
    FilterRows,
    Materialize,
    Pipeline,
    Probe,
    SegmentHeads,
    SegmentRows,
    Step,
    Stored,
)
from gquery.planner.segments import SegmentSteps, segment_steps
from gquery.planner.step_columns import columns_read
from gquery.runtime.records import dataclass, replace

POSITION = ir.Name("pos")  # where the next row of the result is written
_COUNT = ir.Name("n")  # of rows that are kept
Mode = Literal["dense", "compact_morsels", "bounded_morsels", "selection_bitmap", "count_then_scatter"]


def materialize_mode(steps: Sequence[Step], by_row: bool, few: bool = False) -> Mode:
    """How the rows of a pipeline find their positions; ``few`` is the sink's."""
    if any(fans_out(s) for s in steps):
        return "bounded_morsels" if few and not by_row else "count_then_scatter"
    if not any(drops_rows(s) for s in steps):
        return "dense"
    return "selection_bitmap" if by_row else "compact_morsels"


def drops_rows(step: Step) -> bool:
    """Whether there may be rows that a step does not pass on. The rows of a segment are one row, which is passed on."""
    match step:
        case FilterRows() | SegmentHeads():
            return True
        case Probe(kind=kind, always=always):
            return kind in (JoinKind.INNER, JoinKind.SEMI, JoinKind.ANTI) and not always
        case Compute() | SegmentRows() | AggregateSegment():
            return False
        case _:
            assert_never(step)


def fans_out(step: Step) -> bool:
    """Whether a step may pass a row on several times."""
    if not isinstance(step, Probe) or step.always or step.table.unique or step.table.layout == "one":
        return False
    return step.kind in (JoinKind.INNER, JoinKind.LEFT, JoinKind.FULL)


def selectivity(steps: Sequence[Step]) -> float:
    """The estimated share of a source's rows that get past all steps."""
    return min((s.selectivity for s in steps if not isinstance(s, Compute | SegmentRows)), default=1.0)


def speculate_few(pipeline: Pipeline, rows: int) -> Pipeline:
    """A pipeline over so many rows, few of which it is expected to materialize: FannedOutError where a morsel gives more rows
    than it has."""
    sink, limits = pipeline.sink, tuning.materialization
    if not isinstance(sink, Materialize) or rows < limits.bounded_least_rows:
        return pipeline
    left = [s.selectivity for s in pipeline.steps if not isinstance(s, Compute | SegmentRows)]
    if not left or left[-1] > limits.bounded_selectivity or materialize_mode(pipeline.steps, False) == "dense":
        return pipeline
    return replace(pipeline, sink=replace(sink, few=True))


def roles(mode: Mode) -> tuple[str, ...]:
    """The kernels of a materialize, one after another."""
    return ("count", "write") if mode in ("selection_bitmap", "count_then_scatter") else ("main",)


def steps_again(steps: tuple[Step, ...], wanted: frozenset[int]) -> tuple[Step, ...]:
    """The steps for rows of which it is known that they get past all of them: what is left makes the columns ``wanted``."""
    needed = set(wanted)
    kept: list[Step] = []
    if (segment := segment_steps(steps)) is not None:
        return _segment_again(segment, wanted)
    for step in reversed(steps):
        match step:
            case FilterRows() | SegmentHeads():
                continue
            case Compute(exprs):  # what nobody asks for may use columns of steps that are left out
                exprs = tuple((c, e) for c, e in exprs if c.id in needed)
                if not exprs:
                    continue
                step = Compute(exprs)
                needed.update(i for _, e in exprs for i in used_columns(e))
            case Probe():
                made = {c.id for c in (*step.payload, *(s.column for s in step.table.columns))}
                made |= set() if step.mark is None else {step.mark.id}
                if not made & needed and not step.records_matches:
                    continue
                if step.kind is JoinKind.INNER:  # the key is there, so its filter has no more to say
                    step = replace(step, residual=None, filter=None, always=True)
                needed |= columns_read((step,))
            case SegmentRows() | AggregateSegment():
                raise AssertionError("a segment is one of the steps")
            case _:
                assert_never(step)
        kept.append(step)
    return tuple(reversed(kept))


def _segment_again(segment: SegmentSteps, wanted: frozenset[int]) -> tuple[Step, ...]:
    """The same for steps that aggregate segments: the rows of a segment are aggregated again, if results are asked for."""
    after = steps_again(segment.after, wanted)
    needed = wanted | columns_read(after)
    block: tuple[Step, ...] = ()
    if needed & {c.id for c, _ in segment.aggregate.aggregates}:
        block = segment.block
        needed |= columns_read(block)
    return steps_again(segment.heads, needed) + block + after


# ---- text -----------------------------------------------------------------------------------------------------------


def begin(mode: Mode, role: str, by_row: bool, code: Code) -> None:
    """The lines before a row's steps (by row) or before the loop."""
    if mode == "dense":
        return
    zero = code.integer(0)
    match mode, role:
        case "selection_bitmap", "count":
            code.set(ir.MARK, ir.FALSE)
        case "selection_bitmap", _:
            word, end = code.let(_of_word("bits", "u32", code)), code.let(_of_word("ends", "i64", code))
            code.hoisted.update((word, end))
            code.open_if(code.call("bit_at", word, ir.ROW))
            code.set(POSITION, code.call("sub_i64", end, code.call("bits_from", word, ir.ROW)))
        case _, "count":
            (code.body if by_row else code.prologue).append(ir.Let(_COUNT, zero))
        case (("compact_morsels" | "bounded_morsels"), _):
            code.prologue.append(ir.Let(POSITION, code.call("i64", ir.LOW)))
        case _ if by_row:
            starts, counts = (
                code.pointer("i64", StatePart("starts"), "s"),
                code.pointer("u32", StatePart("counts"), "s"),
            )
            # most rows write nothing
            code.open_if(code.call("gt_i64", code.call("i64", ir.Load(counts, ir.ROW)), zero))
            code.set(POSITION, code.call("place_of_row", starts, counts, ir.ROW))
        case _:
            starts = code.pointer("i64", StatePart("starts"), "s")
            code.prologue.append(ir.Let(POSITION, code.call("i64", ir.Load(starts, _unit(code)))))


def _of_word(part: SinkName, type_: ElementType, code: Code) -> ir.Expression:
    """What an array says of the row's word of the bitmap: its bits, or the number of bits set up to its end."""
    return code.call("i64", ir.Load(code.pointer(type_, StatePart(part), "s"), code.call("word_index", ir.ROW)))


def emit(sink: Materialize, mode: Mode, role: str, code: Code) -> None:
    """The lines that take one row."""
    one = code.integer(1)
    if role == "count":
        if mode == "selection_bitmap":
            code.set(ir.MARK, ir.TRUE)
        else:
            code.set(_COUNT, code.call("add_i64", _COUNT, one))
        return
    position = ir.ROW if mode == "dense" else POSITION
    has_room = code.call("lt_i64", POSITION, code.call("i64", ir.HIGH))
    with code.when(has_room) if mode == "bounded_morsels" else nullcontext():
        for k, stored in enumerate(sink.columns):
            value = convert(code.column(stored.column), stored.properties, code)
            _store_value(k, stored, value, position, code)
    if mode not in ("dense", "selection_bitmap"):
        code.set(POSITION, code.call("add_i64", POSITION, one))


def _store_value(k: int, stored: Stored, value: Value, position: ir.Name, code: Code) -> None:
    data = code.pointer(element_type(stored.physical_type), StatePart("data", k), "o")
    if stored.properties.nullable:
        validity = code.pointer("u8", StatePart("validity", k), "o")
        if value.ok is None:
            code.do(code.call("store_u8", validity, position, code.integer(1)))
        else:
            code.do(code.call("store_bool", validity, position, value.ok))
            zero, where = code.zero(stored.properties.register), (code, stored.physical_type, data, position)
            code.do_either(value.ok, store_call(*where, value.var), store_call(*where, zero))
            return
    store(code, stored.physical_type, data, position, value.var)


def end(mode: Mode, role: str, by_row: bool, code: Code) -> None:
    """The lines behind a row's steps (by row) or behind the loop."""
    if mode == "dense":
        return
    if mode == "selection_bitmap":
        if role == "count":
            _emit_ballot(code)
        else:
            code.close()
        return
    if role == "count":
        if by_row:
            code.do(code.call("store_u32", code.pointer("u32", StatePart("counts"), "s"), ir.ROW, _COUNT))
        else:
            counts = code.pointer("i64", StatePart("counts"), "s")
            code.epilogue.append(ir.Store(code.call("store_i64", counts, _unit(code), _COUNT)))
    elif mode in ("compact_morsels", "bounded_morsels"):
        counts = code.pointer("i64", StatePart("counts"), "s")
        taken = code.call("sub_i64", POSITION, code.call("i64", ir.LOW))
        note = ir.Store(code.call("store_i64", counts, _unit(code), taken))
        if mode == "compact_morsels":
            code.epilogue.append(note)
        else:
            fits = code.call("le_i64", POSITION, code.call("i64", ir.HIGH))
            too_many = ir.Store(code.call("store_i64", counts, _unit(code), code.integer(TOO_MANY)))
            code.epilogue.append(ir.If(fits, (note,), (too_many,)))
    elif by_row:
        code.close()


def _emit_ballot(code: Code) -> None:
    """A warp's lanes have 32 neighbouring rows, as the first row of a launch is a multiple of 32: one lane stores their word.
    All lanes vote, so that stands behind every branch."""
    word = code.let(code.call("ballot", code.call("members", ir.ROW, ir.HIGH), ir.MARK))
    bits = code.pointer("u32", StatePart("bits"), "s")
    with code.when(code.call("eq_i64", code.call("lane"), code.integer(0))):
        code.do(code.call("store_u32", bits, code.call("word_index", ir.ROW), word))


def _unit(code: Code) -> ir.Expression:
    """The number of the unit that this call's first row begins."""
    return code.call("row_index", code.call("div_i64", code.call("i64", ir.LOW), code.scalar(StatePart("unit"))))


# ---- run time -------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class MaterializeState(SinkState):
    """Where rows go, on the run's device, and the columns that kernels write. `finalize` hands the columns to the frame."""

    unit: int  # rows that one count covers, where counts are not kept for each row
    bits: Array | None = None  # uint32, a bit a row: which rows are kept
    ends: Array | None = None  # int64: how many bits are set up to the end of each word
    counts: Array | None = None  # rows that come out of a row (uint32) or of a unit (int64)
    starts: Array | None = None  # int64: where they are written
    data: list[Array] = field(default_factory=list)  # of each column, in its physical type
    validity: list[Array | None] = field(default_factory=list)  # of each column, uint8; None where none can be NULL


class MaterializeRun(SinkRun[MaterializeState]):
    """The frame under construction; all workers write into one."""

    shared = True

    def __init__(
        self,
        sink: Materialize,
        mode: Mode,
        launch: Launch,
        label: str,
        selectivity: float,
        number: Array | None,
    ) -> None:
        """``number`` is that of the frame that the launch is over (see `Frame`)."""
        super().__init__(launch, label)
        self.sink = sink
        self.mode = mode
        self.is_sparse = (
            mode in ("compact_morsels", "bounded_morsels") and selectivity < tuning.materialization.sparse_selectivity
        )
        self.roles = roles(mode)
        self.count = Count(launch.rows, number)

    def make_state(self) -> MaterializeState:
        """What the first kernel writes: counts, or a bitmap, or at once the columns."""
        state = MaterializeState(self.launch.unit)
        rows, by_row = self.launch.rows, self.launch.by_row
        match self.mode:
            case "selection_bitmap":
                assert self.launch.unit % BITMAP_BITS == 0, "partitions would share a word"
                make = self.device.empty if self.count.number is None else self.device.zeros
                state.bits = make(-(-rows // BITMAP_BITS), "uint32", self.label)
            case "count_then_scatter" if by_row:
                state.counts = scans.zeros_by_row(rows, self.device, self.label)
            case "count_then_scatter" | "compact_morsels" | "bounded_morsels":
                state.counts = self.device.zeros(rows // self.launch.unit + 1, "int64", self.label)
            case "dense":
                pass
        if "write" not in self.roles:
            self._columns(state, rows)
        return state

    def after(self, role: str) -> None:
        """Between two kernels: makes positions of what the first one counted, and allocates the columns."""
        if role != "count":
            return
        (state,) = self.states
        if self.mode == "selection_bitmap":
            assert state.bits is not None
            state.ends, self.count = scans.bits_up_to(state.bits, self.launch.rows)
        else:
            assert state.counts is not None
            scan = scans.starts_by_row if self.launch.by_row else scans.exclusive_scan
            state.starts, self.count = scan(state.counts)
        self._columns(state, self.count.bound)

    def _columns(self, state: MaterializeState, rows: int) -> None:
        make = self.device.empty_sparse if self.is_sparse else self.device.empty_spillable
        for stored in self.sink.columns:
            words = rows * words_a_row(stored.physical_type)
            if stored.physical_type is PhysicalType.VIEW and self.count.number is not None:
                make = self.device.zeros  # behind the last row stand empty texts
            state.data.append(make(words, stored.physical_type.numpy, self.label))
            state.validity.append(make(rows, "uint8", self.label) if stored.properties.nullable else None)

    def finalize(self) -> Frame:
        """The frame of the rows that were written, in their order; its columns own what is left of the arrays. FannedOutError
        where a morsel gave more rows than it has."""
        (state,) = self.states
        pieces: Pieces | None = None
        if self.mode in ("compact_morsels", "bounded_morsels"):
            assert state.counts is not None
            pieces = pieces_of(self.device.to_host(state.counts), self.launch.unit)
            self.count = Count(sum([n for _, n in pieces]))
        rows = self.count.bound
        columns: dict[int, ColumnData] = {}
        device, workers = self.device, self.launch.workers
        state.data.reverse()
        for stored, flags in zip(self.sink.columns, state.validity, strict=True):
            data, validity = state.data.pop(), None
            if flags is not None:
                validity = close_gaps(flags, pieces, 1, device, self.label, workers)
            if stored.physical_type is PhysicalType.VIEW:
                views = make_column(stored.properties, stored.physical_type, data, validity, rows, device)
                columns[stored.column.id] = gathers.gather_views(views, device, workers, pieces)
                continue
            data = close_gaps(data, pieces, words_a_row(stored.physical_type), device, self.label, workers)
            columns[stored.column.id] = make_column(
                stored.properties, stored.physical_type, data, validity, rows, device
            )
        return Frame(columns, rows, number=self.count.number)


def contiguous(column: ColumnData, device: Device, workers: int = 1) -> ColumnData:
    """A column of string views as offsets and characters of its own; any other as it is."""
    if column.physical_type is not PhysicalType.VIEW:
        return column
    return gathers.gather_views(column, device, workers)
