"""What a replay does while the GPU works, on a GPU that is played: launching its graph does what a test says, and copies copy.

The rows that come back are those of the block, so a test sees where an answer is from.
"""

from __future__ import annotations

import os
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gquery
from gquery.device import arena as arenas
from gquery.device.graph import RecordedGraph
from gquery.errors import FileError, InterruptError
from gquery.execution.recording import Answer, Input, Inputs, Output, Recording, Status
from gquery.execution.speculation import Speculation
from gquery.planner.physical import Pipeline, ReadTable
from tests.support.played_graph import Gpu, PlayedDevice, calls_of, held, played_arena, rows_on_gpu

STATUS = 4  # bytes: the abort flag
ROWS, RECORDED = [(0, 0), (1, 10), (2, 20)], [(0, 1), (1, 11), (2, 21)]
"""What the file holds, and what the recording makes of it."""

CALLS = 280  # of functions, by a query of one file that is replayed: 241 alone, 253 behind other tests


class Played:
    """A query over a file, k = 0 to 9 and v = 10 k, that is recorded; the recording says that v is 1 more."""

    def __init__(self, path: Path, gpu: Gpu) -> None:
        self.path, self.gpu = path, gpu
        self.write(0)
        self.text = f"SELECT k, v FROM '{path}' WHERE k < 3"
        self.connection = gquery.connect("cpu", threads=1)
        self.device = PlayedDevice("cuda", 0)
        relation = self.connection.sql(self.text)
        relation.fetchall()
        prepared = relation.prepared
        assert prepared is not None and prepared.program is not None
        self.prepared = prepared
        self.recording = self._recording(relation)
        prepared.feedback.replay.recorded = self.recording

    def write(self, more: int) -> None:
        made = self.path.with_suffix(".new")
        pq.write_table(pa.table({"k": range(10), "v": [10 * k + more for k in range(10)]}), made)
        os.replace(made, self.path)

    def _recording(self, relation: Any) -> Recording:
        program, table = self.prepared.program, relation.table()
        assert program is not None
        arrays = {id(b): b.host.copy() for c in table.columns for b in c.buffers}
        arrays[id(table.columns[1].data)] += 1
        outputs, block = {}, np.zeros(4096, np.uint8)
        for n, (identity, array) in enumerate(arrays.items(), 1):
            outputs[identity] = Output(0, array.dtype, array.size, 512 * n)
            block[512 * n : 512 * n + array.nbytes] = array.view(np.uint8)
        works = [s.work for s in program.stages]
        sources = [w.source.source for w in works if isinstance(w, Pipeline) and isinstance(w.source, ReadTable)]
        inputs = tuple(Input(s, (0, 1), s.load((0, 1)).columns) for s in sources)
        buffers = [b for i in inputs for c in i.columns for b in c.buffers]
        for b in buffers:
            b.place(self.device, b.host)
        graph = object.__new__(RecordedGraph)
        graph._runtime, graph._graph, graph._executable = self.gpu, 0, 0
        speculation = object.__new__(Speculation)
        speculation._sites, speculation.abort_flag = [], np.zeros(1, np.uint32)
        read = Inputs(inputs, tuple((b, b.on(self.device)) for b in buffers))
        answer = Answer(table, outputs, (Status(speculation, 0, STATUS),), block, is_small=True)
        return Recording(program, graph, answer, ((self.device, read),), [])

    def run(self) -> list[tuple[Any, ...]]:
        """The rows by the connection, as if its device was the GPU."""
        return rows_on_gpu(self.connection, self.device, self.text)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Gpu:
    made = Gpu()
    monkeypatch.setitem(arenas._arenas, 0, played_arena(made))
    return made


@pytest.fixture
def played(tmp_path: Path, gpu: Gpu) -> Played:
    return Played(tmp_path / "t.parquet", gpu)


def test_a_query_that_is_replayed(played: Played) -> None:
    for _ in range(3):
        assert played.run() == RECORDED
    assert played.gpu.events == ["launch", "wait"] * 3


def test_a_file_that_changes_while_the_gpu_works(played: Played) -> None:
    """The answer is that of the file as it is now, and no later one is of the recording."""
    played.gpu.works = lambda: played.write(5)
    assert played.run() == [(0, 5), (1, 15), (2, 25)]
    assert played.gpu.events == ["launch", "wait"], "what runs is waited for before anything else is done"
    played.gpu.works = lambda: None
    assert played.run() == [(0, 5), (1, 15), (2, 25)]


