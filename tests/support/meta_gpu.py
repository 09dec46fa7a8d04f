"""Hot runs of a GPU that is not there, over tables of any number of rows: what a program does between its launches.

A run that is recorded must not copy from the GPU to the host, nor wait for it (`execution.recording`). Which of its ways it goes
depends on how many rows it meets, so they are tried at the sizes at which they are gone: tables are small ones that say that they
have more rows (`enlarged`), arrays are meta arrays, launches do nothing. `copies_of` gives what a recording would fail of.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import gquery
from gquery.columns.table import ColumnData, ColumnStatistics, Table, TableSource
from gquery.device import device as devices
from gquery.device.array import READ_AHEAD, Array
from gquery.device.buffer import Buffer
from gquery.device.device import Device
from gquery.device.profile import H200, get_profile
from gquery.device.recording import CannotRecordError
from gquery.execution import replay, speculation, template_recording, template_replay
from gquery.execution.program import _run
from gquery.execution.speculation import Speculation
from gquery.expression.types import Bounds, PhysicalType
from gquery.kernels import targets
from gquery.kernels.builtin import extremes, order_bits
from gquery.kernels.builtin.registry import builtin_kernels
from gquery.kernels.kernel import Kernel
from gquery.kernels.targets.base import Compiled, LaunchedKernel, Perhaps
from gquery.kernels.targets.cuda import CudaTarget
from gquery.operators import finalize, leading_rows
from gquery.runtime.records import replace
from tests.support import meta_arrays
from tests.support.meta_arrays import copies

GPU = Device("cuda")


class MetaTarget(CudaTarget):
    """Launches nothing. See `Target`."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: set[Kernel] = set()

    def is_ready(self, kernel: Kernel) -> bool:
        return True

    is_cached = is_ready

    def compile(self, kernel: Kernel) -> Compiled:
        self.loaded.add(kernel)
        return Compiled(kernel, lambda *_: None, "meta", 0.0, cached=True)

    def compile_many(self, kernels: Sequence[Kernel], perhaps: Perhaps = tuple) -> list[Compiled]:
        return [self.compile(k) for k in kernels]

    def begin(self, kernels: Iterable[Kernel], perhaps: Perhaps = tuple) -> None:
        self.compile_many(list(kernels), perhaps)

    def run(self, compiled: Compiled, lo: int, hi: int, arguments: Sequence[Any], shared_words: int = 0) -> None:
        if hi > lo and self._local.noted is not None:
            made = LaunchedKernel(compiled, (1, 1, 0), tuple(arguments), arguments, 1)
            self._local.noted.kernels.append(made)


TARGET = MetaTarget()


class MetaArena:
    """See `Arena`."""

    stream = meta_arrays.Place()

    @contextmanager
    def recording(self) -> Iterator[list[Any]]:
        with copies.recording():
            yield [None]

    def apart(self) -> Any:
        return copies.apart()

    def owns(self, array: Any) -> bool:
        return bool(array.data.mem.is_recorded)

    def copy(self, to: int, source: int, size: int) -> None:
        pass

    def add(self, holder: object) -> None:
        pass


ARENA: Any = MetaArena()


class MetaBuffer(Buffer):
    """Many elements that lie on the GPU; the host has none."""

    def __init__(self, length: int, dtype: Any) -> None:
        room = READ_AHEAD if dtype == np.uint8 else 0
        array: Any = meta_arrays.empty(length + room, dtype)[:length]
        super().__init__(array, GPU)

    def on(self, device: Device, context: str = "") -> Array:
        if device.is_cpu:
            copies.note("a column on the host")
            return np.zeros(self.length, self.dtype)
        return super().on(device, context)


class Enlarged:
    """A table that has ``factor`` times the rows; values that differ in all of them still do."""

    def __init__(self, table: TableSource, factor: int) -> None:
        self._table, self._factor = table, factor
        self.name, self.schema, self.version = table.name, table.schema, table.version
        self.rows = table.rows * factor
        self._columns: dict[int, ColumnData] = {}

    def statistics(self, field: int) -> ColumnStatistics:
        return self.load([field]).columns[0].statistics

    def has_nulls(self, field: int) -> bool:
        return self._table.has_nulls(field)

    def is_unique(self, field: int) -> bool:
        return self._table.is_unique(field)

    def load(self, fields: Sequence[int]) -> Table:
        for field in fields:
            if field not in self._columns:
                self._columns[field] = self._larger(self._table.load([field]).columns[0])
        schema = type(self.schema)(tuple(self.schema.fields[f] for f in fields))
        return Table(schema, tuple(self._columns[f] for f in fields), self.rows)

    def _larger(self, column: ColumnData) -> ColumnData:
        known, physical, words = column.statistics, column.physical_type, 1
        if known.bounds is not None and (known.is_unique or known.is_sorted) and column.dictionary is None:
            bounds = Bounds(known.bounds.low, known.bounds.low + known.bounds.width * self._factor - 1)
            known = replace(known, bounds=bounds, values=bounds)
            physical = next(t for t in (physical, PhysicalType.I32, PhysicalType.I64) if bounds.within(_bounds_of(t)))
        distinct = known.distinct and known.distinct * (self._factor if known.is_unique else 1)
        nulls = None if known.null_count is None else known.null_count * self._factor
        known = replace(known, distinct=distinct, null_count=nulls, zones=None)
        characters = None if column.characters is None else column.characters.length * self._factor
        if characters is not None:
            physical = PhysicalType.STRING64 if characters >= 2**31 else physical
            words, dtype = 1, np.dtype("i8" if physical is PhysicalType.STRING64 else "i4")
        else:
            words, dtype = (2 if physical is PhysicalType.I128 else 1), np.dtype(physical.numpy)
        extra = 0 if characters is None else 1
        return replace(
            column,
            physical_type=physical,
            length=self.rows,
            data=MetaBuffer(words * self.rows + extra, dtype),
            validity=None if column.validity is None else MetaBuffer(self.rows, np.dtype(np.uint8)),
            characters=None if characters is None else MetaBuffer(characters, np.dtype(np.uint8)),
            statistics=known,
        )


