"""DB-API 2.0: what PEP 249 asks for, its users (pandas, SQLAlchemy's pool, jupysql), interrupts, and threads."""

from __future__ import annotations

import contextlib
import datetime
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import gquery
from gquery import errors
from gquery.runtime.interrupt import Running, check, holding

TABLE = pa.table({"k": [1, 2, 3], "s": ["x", None, "z"], "d": [datetime.date(2024, 1, d) for d in (1, 2, 3)]})
LONG = "SELECT count(*) FROM range(100000000) a(x), range(1000000) b(y) WHERE x * y % 7 = 3"


@pytest.fixture
def db() -> Iterator[gquery.Connection]:
    with gquery.connect(device="cpu", threads=2) as connection:
        connection.register("t", TABLE)
        yield connection


@pytest.fixture
def sigint() -> Iterator[None]:
    """Python's own handler: a process that was started in the background, as by a shell's ``&``, ignores the signal."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


# ---- the specification -----------------------------------------------------------------------------------------------


def test_module() -> None:
    assert (gquery.apilevel, gquery.threadsafety, gquery.paramstyle) == ("2.0", 1, "qmark")
    assert issubclass(gquery.Warning, Exception) and issubclass(gquery.Error, Exception)
    assert issubclass(gquery.InterfaceError, gquery.Error) and issubclass(gquery.DatabaseError, gquery.Error)
    for name in ("Data", "Operational", "Integrity", "Internal", "Programming", "NotSupported"):
        assert issubclass(getattr(gquery, f"{name}Error"), gquery.DatabaseError)
        assert getattr(gquery.Connection, f"{name}Error") is getattr(gquery, f"{name}Error")
    assert gquery.Date(2024, 1, 2) == datetime.date(2024, 1, 2)
    assert gquery.Time(1, 2, 3) == datetime.time(1, 2, 3)
    assert gquery.Timestamp(2024, 1, 2, 3, 4, 5) == datetime.datetime(2024, 1, 2, 3, 4, 5)
    moment = time.mktime((2024, 1, 2, 3, 4, 5, 0, 0, -1))
    assert gquery.DateFromTicks(moment) == datetime.date(2024, 1, 2)
    assert gquery.TimeFromTicks(moment) == datetime.time(3, 4, 5)
    assert gquery.TimestampFromTicks(moment) == datetime.datetime(2024, 1, 2, 3, 4, 5)
    assert gquery.Binary(b"x") == b"x"


def test_cursor(db: gquery.Connection) -> None:
    cursor = db.cursor()
    assert (cursor.description, cursor.rowcount, cursor.arraysize, cursor.rownumber) == (None, -1, 1, None)
    with pytest.raises(gquery.ProgrammingError, match="nothing was executed"):
        cursor.fetchone()
    cursor.execute("SELECT k, s, d, k * 1.5 AS m, k / 2 AS f FROM t ORDER BY k")
    assert cursor.description is not None
    assert [d[:2] for d in cursor.description][:3] == [("k", "BIGINT"), ("s", "VARCHAR"), ("d", "DATE")]
    assert all(len(d) == 7 for d in cursor.description)
    codes = [d[1] for d in cursor.description]
    assert [codes[0] == gquery.NUMBER, codes[1] == gquery.STRING, codes[2] == gquery.DATETIME] == [True] * 3
    assert [codes[3] == gquery.NUMBER, codes[4] == gquery.NUMBER, codes[1] == gquery.NUMBER] == [True, True, False]
    assert cursor.rowcount == 3
    assert cursor.fetchone()[:2] == (1, "x")  # type: ignore[index]
    assert cursor.rownumber == 1
    cursor.arraysize = 2
    assert [r[0] for r in cursor.fetchmany()] == [2, 3]
    assert (cursor.fetchone(), cursor.fetchall(), cursor.fetchmany(5)) == (None, [], [])
    assert [r[0] for r in cursor.execute("SELECT k FROM t ORDER BY k DESC")] == [3, 2, 1]
    assert not hasattr(cursor, "nextset") and not hasattr(cursor, "callproc")
    cursor.setinputsizes([1])
    cursor.setoutputsize(1, 0)


def test_statements_that_give_no_rows(db: gquery.Connection) -> None:
    cursor = db.cursor()
    cursor.execute("CREATE TABLE u AS SELECT * FROM t WHERE k > 1")
    assert (cursor.description, cursor.rowcount) == (None, 2)
    with pytest.raises(gquery.ProgrammingError, match="no query"):
        cursor.fetchall()
    cursor.execute("DROP TABLE u")
    assert (cursor.description, cursor.rowcount) == (None, -1)
    assert cursor.execute("SHOW TABLES").fetchall() == [("t",)]
    db.commit()
    db.rollback()


def test_parameters(db: gquery.Connection) -> None:
    cursor = db.cursor()
    assert cursor.execute("SELECT s FROM t WHERE k = ? OR d = ?", (3, gquery.Date(2024, 1, 1))).fetchall() == [
        ("x",),
        ("z",),
    ]
    assert cursor.execute("SELECT k FROM t WHERE s = $name", {"name": "z"}).fetchall() == [(3,)]
    cursor.executemany("SELECT k FROM t WHERE k = ?", [[1], [2]])
    assert cursor.fetchall() == [(2,)]
    with pytest.raises(gquery.ProgrammingError):
        cursor.execute("SELECT k FROM nowhere")
    with pytest.raises(gquery.ProgrammingError):
        cursor.fetchall()


def test_closing(db: gquery.Connection) -> None:
    with db.cursor() as cursor:
        cursor.execute("SELECT 1")
    cursor.close()
    uses: list[Callable[[], Any]] = [cursor.fetchall, lambda: cursor.execute("SELECT 1")]
    for use in uses:
        with pytest.raises(gquery.InterfaceError, match="closed"):
            use()
    open_cursor = db.cursor()
    db.close()
    uses = [db.cursor, db.commit, db.rollback, lambda: open_cursor.execute("SELECT 1")]
    for use in uses:
        with pytest.raises(gquery.InterfaceError, match="closed"):
            use()


# ---- those who use it ------------------------------------------------------------------------------------------------


def test_pandas_reads_sql(db: gquery.Connection) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # "pandas only supports SQLAlchemy": it means "tests"
        frame = pd.read_sql("SELECT k, s FROM t WHERE k > ? ORDER BY k", db, params=[1])
        assert frame["k"].tolist() == [2, 3]
        assert frame["s"].isna().tolist() == [True, False]
        pieces = list(pd.read_sql_query("SELECT k FROM t", db, chunksize=2))
        assert [len(p) for p in pieces] == [2, 1]
        with pytest.raises((pd.errors.DatabaseError, errors.CatalogError), match="nowhere"):
            pd.read_sql("SELECT * FROM nowhere", db)
    assert db.cursor().execute("SELECT s, k FROM t LIMIT 1").df()["k"].tolist() == [1]


def test_sqlalchemy_pool() -> None:
    pool = pytest.importorskip("sqlalchemy.pool")

    def connect() -> gquery.Connection:
        return gquery.connect(device="python").register("t", TABLE)

    connections = pool.QueuePool(connect, pool_size=2)
    for _ in range(3):
        connection = connections.connect()
        cursor = connection.cursor()
        cursor.execute("SELECT sum(k) FROM t")
        assert cursor.fetchall() == [(6,)]
        connection.close()
    connections.dispose()


def test_jupysql(db: gquery.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLOOMBER_STATS_ENABLED", "false")
    pytest.importorskip("sql.magic")
    from IPython.core.interactiveshell import InteractiveShell

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shell = InteractiveShell()
        shell.run_line_magic("load_ext", "sql")
        shell.push({"db": db})
        shell.run_line_magic("config", "SqlMagic.feedback = 0")
        shell.run_line_magic("sql", "db --alias g")
        result = shell.run_line_magic("sql", "SELECT k, s FROM t ORDER BY k")
        assert [tuple(r) for r in result] == [(1, "x"), (2, None), (3, "z")]
        assert result.DataFrame()["k"].tolist() == [1, 2, 3]
        InteractiveShell.clear_instance()


# ---- interrupts ------------------------------------------------------------------------------------------------------


def interrupted(db: gquery.Connection, query: str, stop: Callable[[], Any], after: float = 0.25) -> float:
    """Seconds from the call of ``stop`` to the error."""
    at: list[float] = []

    def call() -> None:
        at.append(time.perf_counter())
        stop()

    timer = threading.Timer(after, call)
    rescue = threading.Timer(after + 30, db.interrupt)  # so that a stop that is lost fails a test and does not hang it
    timer.start()
    rescue.start()
    try:
        with pytest.raises((errors.InterruptError, KeyboardInterrupt)):
            db.sql(query).fetchall()
    finally:
        timer.cancel()
        rescue.cancel()
    return time.perf_counter() - at[0]


@pytest.mark.parametrize("target", ["cpu", "python"])
@pytest.mark.parametrize(
    "query", [LONG, "SELECT max(x * 7 % 13) FROM range(100000000000) t(x)", "SELECT k FROM t, range(10000000000) u(i)"]
)
def test_interrupt(target: str, query: str) -> None:
    with gquery.connect(device=target, threads=2, memory_limit="2GB") as db:
        db.register("t", TABLE)
        if query.startswith("SELECT k"):
            query = f"SELECT count(*) FROM ({query} WHERE (i * k) % 1000 = 1)"
        interrupted(db, query, db.interrupt, 0.1)  # compiling a kernel ends before an interrupt is looked at
        assert interrupted(db, query, db.interrupt) < 2
        gc.collect()
        assert db.device.used_bytes < 1_000_000
        assert db.sql("SELECT sum(k) FROM t").fetchall() == [(6,)]


def test_memory_is_free_while_the_error_is_held() -> None:
    with gquery.connect(device="cpu", threads=1, memory_limit="2GB") as db:
        query = "SELECT count(*) FROM (SELECT DISTINCT x FROM range(3000000) t(x)) a(x), range(10000000) b(y) WHERE x * y = 3"
        threading.Timer(0.75, db.interrupt).start()
        with pytest.raises(errors.OperationalError, match="interrupted") as raised:
            db.sql(query).fetchall()
        assert raised.type is errors.InterruptError
        assert db.device.used_bytes < 10_000_000


def test_ctrl_c(db: gquery.Connection, sigint: None) -> None:
    """A signal ends the query on the main thread; workers have left its memory by then."""
    main = threading.main_thread().ident
    assert main is not None
    assert interrupted(db, LONG, lambda: signal.pthread_kill(main, signal.SIGINT)) < 2
    assert db.sql("SELECT sum(k) FROM t").fetchall() == [(6,)]


def test_an_interrupt_stops_what_runs_then_and_nothing_later(db: gquery.Connection) -> None:
    db.interrupt()
    assert db.sql("SELECT 1").fetchall() == [(1,)]
    results: list[Any] = []

    def run() -> None:
        try:
            results.append(db.cursor().execute(LONG))
        except errors.InterruptError as error:
            results.append(error)

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    db.cursor().interrupt()
    for thread in threads:
        thread.join(10)
    assert [type(r) for r in results] == [errors.InterruptError] * 2
    assert db.sql("SELECT 2").fetchall() == [(2,)]


def test_ctrl_c_that_got_lost_still_ends_the_query(sigint: None) -> None:
    """A callback that a library calls from C cannot raise: the interrupt is noticed at the next check all the same, or when
    the run ends."""
    before = signal.getsignal(signal.SIGINT)
    with Running().one():
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(errors.InterruptError):
            check()
    assert signal.getsignal(signal.SIGINT) is before
    check()
    with pytest.raises(errors.InterruptError), Running().one(), contextlib.suppress(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    check()


def test_ctrl_c_waits_for_what_must_not_be_left_half_done(sigint: None) -> None:
    done = []
    with pytest.raises(errors.InterruptError), Running().one():
        with holding(), holding():
            signal.raise_signal(signal.SIGINT)
            done.append("all of it")
        done.append("nothing more")
    assert done == ["all of it"]
    with pytest.raises(KeyboardInterrupt), Running().one():
        signal.raise_signal(signal.SIGINT)
    check()


IMPORTED = """
import signal, sys, threading, time

