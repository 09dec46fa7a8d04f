"""Mutated statements: gquery answers as DuckDB does, or raises one of its errors.

``make mutants`` runs 100,000. A failure prints the seed and the statement, made small; the same seed makes it again
(``python -m tests.support.mutation_run 1200 1201``).
"""

from __future__ import annotations

import os
import random
import threading
import time

import pytest

from tests.support import mutation_run
from tests.support.mutation import mutated, shrunk, tokens
from tests.support.mutation_pools import Pool, pools
from tests.support.mutation_run import BATCH, Judge, Watchdog, counted

COUNT = int(os.environ.get("GQUERY_MUTANTS", "1250"))
PLAIN = [p for p in pools() if not p.name.startswith("differential")]


@pytest.mark.long
@pytest.mark.parametrize("pool", PLAIN, ids=lambda p: p.name)
def test_the_statements_themselves(pool: Pool) -> None:
    judge = Judge(pool, Watchdog())
    for sql in pool.statements:
        outcome = judge.judge(sql)
        assert outcome.kind == "same", f"{outcome}\n{sql}"


@pytest.mark.long
@pytest.mark.parametrize("batch", range(max(1, COUNT // BATCH)))
def test_mutants(batch: int) -> None:
    counts, bad = counted(range(batch * BATCH, (batch + 1) * BATCH))
    accepted = counts["accepted"]
    wrong = counts["differs"] + counts["foreign"]
    # one in a thousand at most, over all of them: two of a batch are chance, three are a kind
    assert not wrong and accepted <= 2, "\n".join(bad)


def test_a_mutant_is_that_of_its_seed() -> None:
    statements = pools()[0].statements
    first, second = (mutated(statements[0], statements, random.Random(5)) for _ in range(2))
    assert first == second != statements[0]


def test_what_fails_is_made_small() -> None:
    sql = "SELECT a, b + 1 FROM t WHERE a > 1 AND b IN (1, 2) ORDER BY a"
    assert shrunk(sql, lambda s: "IN" in tokens(s) and "t" in tokens(s)) == "t IN"


def test_what_burns_time_is_slow_and_what_waits_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other work on the machine makes nothing slow."""
    watchdog, told = Watchdog(), threading.Event()
    monkeypatch.setattr(mutation_run, "SECONDS", 0.2)
    watchdog.start(told.set)
    time.sleep(0.5)
    assert not told.is_set() and not watchdog.end()
    watchdog.start(told.set)
    until = time.process_time() + 5
    while not told.is_set() and time.process_time() < until:
        sum(range(1000))
    assert told.is_set() and watchdog.end()
    monkeypatch.setattr(mutation_run, "MOST_SECONDS", 0.2)
    told.clear()
    watchdog.start(told.set)
    assert told.wait(10) and watchdog.end()


def test_the_judge_sees_every_kind() -> None:
    judge = Judge(next(p for p in pools() if p.name == "statements"), Watchdog())
    kinds = {sql: judge.judge(sql).kind for sql in ("SELECT a FROM t", "SELECT a::HUGEINT FROM t", "SELECT FROM WHERE")}
    assert list(kinds.values()) == ["same", "refused", "wrong"]
    assert judge._compared("SELECT 2", (["a"], [(1,)]), (["a"], [(2,)], ["INTEGER"])).kind == "differs"
