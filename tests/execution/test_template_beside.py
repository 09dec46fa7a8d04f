"""What a template's recording does for constants that never were, on a GPU that is played: the graph is launched before a program
is made, and the rows that come back are those of the block, so a test sees where an answer is from."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gquery
from gquery.api.plan_cache import PreparedPlan
from gquery.api.templates import ProgramOfTemplate
from gquery.device import arena as arenas
from gquery.device.buffer import Buffer
from gquery.device.graph import RecordedGraph
from gquery.errors import FileError
from gquery.execution import ExecutionContext
from gquery.execution.recorded_slots import RecordedSlots
from gquery.execution.recording import Input, Inputs
from gquery.execution.run_stages import run_stages
from gquery.execution.speculation import Speculation
from gquery.execution.state import Run
from gquery.execution.template_recording import LiveFrame, Place, Result, TemplateRecording
from gquery.kernels.targets.base import Compiled, LaunchedKernel
from gquery.planner.physical import Pipeline, ReadTable
from gquery.runtime.records import replace
from tests.support.played_graph import Gpu, PlayedDevice, calls_of, held, played_arena, rows_on_gpu

STATUS, NUMBER, FIRST = 4, 8, 512  # bytes: the abort flag, where the rows are counted, where the first column begins
ROWS = 1000
CALLS = 650  # of functions, by a query whose constants are new and whose template is recorded


class Launcher:
    """Takes arguments, and writes down the last ones of each node."""

    def __init__(self) -> None:
        self.values: dict[int, tuple[Any, ...]] = {}

    def packed(self, values: Sequence[Any]) -> bytes:
        return repr(values).encode()

    def set_in(self, graph: object, node: int, shape: tuple[int, int, int], packed: bytes) -> None:
        self.values[node] = tuple(eval(packed))


class PlayedTemplate:
    """``SELECT k, v FROM file WHERE k < c``, for c = 100 recorded. The recording says that v is 1 more, and gives as many rows as
    the launch was told to keep."""

    def __init__(self, path: Path, gpu: Gpu) -> None:
        self.path, self.gpu, self.launcher = path, gpu, Launcher()
        self.write(0)
        self.connection = gquery.connect("cpu", threads=1)
        self.device = PlayedDevice("cuda", 0)
        self.first = self._prepared(self.text(100))
        self.recording = self._recording(self.first)
        shared = self.first.feedback.shared
        assert shared is not None
        self.progress = shared.replay
        self.progress.recorded = self.recording
        gpu.works = self.works

    def text(self, most: int) -> str:
        return f"SELECT k, v FROM '{self.path}' WHERE k < {most}"

    def write(self, more: int) -> None:
        made = self.path.with_suffix(".new")
        pq.write_table(pa.table({"k": range(ROWS), "v": [10 * k + more for k in range(ROWS)]}), made)
        os.replace(made, self.path)

    def works(self) -> None:
        """What the graph does."""
        assert self.recording.slots is not None
        (launch,) = self.recording.slots._launches
        (argument,) = launch.arguments
        most = self.launcher.values[launch.launched.node or 0][argument.place]
        self.block[NUMBER : NUMBER + 8] = np.array([most]).view(np.uint8)

    def _prepared(self, text: str) -> PreparedPlan:
        relation = self.connection.sql(text)
        relation.fetchall()
        assert relation.prepared is not None
        return relation.prepared

    def _recording(self, prepared: PreparedPlan) -> TemplateRecording:
        program = prepared.program
        assert program is not None
        feedback = prepared.feedback.for_template_recording()
        feedback.whole_scans = {stage.number for stage in program.stages}
        context = ExecutionContext(
            "cpu", self.connection.device, replace(self.connection.settings, interpret_limit=0)
        )
        speculation = Speculation(feedback, self.connection.device, waits=True)
        state = Run(program, context, feedback, speculation, bound=[], bound_patterns=[])
        run_stages(state, 0, len(program.stages))
        launches = []
        for node, bound in enumerate(state.bound or ()):
            made = Compiled(bound.unit.kernel, cast(Any, self.launcher), "played", 0.0, cached=False)
            launches.append(LaunchedKernel(made, (1, 1, 0), (0, ROWS, 1, 2, *bound.values), bound.values, node))
        self.block = np.zeros(FIRST + 32 * ROWS, np.uint8)
        frame, at, places = state.frames[program.stages[-1].number], FIRST, {}
        columns = {}
        for (i, c), values in zip(frame.columns.items(), (np.arange(ROWS), 10 * np.arange(ROWS) + 1), strict=True):
            whole = values.astype(c.data.dtype)
            columns[i] = replace(c, length=ROWS, data=Buffer(whole))
            places[id(columns[i].data)] = Place(whole, at)
            self.block[at : at + whole.nbytes] = whole.view(np.uint8)
            at += 8 * ROWS
        live = LiveFrame(replace(frame, columns=columns, rows=ROWS), NUMBER)
        played = object.__new__(Speculation)
        played._sites, played.abort_flag = [], np.zeros(1, np.uint32)
        graph = object.__new__(RecordedGraph)
        graph._runtime, graph._graph, graph._executable = self.gpu, 0, 0
        assert prepared.feedback.shared is not None
        return TemplateRecording(
            end=len(program.stages),
            graph=graph,
            speculation=played,
            slots=RecordedSlots(state, launches, prepared.feedback.shared),
            frames={program.stages[-1].number: live},
            tables={},
            places=places,
            block=self.block,
            status_bytes=STATUS,
            is_small=True,
            inputs=self._inputs(state),
            result=Result.of(program),
            kept=[],
        )

    def _inputs(self, state: Run) -> Inputs:
        works = [s.work for s in state.program.stages]
        sources = [w.source.source for w in works if isinstance(w, Pipeline) and isinstance(w.source, ReadTable)]
        inputs = tuple(Input(s, (0, 1), s.load((0, 1)).columns) for s in sources)
        buffers = [b for i in inputs for c in i.columns for b in c.buffers]
        for b in buffers:
            b.place(self.device, b.host)
        return Inputs(inputs, tuple((b, b.on(self.device)) for b in buffers))

    def run(self, most: int) -> list[tuple[Any, ...]]:
        """The rows by the connection, as if its device was the GPU."""
        return rows_on_gpu(self.connection, self.device, self.text(most))

    def kept(self, most: int) -> PreparedPlan:
        found = self.connection._plans.find(self.text(most), None, self.connection.settings)
        assert found is not None
        return found


def played_rows(most: int) -> list[tuple[int, int]]:
    return [(k, 10 * k + 1) for k in range(most)]


def rows(most: int, more: int = 0) -> list[tuple[int, int]]:
    return [(k, 10 * k + more) for k in range(most)]


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Gpu:
    made = Gpu()
    monkeypatch.setitem(arenas._arenas, 0, played_arena(made))
    return made


@pytest.fixture
def played(tmp_path: Path, gpu: Gpu) -> PlayedTemplate:
    return PlayedTemplate(tmp_path / "t.parquet", gpu)


def test_new_constants_need_no_program(played: PlayedTemplate) -> None:
    for most in (90, 107, 120):
        assert played.run(most) == played_rows(most)
        assert played.kept(most).later is not None, "nobody has asked for its program"
    assert played.gpu.events == ["launch", "wait"] * 3


def test_the_second_run_of_a_text_is_its_own(played: PlayedTemplate) -> None:
    """It may be recorded by itself: its program is made."""
    assert played.run(105) == played_rows(105)
    assert played.run(105) == rows(105), "which runs on the CPU here"
    prepared = played.kept(105)
    assert prepared.later is None and prepared.program is not None and prepared.feedback.replay.runs == 1


def test_threads_that_ask_for_the_program_at_once(played: PlayedTemplate, monkeypatch: pytest.MonkeyPatch) -> None:
    """They have the same one, with the same feedback."""
    assert played.run(105) == played_rows(105)
    prepared, together, bind = played.kept(105), threading.Barrier(4), ProgramOfTemplate.bound

    def bound(later: ProgramOfTemplate) -> Any:
        together.wait(60)
        return bind(later)

    monkeypatch.setattr(ProgramOfTemplate, "bound", bound)
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(lambda: (prepared.program, prepared.feedback)) for _ in range(4)]
        (program, feedback), *others = [a.result() for a in asked]
    assert program is not None and all(p is program and f is feedback for p, f in others)


def test_a_file_that_changes_while_the_gpu_works(played: PlayedTemplate) -> None:
    def works() -> None:
        played.works()
        played.write(5)

    played.gpu.works = works
    assert played.run(104) == rows(104, 5)
    assert played.gpu.events == ["launch", "wait"], "what runs is waited for before anything else is done"


def test_a_file_that_is_gone_while_the_gpu_works(played: PlayedTemplate) -> None:
    def works() -> None:
        played.works()
        played.path.unlink()

    played.gpu.works = works
    with pytest.raises(FileError):
        played.run(104)
    assert played.gpu.events == ["launch", "wait"]


def test_a_recording_that_does_not_fit(played: PlayedTemplate) -> None:
    """The GPU says so: the query runs as usual."""

    def works() -> None:
        played.works()
        played.block[0] = 1

    played.gpu.works = works
    assert played.run(106) == rows(106)
    assert played.gpu.events == ["launch", "wait"]
    assert played.kept(106).feedback.replay.runs == 0, "it has not run by the recording"


def test_constants_that_other_kernels_serve(played: PlayedTemplate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RecordedSlots, "made", lambda slots, values: None)
    assert played.run(106) == rows(106) and played.gpu.events == []


def test_memory_that_ran_out_before(played: PlayedTemplate) -> None:
    played.recording.release()
    assert played.run(106) == rows(106) and played.gpu.events == ["destroy"]


def test_stages_that_are_left_to_run(played: PlayedTemplate) -> None:
    """They need the program."""
    played.recording.result = None
    assert played.run(106) == rows(106) and played.gpu.events == []


def test_a_gpu_that_runs_another_recording(played: PlayedTemplate) -> None:
    with held(arenas._arenas[0]):
        assert played.run(108) == rows(108) and played.gpu.events == []
    assert played.run(109) == played_rows(109)


@pytest.mark.parametrize("setting", [("replay", False), ("partitions", 2)], ids=["replay is off", "several partitions"])
def test_settings_under_which_nothing_is_played(setting: tuple[str, object], played: PlayedTemplate) -> None:
    relation = played.connection.sql(played.text(105))
    assert relation.prepared is not None and relation.prepared.later is not None
    played.connection.settings = played.connection.settings.with_option(*setting)
    usual, played.connection.device = played.connection.device, played.device
    assert played.connection.run_recorded(relation.prepared) is None
    played.connection.device = usual
    assert relation.fetchall() == rows(105) and played.gpu.events == []


def test_what_new_constants_cost_the_host(played: PlayedTemplate) -> None:
    """As calls of functions, which are the same on each machine. What is done once a process, and the collector, are left out."""
    played.run(110)
    played.connection.device = played.device
    texts = [played.text(most) for most in range(111, 116)]
    asked = [calls_of(partial(lambda sql: played.connection.sql(sql).to_arrow_table(), sql)) for sql in texts]
    assert [table.num_rows for table, _ in asked] == [*range(111, 116)]
    assert 100 < min(calls for _, calls in asked) <= CALLS
