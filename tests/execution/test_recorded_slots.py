"""What recorded launches are given for other constants: what a run with these gives them. The GPU is played: what is set is
written down."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery.device.arena import Arena, Sent
from gquery.device.array import Array
from gquery.device.graph import RecordedGraph
from gquery.device.recording import CannotRecordError
from gquery.execution import ExecutionContext
from gquery.execution.feedback import Shared
from gquery.execution.recorded_slots import RecordedSlots
from gquery.execution.run_stages import run_stages
from gquery.execution.speculation import Speculation
from gquery.execution.state import Run
from gquery.expression.slots import Guard, Recorder
from gquery.kernels.bindings import Constant, Content
from gquery.kernels.targets.base import Compiled, LaunchedKernel

ROWS = 1_000
SHAPES: dict[str, tuple[str, list[tuple[object, ...]]]] = {
    "numbers": ("SELECT sum(v), count(*) FROM t WHERE v < {} AND k >= {}", [(40, 300), (50, 300), (50, 310), (0, 999)]),
    "in several places": (
        "SELECT count(*) FROM t WHERE v < {0} OR k = {0}",
        [(50,), (60,), (45,)],
    ),
    "doubles": ("SELECT count(*) FROM t WHERE d < {}", [("1e0",), ("-0e0",), ("0e0",), ("7.5e0",)]),
    "texts": ("SELECT count(*) FROM t WHERE s = '{}'", [("text 7",), ("no such text",), ("text 11",)]),
    "codes": ("SELECT count(*) FROM t WHERE g IN ('{}', 'b')", [("a",), ("c",), ("zz",)]),
    "patterns": (
        "SELECT count(*) FROM t WHERE s LIKE '%{}%' AND g LIKE '{}%'",
        [("t 7", "a"), ("9", "b"), ("12", "a")],
    ),
    "several stages": (
        "SELECT count(*) FROM t WHERE v IN (SELECT v FROM t WHERE k < {}) AND k > {}",
        [(500, 10), (1, 2), (999, 0)],
    ),
}


@dataclass
class Played:
    """An arena, a graph and a launcher in one: ``sent`` are the arrays that went over last, by their place."""

    values: dict[int, tuple[Any, ...]] = field(default_factory=dict)  # by node, as they were set last
    changes: int = 0
    sent: dict[int, Array] = field(default_factory=dict)

    def send(self, arrays: Sequence[Array], before: Sent | None) -> Sent:
        self.sent = {10**9 + n: array.copy() for n, array in enumerate(arrays)}
        return Sent(list(self.sent), None, 0)

    def packed(self, values: Sequence[Any]) -> bytes:
        return repr(values).encode()

    def set_in(self, graph: object, node: int, shape: tuple[int, int, int], packed: bytes) -> None:
        self.values[node] = tuple(eval(packed))
        self.changes += 1


@pytest.fixture
def connection() -> Iterator[gquery.Connection]:
    v = np.random.default_rng(5).integers(0, 100, ROWS)
    with gquery.connect(device="cpu", partitions=1) as made:
        made.register(
            "t",
            pa.table(
                {
                    "k": np.arange(ROWS),
                    "v": v,
                    "d": v / 7.0,
                    "g": np.array(["a", "b", "c", "d"])[v % 4],
                    "s": [f"text {n}" for n in range(ROWS)],
                }
            ),
        )
        yield made


def _run(connection: gquery.Connection, sql: str) -> tuple[Run, Shared]:
    """A run of a text as one that is recorded."""
    connection.sql(sql).fetchall()
    prepared = connection._plans.find(sql, None, connection.settings)
    assert prepared is not None and prepared.program is not None and prepared.feedback.shared is not None
    feedback = prepared.feedback.for_template_recording()
    feedback.whole_scans = {stage.number for stage in prepared.program.stages}
    context = ExecutionContext("cpu", connection.device, replace(connection.settings, interpret_limit=0))
    speculation = Speculation(feedback, connection.device, waits=True)
    state = Run(prepared.program, context, feedback, speculation, bound=[], bound_patterns=[])
    run_stages(state, 0, len(prepared.program.stages))
    return state, prepared.feedback.shared


def _launches(state: Run, played: Played) -> list[LaunchedKernel]:
    launched = []
    for node, bound in enumerate(state.bound or ()):
        compiled = Compiled(bound.unit.kernel, cast(Any, played), "played", 0.0, cached=False)
        launched.append(LaunchedKernel(compiled, (1, 1, 0), (0, ROWS, 1, 2, *bound.values), bound.values, node))
    return launched


@pytest.mark.parametrize("name", SHAPES)
def test_launches_are_given_the_constants_of_a_run(connection: gquery.Connection, name: str) -> None:
    shape, constants = SHAPES[name]
    played = Played()
    arena, graph = cast(Arena, played), cast(RecordedGraph, played)
    recorded, template = _run(connection, shape.format(*constants[0]))
    slots = RecordedSlots(recorded, _launches(recorded, played), template)
    served = 0
    for given in [*constants, constants[0]]:
        state, shared = _run(connection, shape.format(*given))
        made = slots.made(shared.values) if shared.units is template.units else None
        if made is None:
            continue
        served += 1
        slots.set(made, graph, arena)
        for node, bound in enumerate(state.bound or ()):
            if not bound.unit.slots:
                continue
            for value, own, (parameter, binding) in zip(
                played.values[node][4:], bound.values, bound.unit.parameters, strict=True
            ):
                if parameter.name not in bound.unit.slots:
                    continue
                if isinstance(binding, Constant):
                    assert repr(value) == repr(own), parameter
                elif isinstance(binding, Content):
                    assert played.sent[value].tolist() == binding.buffer.host.tolist()
        changes = played.changes
        slots.set(made, graph, arena)
        assert played.changes == changes, "launches are left alone whose constants are as they were"
    assert served >= 3


def test_constants_that_other_kernels_serve(connection: gquery.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded, shared = _run(connection, "SELECT sum(v) FROM t WHERE v < 50")
    slots = RecordedSlots(recorded, _launches(recorded, Played()), shared)
    assert slots.made(shared.values) is not None
    monkeypatch.setattr(Recorder, "failed", lambda recorder, values: Guard(int, (), (), 1))
    assert slots.made(shared.values) is None


def test_a_launch_that_is_not_known_by_its_node(connection: gquery.Connection) -> None:
    recorded, shared = _run(connection, "SELECT sum(v) FROM t WHERE v < 50")
    launches = [replace(launch, node=None) for launch in _launches(recorded, Played())]
    with pytest.raises(CannotRecordError):
        RecordedSlots(recorded, launches, shared)
