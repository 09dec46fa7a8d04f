"""Random queries give DuckDB's answers: as planned, in ranks, compiled, and with each rule switched off in turn.

``GQUERY_FUZZ=5000 make fuzz`` runs more of them. A failure prints its seed and SQL; the same seed makes them again.
"""

from __future__ import annotations

import os

import duckdb
import pytest

from gquery.planner.optimizer import RULES
from tests.support.harness import assert_same, oracle
from tests.support.own_orders import own_orders
from tests.support.queries import Generator, random_tables

COUNT = int(os.environ.get("GQUERY_FUZZ", "60"))
BATCH = 20  # queries a test
TABLES = 40  # sets of tables that the seeds share
OPTIONAL = sorted(rule.name for rule in RULES if not rule.required)


def check(seed: int, target: str = "python", ranks: int = 1, disabled: str = "") -> None:
    tables = random_tables(seed // BATCH % TABLES)
    sql = Generator(seed).query()
    try:
        oracle(tables).execute(sql)
    except duckdb.Error:
        return  # an overflow, say: `tests/sql/test_errors.py` has those
    settings = {"disabled_rules": disabled} if disabled else None
    try:
        with own_orders():  # as ranks on GPUs have groups
            assert_same(sql, tables, targets=(target,), ranks=(ranks,), settings=settings)
    except Exception as error:
        error.add_note(f"seed {seed}, tables {seed // BATCH % TABLES}, without {disabled or 'nothing'}:\n{sql}")
        raise


@pytest.mark.parametrize("batch", range(max(1, COUNT // BATCH)))
def test_random_queries(batch: int) -> None:
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        check(seed, ranks=1 + 2 * (seed % 2))


@pytest.mark.parametrize("rule", OPTIONAL)
def test_without_a_rule(rule: str) -> None:
    """Rules change the speed and never the answer."""
    for seed in range(100_000, 100_000 + max(3, COUNT // 20)):
        check(seed, disabled=rule)


def test_without_any_optional_rule() -> None:
    for seed in range(200_000, 200_000 + max(BATCH, COUNT // 8)):
        check(seed, disabled=",".join(OPTIONAL))


@pytest.mark.parametrize("seed", range(300_000, 300_000 + max(3, COUNT // 80)))
def test_compiled_for_the_cpu(seed: int) -> None:
    check(seed, "cpu", ranks=3)


@pytest.mark.cuda
@pytest.mark.parametrize("batch", range(6))
def test_on_a_gpu(batch: int) -> None:
    for seed in range(400_000 + batch * BATCH, 400_000 + (batch + 1) * BATCH):
        check(seed, "cuda", ranks=1 + 2 * (seed % 2))


def test_the_generator_makes_sense() -> None:
    """Nearly every query is valid, most find rows, and a seed always makes the same one."""
    valid = found = 0
    for seed in range(100):
        try:
            found += bool(oracle(random_tables(0)).execute(Generator(seed).query()).fetchall())
            valid += 1
        except duckdb.Error:
            continue
    assert valid >= 95
    assert found >= 45
    assert Generator(7).query() == Generator(7).query()
