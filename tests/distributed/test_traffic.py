"""What the ranks exchange for each TPC-H query: bytes are kept in a golden file, and how rows are shared is checked."""

from __future__ import annotations

import os
from functools import cache

import pytest

import gquery
from gquery import tuning
from gquery.execution import StageReport, run_with_report
from tests.support.paths import GOLDEN
from tests.support.tuned import Tune
from tpch import queries
from tpch.generate import files, generate

EXCHANGED = GOLDEN / "exchanged.txt"
SF = 0.01
RANKS = 4
LARGE = 10_000  # rows of a stage that is large here


@pytest.fixture(autouse=True)
def _as_users_have_it(tune: Tune) -> None:
    """Joins exchange rows where that is cheaper, as it would be at scale factor 100."""
    tune(tuning.distribution, hashed_most=0.9, hashed_bytes=int(2**28 * SF / 100), hashed_us=190 * SF / 100)
    tune(tuning.distribution, sorted_later_bytes=int(2**23 * SF / 100), exchanged_us=17 * SF / 100)
    tune(tuning.distribution, joined_bytes=int(2**24 * SF / 100), waited_us=150 * SF / 100)


@cache
def connection() -> gquery.Connection:
    made = gquery.connect(device="python", devices=RANKS)
    for table, path in files(generate(SF)).items():
        made.sql(f"CREATE VIEW {table} AS SELECT * FROM '{path}'")
    return made


@cache
def reports(number: int) -> list[StageReport]:
    db = connection()
    prepared = db.sql(queries.sql(number)).prepared
    assert prepared is not None
    return run_with_report(db._program(prepared), db._context(), prepared.feedback)[1]


def exchanged(number: int) -> str:
    of_ranks = zip(*[[r.received_bytes for r in stage.of_ranks] for stage in reports(number)], strict=True)
    return f"q{number:02d}: " + ", ".join(f"{sum(stages):,}" for stages in of_ranks)


def test_bytes_that_ranks_receive() -> None:
    lines = [f"TPC-H at scale factor {SF}: bytes that each of {RANKS} ranks receives"]
    text = "\n".join([*lines, *[exchanged(n) for n in queries.NUMBERS]]) + "\n"
    if os.environ.get("GQUERY_UPDATE_GOLDEN"):
        EXCHANGED.write_text(text)
    assert EXCHANGED.read_text() == text


@pytest.mark.parametrize("number", queries.NUMBERS)
def test_large_stages_are_shared_evenly(number: int) -> None:
    """Those over tables, which are cut; what their rows become is where it may be uneven."""
    cut = [s for s in reports(number) if s.rows >= LARGE and sum(r.rows for r in s.of_ranks) == s.rows]
    for stage in cut:
        rows = [r.rows for r in stage.of_ranks]
        assert max(rows) <= 1.1 * sum(rows) / RANKS, stage.label
    assert cut or number in (2, 11, 16, 22), "a query over a large table runs it whole on every rank"
