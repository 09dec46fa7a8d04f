"""Groups of another number than was expected get another form, whose kernels no query waits for: it goes on with those that it
has until the others are there."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from gquery.execution import decide
from gquery.execution.runner import Runner
from gquery.kernels.kernel import Kernel
from gquery.kernels.targets import workers
from gquery.kernels.targets.background import Background
from gquery.kernels.targets.cpu import TARGET, CpuTarget
from gquery.kernels.targets.workers import Workers
from gquery.operators.thread_states import StateForm, form_of
from gquery.runtime.recent import Recent
from tests.support.quiet import wait_until_quiet
from tests.support.tuned import Tune

ROWS, GROUPS = 40_000, 5
OWN, ONE = StateForm(), StateForm(concurrent=True)
SQL = (
    "SELECT k, sum(x * 3) AS s, count(*) AS c FROM (SELECT a - b AS k, x FROM t) q WHERE x <> {n} GROUP BY k ORDER BY k"
)
KEYS = np.arange(ROWS) % GROUPS * 10**12
FAIL_SECONDS = 60


@pytest.fixture
def forms(monkeypatch: pytest.MonkeyPatch) -> list[StateForm]:
    """The form of each run of a pipeline that makes groups."""
    found: list[StateForm] = []
    plain = Runner.run

    def noted(self: Runner) -> Any:
        if (form := form_of(self.pipeline)) is not None and self.name == "cpu":
            found.append(form)
        return plain(self)

    monkeypatch.setattr(Runner, "run", noted)
    return found


class Compiler:
    """Makes kernels; in the background once it may, and says who waited for them."""

    def __init__(self) -> None:
        self.goes_on = threading.Event()
        self.waited_for: list[Kernel] = []
        self.behind: list[Kernel] = []
        self.fails = False

    def make(self, plain: Callable[..., Any], target: CpuTarget, kernel: Kernel, name: Any) -> Any:
        if threading.current_thread().name != "gquery-background":
            self.waited_for.append(kernel)
            return plain(target, kernel, name)
        self.behind.append(kernel)
        if self.fails:
            raise MemoryError
        return plain(target, kernel, name)


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Compiler]:
    compiler, plain, aside = Compiler(), CpuTarget._make, CpuTarget._compile_aside
    background = Background()

    def held(self: CpuTarget, kernel: Kernel, source: Any) -> None:  # before it has the compiler's lock
        assert compiler.goes_on.wait(FAIL_SECONDS)
        aside(self, kernel, source)

    monkeypatch.setattr(CpuTarget, "_make", lambda self, kernel, name: compiler.make(plain, self, kernel, name))
    monkeypatch.setattr(CpuTarget, "_compile_aside", held)
    monkeypatch.setattr("gquery.kernels.targets.background._background", background)
    monkeypatch.setattr(workers, "_workers", Workers(0))
    monkeypatch.setattr(TARGET, "_compiled", Recent(1000))  # other tests have compiled the same
    monkeypatch.setenv("GQUERY_CACHE_DIR", str(tmp_path))
    yield compiler
    compiler.goes_on.set()
    wait_until_quiet(background)  # what it makes would be there for the next test


@pytest.fixture
def db(tune: Tune) -> gquery.Connection:
    """Of a key that has as many values as rows, so it seems, ten thousand times fewer come: what threads have of their own is
    better then."""
    tune(tuning.threads, morsel_rows=1000)
    tune(tuning.accumulators, own_words=1000, partitioned_words=2**40)
    tune(tuning.compiling, own_kernels=10**9)
    connection = gquery.connect(device="cpu", threads=2)
    connection.sql("SET compiler = 'llvm'")
    connection.sql("SET interpret_limit = 0")
    connection.register(
        "given", pa.table({"a": KEYS + np.arange(ROWS) * 7919, "b": np.arange(ROWS) * 7919, "x": np.arange(ROWS)})
    )
    connection.sql("CREATE TABLE t AS SELECT * FROM given")
    return connection


def asked(n: int) -> str:
    return SQL.format(n=n)


def right(n: int) -> list[tuple[int, int, int]]:
    x = np.arange(ROWS)
    of_key = {int(k): (k == KEYS) & (x != n) for k in np.unique(KEYS)}
    return [(k, int(3 * x[mask].sum()), int(mask.sum())) for k, mask in of_key.items()]


def settle(db: gquery.Connection, forms: list[StateForm], n: int) -> None:
    """Ask until groups have the better form."""
    end = time.monotonic() + FAIL_SECONDS
    while forms[-1] == ONE:
        assert time.monotonic() < end
        assert db.sql(asked(n)).fetchall() == right(n)


def test_no_run_waits_for_a_better_form(db: gquery.Connection, forms: list[StateForm], compiler: Compiler) -> None:
    assert db.sql(asked(1)).fetchall() == right(1)
    compiler.waited_for.clear()
    for _ in range(3):
        assert db.sql(asked(1)).fetchall() == right(1)
    assert forms == [ONE] * 4
    assert not compiler.waited_for
    compiler.goes_on.set()
    settle(db, forms, 1)
    assert forms[-1] == OWN
    assert not compiler.waited_for
    assert 0 < len(compiler.behind) <= 2


def test_neither_does_a_first_run_of_other_constants(
    db: gquery.Connection, forms: list[StateForm], compiler: Compiler
) -> None:
    for n in (1, 1, 1):
        db.sql(asked(n)).fetchall()
    compiler.waited_for.clear()
    assert db.sql(asked(2)).fetchall() == right(2)
    assert db.sql(asked(2)).fetchall() == right(2)
    assert not compiler.waited_for
    assert forms[-2:] == [ONE, ONE]
    compiler.goes_on.set()
    settle(db, forms, 2)
    assert db.sql(asked(3)).fetchall() == right(3)
    assert forms[-1] == OWN
    plan = db._plans.find(asked(3), None, db.settings)
    assert plan is not None and plan.template == "hit"


def test_a_form_that_cannot_be_compiled_is_done_without(
    db: gquery.Connection, forms: list[StateForm], compiler: Compiler
) -> None:
    compiler.fails = True
    compiler.goes_on.set()
    for _ in range(4):
        assert db.sql(asked(1)).fetchall() == right(1)
    assert forms == [ONE] * 4


def test_what_the_queue_leaves_out_is_asked_for_again(
    db: gquery.Connection, forms: list[StateForm], compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost: list[object] = []
    add = Background.add
    monkeypatch.setattr(Background, "add", lambda self, task, name: lost.append(name))
    for _ in range(3):
        assert db.sql(asked(1)).fetchall() == right(1)
    assert len(lost) > len(set(lost)) > 0
    monkeypatch.setattr(Background, "add", add)
    compiler.goes_on.set()
    settle(db, forms, 1)


def test_what_only_numba_compiles_is_waited_for(
    db: gquery.Connection, forms: list[StateForm], compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody compiles it beside queries."""
    monkeypatch.setattr(decide, "has_drafts", lambda *_: False)
    for _ in range(2):
        assert db.sql(asked(1)).fetchall() == right(1)
    assert forms == [ONE, OWN]


def test_groups_that_change_with_the_data(db: gquery.Connection, forms: list[StateForm], compiler: Compiler) -> None:
    """A table that is swapped for one with many groups, or none, has right answers whatever form there is."""
    compiler.goes_on.set()
    db.sql(asked(1)).fetchall()
    settle(db, forms, 1)
    for rows in (
        "SELECT x AS a, 0 AS b, x FROM t",
        "SELECT * FROM t WHERE a IS NULL",
        "SELECT NULL::BIGINT AS a, b, x FROM t",
    ):
        db.sql(f"CREATE OR REPLACE TABLE u AS {rows}")
        sql = asked(-1).replace("FROM t)", "FROM u)")
        want = db.sql("SELECT count(*), count(DISTINCT a - b) + (count(*) > count(a - b))::INT FROM u").fetchall()[0]
        for _ in range(4):
            found = db.sql(sql).fetchall()
            assert (sum(c for *_, c in found), len(found)) == want
