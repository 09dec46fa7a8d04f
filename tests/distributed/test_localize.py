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


MET = {
    **TABLES,
    "orders": pa.table({"id": np.arange(100, 700, 2), "kind": np.arange(300) % 5, "other": np.arange(300)[::-1]}),
    "lines": pa.table({"id": np.repeat(np.arange(0, 900), 2), "kind": np.arange(1800) % 5, "v": np.arange(1800)}),
    "gaps": pa.table({
        "id": np.sort(np.random.default_rng(5).integers(100, 700, 500)),
        "n": pa.array([None if i % 7 == 0 else 100 + i for i in range(500)]),
        "v": np.arange(500),
    }),
}  # fmt: skip


@pytest.mark.parametrize("ranks", [2, 3, 8])
@pytest.mark.parametrize(
    ("sql", "met"),
    [
        ("SELECT count(*), sum(v * page) FROM clicks JOIN visits ON clicks.visit = visits.visit WHERE page > 2", 1),
        ("SELECT count(*), sum(v) FROM clicks WHERE visit IN (SELECT visit FROM visits WHERE page > 2)", 1),
        ("SELECT count(*), sum(v * page), count(page) FROM gaps LEFT JOIN visits ON id = visit AND page < 5", 1),
        ("SELECT count(*), sum(v * page) FROM lines JOIN visits ON id = visit", 1),  # most keys of visits, and more
        ("SELECT count(*), sum(v) FROM lines JOIN orders ON lines.id = orders.id AND lines.kind = orders.kind", 1),
        ("SELECT count(*), sum(v * page) FROM clicks JOIN visits ON clicks.visit = visits.visit + 1", 0),
        ("SELECT count(*), sum(v * page) FROM gaps JOIN visits ON n = visit", 0),
        ("SELECT count(*), sum(v * other) FROM gaps JOIN orders ON v + 100 = orders.id", 0),
        ("SELECT visit, sum(v) AS s, max(page) FROM clicks JOIN visits USING (visit) GROUP BY visit HAVING sum(v) > 900", 1),
    ],
)
def test_keys_of_a_ranks_own_are_looked_up_without_asking_where_they_lie(sql: str, met: int, ranks: int) -> None:
    """A row whose key is cut as the table's is has one of its rank's; others are asked, as those of another rank lie outside."""
    with gquery.connect(device="python", devices=ranks) as db, gquery.connect(device="python") as one:
        for name, table in MET.items():
            db.register(name, table)
            one.register(name, table)
        rows = sorted(db.sql(sql).fetchall())
        assert rows == sorted(one.sql(sql).fetchall())
        prepared = db._plans.find(sql, None, db.settings)
        assert prepared is not None and prepared.feedback.ranked is not None
        for program in prepared.feedback.ranked.programs:
            probes = [s for stage in program.stages for s in getattr(stage.work, "steps", ()) if isinstance(s, Probe)]
            parts = [p for s in probes if s.table.key_encoding is not None for p in s.table.key_encoding.parts]
            assert sum(p.whole is not None for p in parts) >= met if met else all(p.whole is None for p in parts)