def test_a_file_that_is_gone_while_the_gpu_works(played: Played) -> None:
    played.gpu.works = played.path.unlink
    with pytest.raises(FileError):
        played.run()
    assert played.gpu.events == ["launch", "wait"]
    played.write(0)
    assert played.run() in (ROWS, RECORDED)


def test_columns_that_were_loaded_anew(played: Played) -> None:
    """Equal or not, the recording reads others."""
    ((_, read),) = played.recording.inputs
    source = read.columns[0].source
    played.gpu.works = lambda: played.connection._cache.forget(id(source))
    assert played.run() == ROWS


def test_misspeculation(played: Played) -> None:
    assert played.recording.answer is not None
    played.recording.answer.block[0] = 1
    assert played.run() == ROWS
    assert played.gpu.events == ["launch", "wait"]


def test_memory_that_runs_out_while_the_gpu_works(played: Played) -> None:
    """What the run uses stays until it has ended, and its result is right; the next one has no recording."""
    graph = weakref.ref(played.recording.graph)
    alive: list[bool] = []
    played.gpu.works = played.recording.release
    played.gpu.ends = lambda: alive.append(graph() is not None)
    assert played.run() == RECORDED
    assert alive == [True] and graph() is None
    assert played.run() == ROWS


@pytest.mark.parametrize("kind", [KeyboardInterrupt, InterruptError])
def test_an_interrupt_while_it_is_waited_for(kind: type[BaseException], played: Played) -> None:
    def stop() -> None:
        played.gpu.ends = lambda: None
        raise kind

    played.gpu.ends = stop
    with pytest.raises(kind):
        played.run()
    assert played.gpu.events == ["launch", "wait", "abort", "wait"]
    assert played.run() == RECORDED


def test_a_gpu_that_runs_another_recording(played: Played) -> None:
    with held(arenas._arenas[0]):
        assert played.run() == ROWS and played.gpu.events == []
    assert played.run() == RECORDED


def test_several_gpus_that_are_replayed(played: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    """One launch, on the first; whether the file is as it was is looked at while they work; not while one of them has work."""
    second = played_arena(Gpu())
    monkeypatch.setitem(arenas._arenas, 1, second)
    usual, played.connection._ranks = played.connection._ranks, (played.device, PlayedDevice("cuda", 1))
    assert played.run() == RECORDED and played.gpu.events == ["launch", "wait"]
    played.connection.device = played.device
    with held(second):
        assert played.connection.run_recorded(played.prepared) is None and played.gpu.events == ["launch", "wait"]
    played.gpu.works = lambda: played.write(5)
    assert played.connection.run_recorded(played.prepared) is None
    assert played.gpu.events == ["launch", "wait"] * 2, "a change while they work"
    played.connection._ranks, played.connection._made_context = (played.device, PlayedDevice("cpu", 1)), None
    assert played.connection.run_recorded(played.prepared) is None and len(played.gpu.events) == 4
    played.connection._ranks = usual


def test_files_that_are_looked_for_are_looked_for_first(tmp_path: Path, gpu: Gpu) -> None:
    """A pattern may take its time: the GPU is not kept for that."""
    folder = tmp_path / "many"
    folder.mkdir()
    played = Played(folder / "t.parquet", gpu)
    pattern = played.connection.sql(f"SELECT k, v FROM '{folder}/*.parquet' WHERE k < 3")
    assert pattern.fetchall() == ROWS
    assert pattern.prepared is not None and not pattern.prepared.is_near
    assert played.prepared.is_near


@pytest.mark.parametrize("setting", [("replay", False), ("partitions", 2)], ids=["replay is off", "several partitions"])
def test_settings_under_which_nothing_is_replayed(setting: tuple[str, object], played: Played) -> None:
    relation = played.connection.sql(played.text)
    played.connection.settings = played.connection.settings.with_option(*setting)
    usual, played.connection.device = played.connection.device, played.device
    assert played.connection.run_recorded(played.prepared) is None
    played.connection.device = usual
    assert relation.fetchall() == ROWS and played.gpu.events == []


def test_what_a_replay_costs_the_host(played: Played) -> None:
    """As calls of functions, which are the same on each machine. What is done once a process, and the collector, are left out."""
    played.run()
    played.connection.device = played.device
    asked = [calls_of(lambda: played.connection.sql(played.text).to_arrow_table()) for _ in range(5)]
    assert [table.num_rows for table, _ in asked] == [3] * 5
    assert 50 < min(calls for _, calls in asked) <= CALLS