import gquery

signal.signal(signal.SIGINT, signal.default_int_handler)
db = gquery.connect(device="cpu", threads=1)
db.sql("SET interpret_limit = 0")
main = threading.main_thread().ident


def stop():
    while sys.argv[1] not in sys.modules:
        time.sleep(0.001)
    time.sleep(float(sys.argv[2]))
    signal.pthread_kill(main, signal.SIGINT)


threading.Thread(target=stop).start()
query = "SELECT sum(x * 3) FROM range(1000) t(x) WHERE x > 4"
try:
    db.sql(query).fetchall()
    print("too late")
except (KeyboardInterrupt, gquery.InterruptError) as error:
    print(type(error).__name__)
print(db.sql(query).fetchall())
"""


@pytest.mark.parametrize(
    ("compiler", "package", "later"), [("numba", "numba", 0.05), ("llvm", "llvmlite.binding", 0.0)]
)
def test_ctrl_c_while_the_compiler_is_imported(compiler: str, package: str, later: float, tmp_path: Path) -> None:
    """It would be broken for as long as the process lives. The compiler works on a thread of its own, so the query need not wait
    for it."""
    environment = os.environ | {"GQUERY_CACHE_DIR": str(tmp_path / "cache"), "GQUERY_COMPILER": compiler}
    command = [sys.executable, "-c", IMPORTED, package, str(later)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    raised, answer = run.stdout.split("\n")[:2]
    assert raised in ("InterruptError", "KeyboardInterrupt"), run.stderr
    assert answer == "[(1498470,)]", run.stderr


def test_a_handler_of_the_users_own_stays() -> None:
    seen: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: seen.append(number))
    try:
        with Running().one():
            signal.raise_signal(signal.SIGINT)
            check()
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [signal.SIGINT]


def test_runs_within_runs() -> None:
    outer, inner = Running(), Running()
    with outer.one():
        with inner.one():
            assert (outer.stop(), inner.stop()) == (1, 0)
            with pytest.raises(errors.InterruptError):
                check()
        with pytest.raises(errors.InterruptError):
            check()
    check()
    assert outer.stop() == 0


# ---- threads ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["cpu", "python"])
def test_a_cursor_a_thread(target: str, tmp_path: Path) -> None:
    """Plans, loaded columns and kernels are shared by threads that all begin at once."""
    import pyarrow.parquet as pq

    rng = np.random.default_rng(5)
    rows = 20_000
    table = pa.table(
        {"k": rng.integers(0, 50, rows), "v": rng.random(rows), "s": [f"name {i % 300}" for i in range(rows)]}
    )
    pq.write_table(table, tmp_path / "x.parquet")
    queries = [
        f"SELECT k, count(*), min(s), max(upper(s)) FROM '{tmp_path}/x.parquet' GROUP BY k ORDER BY k",
        "SELECT t.k, u.s FROM t JOIN t u ON t.k = u.k AND t.v < 0.001 AND u.v > 0.999 ORDER BY ALL",
        "SELECT s || '!' AS w, sum(k) FROM t GROUP BY w ORDER BY w LIMIT 5",
        "SELECT count(*) FROM t WHERE s LIKE '%7%' AND k::VARCHAR = '7'",
        "SELECT k::VARCHAR || s FROM t WHERE v < 0.002 ORDER BY 1",
    ]
    with gquery.connect(device=target, threads=2) as alone:
        expected = [alone.register("t", table).sql(q).fetchall() for q in queries]
    with gquery.connect(device=target, threads=2) as db:
        db.register("t", table)
        start = threading.Barrier(8)

        def work(number: int) -> None:
            start.wait()
            with db.cursor() as cursor:
                for turn in range(2 * len(queries)):
                    at = (number + turn) % len(queries)
                    assert cursor.execute(queries[at]).fetchall() == expected[at]
                    name = f"own{number}"
                    cursor.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT {turn} AS n")
                    assert cursor.execute(f"SELECT n FROM {name}").fetchall() == [(turn,)]

        with ThreadPoolExecutor(8) as pool:
            for done in [pool.submit(work, n) for n in range(8)]:
                done.result()


def test_threads_that_lower_one_plan_at_once_run_one_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each lowering gives columns ids of its own, and kernels are kept by the plan: those of one fit no other's frames."""
    import gquery.planner.lower as lowering

    query = "SELECT count(*) FROM t JOIN t u ON t.x + 1 = u.x * 2"
    lower, made, other_ran = lowering.lower, threading.Event(), threading.Event()

    def late(*arguments: Any) -> Any:
        program = lower(*arguments)
        if not made.is_set():  # the first thread: its program waits until the other's has run
            made.set()
            assert other_ran.wait(timeout=60)
        return program

    with gquery.connect(device="python") as db:
        db.register("t", pa.table({"x": list(range(100))}))
        expected = db.sql(query + " ").fetchall()
        db._templates.clear()  # that text's would serve the other
        monkeypatch.setattr(lowering, "lower", late)
        with db.cursor() as one, db.cursor() as other, ThreadPoolExecutor(1) as pool:
            first = pool.submit(lambda: one.execute(query).fetchall())
            assert made.wait(timeout=60)
            assert other.execute(query).fetchall() == expected
            other_ran.set()
            assert first.result() == expected


