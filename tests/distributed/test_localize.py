"""Arrays over keys of which each rank has values of its own: each has room for these, and all of them together for all."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery.execution.feedback import RankedFeedback
from gquery.planner.physical import Build, Group, Pipeline, Probe, Program

KEYS = np.repeat(np.arange(100, 700, dtype=np.int64), 3)
TABLES = {
    "visits": pa.table({"visit": np.arange(100, 700, dtype=np.int64), "page": np.arange(600) % 7}),
    "clicks": pa.table({"visit": KEYS, "v": np.arange(KEYS.size)}),
}


def _ranked(sql: str, ranks: int) -> tuple[list[tuple[object, ...]], RankedFeedback]:
    with gquery.connect(device="python", devices=ranks) as db:
        for name, table in TABLES.items():
            db.register(name, table)
        rows = db.sql(sql).fetchall()
        assert db.sql(sql).fetchall() == rows
        prepared = db._plans.find(sql, None, db.settings)
        assert prepared is not None and prepared.feedback.ranked is not None
        return rows, prepared.feedback.ranked


def _slots(program: Program) -> dict[int, int]:
    """The slots of arrays over keys, by the stage that fills them; probes agree."""
    found = {}
    for stage in program.stages:
        match stage.work:
            case Pipeline(sink=Build(table)) if table.key_encoding is not None:
                found[stage.number] = table.key_encoding.size
            case Pipeline(sink=Group(layout="direct-address", key_encoding=encoding)) if encoding is not None:
                found[stage.number] = encoding.size
    for stage in program.stages:
        for step in stage.work.steps if isinstance(stage.work, Pipeline) else ():
            if isinstance(step, Probe) and step.table.key_encoding is not None:
                assert step.table.key_encoding.size == found[step.table.stage]
    return found


@pytest.mark.parametrize("ranks", [2, 3, 8])
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT sum(v * page) FROM clicks JOIN visits ON clicks.visit = visits.visit WHERE page > 2",
        "SELECT count(*) FROM visits WHERE visit IN (SELECT visit FROM clicks WHERE v % 5 = 0)",
        "SELECT count(*), sum(page) FROM visits FULL JOIN clicks ON visits.visit = clicks.visit + 600",
    ],
)
def test_each_rank_has_slots_for_its_own_keys(sql: str, ranks: int) -> None:
    rows, made = _ranked(sql, ranks)
    assert rows == _ranked(sql, 1 + ranks // 2)[0]
    whole, own = _slots(made.program), [_slots(p) for p in made.programs]
    for stage, placed in enumerate(made.placement):
        if placed.own_keys:
            assert whole[stage] <= sum(slots[stage] for slots in own) < whole[stage] + ranks
            assert max(slots[stage] for slots in own) <= 2 * whole[stage] // ranks + 2
        elif stage in whole:
            assert {slots[stage] for slots in own} == {whole[stage]}


def test_joined_on_sorted_keys_they_are_own() -> None:
    made = _ranked("SELECT sum(v * page) FROM clicks JOIN visits ON clicks.visit = visits.visit WHERE page > 2", 4)[1]
    assert any(placed.own_keys for placed in made.placement)
    assert made.programs[0] is not made.program