def _bounds_of(physical: PhysicalType) -> Bounds:
    info = np.iinfo(np.dtype(physical.numpy))
    return Bounds(int(info.min), int(info.max))


def enlarged(connection: gquery.Connection, factor: int) -> gquery.Connection:
    """A connection to the GPU that is not there, over the tables of another one, each with so many times the rows."""
    made = gquery.connect(device="cpu")
    for name in connection._catalog.tables():
        made._catalog.register(name, Enlarged(connection._catalog.table(name), factor))
    made.target, made.device, made._ranks = "cuda", Device("cuda"), (Device("cuda"),)
    return made


@contextmanager
def meta_gpu() -> Iterator[None]:
    """Within it, CuPy's place is taken, and the cuda target launches nothing."""

    def read_count(speculation: Speculation, array: Any, most: int | None, varies: bool = False) -> Any:
        if isinstance(array, meta_arrays.MetaArray) and most is not None:
            array.answer = min(most, meta_arrays.SOME)
        return counted(speculation, array, most, varies)

    def read_scalar(speculation: Speculation, array: Any, expected: int | None = None) -> int:
        if isinstance(array, meta_arrays.MetaArray) and expected is not None:
            array.answer = expected
        return read(speculation, array, expected)

    def found(values: Any) -> tuple[Any, Any]:
        made: tuple[Any, Any] = found_by_kernel(values)
        if isinstance(values, meta_arrays.MetaArray):
            made[0].answer, made[1].answer = 0, meta_arrays.EXTREME
        return made

    read, counted, found_by_kernel = Speculation.read_scalar, Speculation.read_count, extremes.extremes
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "cupy", meta_arrays)
        patch.setattr(devices, "_cupy", lambda: meta_arrays)
        patch.setattr("gquery.device.profile._gpu_profile", lambda device: H200)
        patch.setattr(Speculation, "read_count", read_count)
        patch.setattr(Speculation, "read_scalar", read_scalar)
        for module in (extremes, finalize, leading_rows, order_bits):
            patch.setattr(module, "extremes", found)
        patch.setattr(replay, "arena_of", lambda ordinal: ARENA)
        patch.setitem(targets.TARGETS, "cuda", __name__)
        _forget()
        try:
            yield
        finally:
            patch.undo()
            _forget()


def _forget() -> None:
    """What the process keeps of a target and of a GPU."""
    targets.get_target.cache_clear()
    get_profile.cache_clear()


@contextmanager
def _none_loaded() -> Iterator[None]:
    """Notes the kernels that are loaded within it for the first time: a graph is recorded, and its rehearsal did not use them."""
    before = TARGET.loaded.copy()
    yield
    names = {made: name for name, made in builtin_kernels().items()}
    for kernel in TARGET.loaded - before:
        copies.noted.append(f"a kernel is loaded, {names.get(kernel) or kernel.text}")


def copies_of(connection: gquery.Connection, sql: str) -> list[str] | str:
    """The copies between GPU and host in the midst of a recording of a query; or why it is not recorded. `copies.compiled` has
    what CuPy compiled."""
    copies.compiled.clear()
    prepared = connection.sql(sql).prepared
    assert prepared is not None
    program, context, feedback = connection._program(prepared), connection._context(), prepared.feedback
    way = replay.OneGpu(program, context, feedback, _run)
    if not way.may_record():
        return "the host has a part in it"
    copies.noted.clear()
    rehearsed = feedback.for_recording()
    try:
        way.rehearse(rehearsed)
        way.record(rehearsed)
    except CannotRecordError as error:
        if error.__cause__ is not None:
            raise
        return str(error)
    return list(dict.fromkeys(copies.noted))


def template_copies_of(connection: gquery.Connection, sql: str) -> list[str] | str:
    """The same where the run is recorded for the constants of other texts, too; and kernels that are first loaded in its midst,
    which no run before has had compiled."""
    prepared = connection.sql(sql).prepared
    assert prepared is not None
    program, context, feedback = connection._program(prepared), connection._context(), prepared.feedback
    if feedback.shared is None or not replay.may_be_recorded(program, context):
        return "no template"
    copies.noted.clear()
    try:
        context = replay.staying(context, ARENA)
        TARGET.loaded = {speculation._VALIDATE.kernel}  # of runs that speculate, as those before it do
        rehearsed, end = template_replay._rehearse(program, context, feedback, feedback.shared.replay)
        if end:
            with _none_loaded():
                template_recording.record_stages(program, context, rehearsed, end, ARENA)
    except CannotRecordError as error:
        if error.__cause__ is not None:
            raise
        return str(error)
    return list(dict.fromkeys(copies.noted))
