"""Ranks on GPUs take numbers as they were in the run before: a number of one rank that is another one harms no answer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import gquery
from gquery.device.device import available_devices
from gquery.execution.feedback import RankedFeedback, ReplayProgress, RunFeedback
from tests.distributed.test_ranks import QUERIES, TABLES

pytestmark = pytest.mark.cuda
CHANGED = [QUERIES[2], QUERIES[4], QUERIES[7], QUERIES[9], QUERIES[13], "SELECT text, x FROM t ORDER BY text, x LIMIT 9"]


@pytest.fixture
def db() -> Iterator[gquery.Connection]:
    if len(available_devices()) < 3:
        pytest.skip("needs 2 GPUs")
    with gquery.connect(device="cuda", devices=2) as connection:
        connection.sql("SET interpret_limit = 0")
        for name, table in TABLES.items():
            connection.register(name, table)
        yield connection


def _feedback(db: gquery.Connection, sql: str) -> RunFeedback:
    prepared = db._plans.find(sql, None, db.settings)
    assert prepared is not None
    return prepared.feedback


def _changes(ranks: RankedFeedback) -> Iterator[None]:
    """One number of one rank after another is set to another value than the run before has found."""
    for known in ranks.ranks:
        found = dict(known.scalars or {})
        for site, value in found.items():
            for other in (value + 1, max(value - 1, 0)):
                known.scalars = found | {site: other}
                yield
        known.scalars = found


@pytest.mark.parametrize("sql", CHANGED)
def test_each_number_of_each_rank(db: gquery.Connection, sql: str) -> None:
    db.sql("SET replay = false")
    expected = sorted(db.sql(sql).fetchall(), key=repr)
    assert sorted(db.sql(sql).fetchall(), key=repr) == expected
    ranks = _feedback(db, sql).ranked
    assert ranks is not None and all(known.scalars is not None for known in ranks.ranks)
    for _ in _changes(ranks):
        assert sorted(db.sql(sql).fetchall(), key=repr) == expected


@pytest.mark.parametrize("sql", CHANGED)
def test_each_number_of_each_rank_that_is_recorded(db: gquery.Connection, sql: str) -> None:
    expected = sorted(db.sql(sql).fetchall(), key=repr)
    feedback = _feedback(db, sql)
    for _ in range(100):
        assert sorted(db.sql(sql).fetchall(), key=repr) == expected
        if feedback.replay.recorded is not None:
            break
    rehearsed = feedback.replay.rehearsed
    assert feedback.replay.recorded is not None and rehearsed is not None and rehearsed.ranked is not None, feedback
    for _ in _changes(rehearsed.ranked):
        if feedback.replay.recorded is not None:
            feedback.replay.recorded.release()
        feedback.replay = ReplayProgress(runs=9, kernels=(), rehearsed=rehearsed)
        assert sorted(db.sql(sql).fetchall(), key=repr) == expected