def test_fetching_begins_anew_behind_all_rows() -> None:
    """As DuckDB's relations do; a cursor gives each row once, as PEP 249 says."""
    db = gquery.connect(device="python")
    relation = db.sql("SELECT x FROM range(3) t(x) ORDER BY x")
    assert relation.fetchall() == relation.fetchall() == [(0,), (1,), (2,)]
    assert relation.fetchone() == (0,)
    assert relation.fetchall() == [(1,), (2,)]
    assert relation.fetchmany(2) == [(0,), (1,)]
    cursor = db.cursor().execute("SELECT x FROM range(3) t(x) ORDER BY x")
    assert cursor.fetchall() == [(0,), (1,), (2,)]
    assert cursor.fetchall() == []


def test_execute_runs_the_statement() -> None:
    """So that errors of the data come there, and not where rows are fetched."""
    db = gquery.connect(device="python")
    db.sql("SELECT CAST(x AS TINYINT) FROM range(300) t(x)")
    with pytest.raises(gquery.ConversionError):
        db.execute("SELECT CAST(x AS TINYINT) FROM range(300) t(x)")
    with pytest.raises(gquery.ConversionError):
        db.cursor().execute("SELECT CAST(x AS TINYINT) FROM range(300) t(x)")
    with pytest.raises(gquery.ConversionError):
        gquery.execute("SELECT CAST(x AS TINYINT) FROM range(300) t(x)")
