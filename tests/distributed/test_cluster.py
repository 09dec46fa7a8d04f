"""Queries on a cluster of Dask's workers: the answers and errors of one process, lost workers, and nothing left behind."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gquery
from gquery import tuning
from gquery.cluster import worker as worker_of_cluster
from gquery.cluster.engine import be_like, this_engine
from gquery.cluster.fragments import Ended, FragmentComm, RankThread
from gquery.cluster.moving import unpacked
from tests.distributed.test_ranks import ORDERED, QUERIES, TABLES
from tests.support.harness import compare, expect
from tests.support.marks import one_in
from tests.support.paths import ROOT
from tpch import queries
from tpch.generate import files as tpch_files
from tpch.generate import generate
from tpch.oracle import Oracle
from tpch.validate import difference, order_columns

distributed = pytest.importorskip("distributed")
dask = pytest.importorskip("dask")
WORKERS = 2


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The tables of `test_ranks` as files of small row groups."""
    folder = tmp_path_factory.mktemp("cluster")
    found = {name: str(folder / f"{name}.parquet") for name in TABLES}
    for name, path in found.items():
        pq.write_table(TABLES[name], path, row_group_size=70)
    return found


@pytest.fixture(scope="module")
def db(files: dict[str, str]) -> Iterator[gquery.Connection]:
    """A connection to two workers, on which all tables are cut."""
    with (
        tuning.using(replace(tuning.worker_distribution, cut_frame_rows=1), replace(tuning.cluster, whole_bytes=0)),
        gquery.connect(device="python", cluster="local", workers=WORKERS, threads=1) as made,
    ):
        for name, path in files.items():
            made.sql(f"CREATE VIEW {name} AS SELECT * FROM '{path}'")
        yield made


@pytest.mark.parametrize("sql", one_in(2, QUERIES + ORDERED))
def test_answers(sql: str, db: gquery.Connection) -> None:
    types, want = expect(sql, TABLES)
    for _ in range(2):
        assert compare(db.sql(sql).fetchall(), want, "ORDER BY" in sql, types) is None


def test_tables_in_memory_and_stored_results(db: gquery.Connection) -> None:
    db.register("small", {"few": [0, 1, 2], "name": ["none", None, "two"]})
    db.sql("CREATE OR REPLACE TABLE counts AS SELECT few, count(*) AS n FROM t GROUP BY few")
    want = [(name, sum(f == n for f in TABLES["t"]["few"].to_pylist())) for n, name in enumerate(("none", None, "two"))]
    sql = "SELECT name, n FROM small JOIN counts USING (few) ORDER BY few"
    assert db.sql(sql).fetchall() == want
    db.register("small", {"few": [1], "name": ["another"]})
    assert db.sql(sql).fetchall() == [("another", want[1][1])]
    assert db.sql("SELECT * FROM range(3) UNION ALL VALUES (7)").fetchall() == [(0,), (1,), (2,), (7,)]


def test_a_file_that_has_changed_is_read_again(db: gquery.Connection, tmp_path: Path) -> None:
    path = tmp_path / "changing.parquet"
    for values in ([1, 2, 3], [10, None, 30, 40]):
        pq.write_table(pa.table({"v": values}), path, row_group_size=1)
        assert db.sql(f"SELECT count(*), sum(v) FROM '{path}'").fetchall() == [
            (len(values), sum(v for v in values if v is not None))
        ]


def test_text_that_is_codes_on_one_worker_alone(db: gquery.Connection, tmp_path: Path) -> None:
    """The first worker's rows repeat one text, the second one's differ all; no rank has the others' dictionary."""
    path, rows = tmp_path / "texts.parquet", 20_000
    texts = ["same"] * rows + [f"text {n * 7919 % rows}" for n in range(rows)]
    pq.write_table(pa.table({"s": texts}), path, row_group_size=5_000)
    sql = f"SELECT count(DISTINCT s), min(s), max(s), count(*) FILTER (s = 'same') FROM '{path}'"
    assert db.sql(sql).fetchall() == [(rows + 1, "same", "text 9999", rows)]


@pytest.mark.parametrize(
    ("sql", "error", "said"),
    [
        ("SELECT sum(x * 10000000000000) FROM t", gquery.OutOfRangeError, "Overflow"),
        ("SELECT CAST(text AS INTEGER) FROM t", gquery.ConversionError, "text"),
        ("SELECT (SELECT few FROM t)", gquery.CardinalityError, "more than one row"),
        ("SELECT nobody FROM t", gquery.BindError, "nobody"),
    ],
)
def test_errors_are_those_of_one_process(sql: str, error: type[Exception], said: str, db: gquery.Connection) -> None:
    with pytest.raises(error, match=said):
        db.sql(sql).fetchall()
    assert db.sql("SELECT count(*) FROM t").fetchall() == [(500,)]


def test_what_a_cluster_refuses(db: gquery.Connection, tmp_path: Path) -> None:
    path = tmp_path / "lists.parquet"
    pq.write_table(pa.table({"l": [[1], [2]], "n": [1, 2]}), path)
    with pytest.raises(gquery.NotSupportedError, match="A cluster reads no"):
        db.sql(f"SELECT l FROM '{path}'").fetchall()
    assert db.sql(f"SELECT sum(n) FROM '{path}'").fetchall() == [(3,)]
    with pytest.raises(gquery.NotSupportedError, match="no recursive query"):
        db.sql("WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT * FROM r").fetchall()
    db.set("memory_limit", "1GB")
    with pytest.raises(gquery.NotSupportedError, match="memory_limit"):
        db.sql("SELECT sum(few) FROM t").fetchall()
    db.set("memory_limit", None)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"workers": 2}, "workers is the number"),
        ({"cluster": "local", "workers": 0}, "workers takes a number"),
        ({"cluster": "local", "devices": 2}, "run on their CPUs"),
        ({"cluster": 7}, "cluster is"),
    ],
)
def test_odd_arguments(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(gquery.InterfaceError, match=said):
        gquery.connect(**{"device": "python", **arguments})


def test_all_processes_have_one_engine() -> None:
    """What is placed by other numbers than it is run by would be wrong."""
    own = this_engine()
    other = replace(tuning.distribution, merged_slot_words=tuning.distribution.merged_slot_words + 1)
    before = tuning.distribution
    try:
        be_like(own._replace(numbers=(other,)))
        assert tuning.distribution is other
    finally:
        tuning.use(before)
    with pytest.raises(gquery.OperationalError, match="A worker of the cluster has Python"):
        be_like(own._replace(versions="gquery 0.0"))


def test_connections_that_work_by_other_numbers(db: gquery.Connection) -> None:
    """A worker has one set of them: the second connection is refused, and the first goes on by its own."""
    db.sql("SELECT count(*) FROM t").fetchall()
    cluster: Any = db._cluster
    other = replace(tuning.distribution, merged_slot_words=tuning.distribution.merged_slot_words + 1)
    with gquery.connect(device="python", cluster=cluster.client, threads=1) as second:
        second.register("few", {"x": [1, 2]})
        with (
            tuning.using(other),
            pytest.raises(gquery.OperationalError, match="another connection, which works by other"),
        ):
            second.sql("SELECT sum(x) FROM few").fetchall()
        assert second.sql("SELECT max(x) FROM few").fetchall() == [(2,)]
    used = cluster.client.run(_merged_slot_words)
    assert set(used.values()) == {tuning.distribution.merged_slot_words}
    assert db.sql("SELECT count(*) FROM t").fetchall() == [(500,)]


def _merged_slot_words() -> int:
    return tuning.distribution.merged_slot_words


def test_a_connection_ends_the_clients_that_it_has_made(db: gquery.Connection) -> None:
    cluster: Any = db._cluster
    with gquery.connect(device="python", cluster=cluster.client.scheduler.address) as second:
        assert second.sql("SELECT 7").fetchall() == [(7,)]
        own: Any = second._cluster
    with gquery.connect(device="python", cluster=cluster.client) as third:
        assert third.sql("SELECT 7").fetchall() == [(7,)]
    assert (own.client.status, cluster.client.status) == ("closed", "running")


def test_a_rank_that_began_anew_says_so() -> None:
    """The attempt before sleeps on its worker until it is ended."""

    def work(comm: FragmentComm) -> tuple[int, int]:
        comm.all_gather("a", 1)
        comm.all_gather("b", 2)
        return comm.exchanges, comm.handed_over

    before, anew = RankThread(0, 1, work), RankThread(0, 1, work)
    a = before.advance([])
    b = anew.advance([[a]])
    made = anew.advance([[a], [b]])
    assert isinstance(made, Ended) and unpacked(made.made) == (2, 1)
    assert before._thread.is_alive()
    before.stop()
    before._thread.join(10)
    assert not before._thread.is_alive()


def test_explain_tells_ranks_and_what_they_exchange(db: gquery.Connection) -> None:
    sql = "SELECT few, sum(x) FROM t GROUP BY few"
    assert f"each of {WORKERS} ranks: a part of the rows, states merged" in db.explain(sql, "physical")
    text = db.explain(sql, "analyze")
    assert "rows read by rank: 250, 250" in text and "received by rank" in text


def test_a_worker_that_has_forgotten_a_plan_is_sent_it_again(db: gquery.Connection) -> None:
    """Its ranks meet all the same; nothing runs in fragments."""
    sql = "SELECT few, sum(x) FROM t GROUP BY few ORDER BY few"
    want, cluster = db.sql(sql).fetchall(), cast(Any, db._cluster)
    cluster.client.run(_forget_session, cluster.key, workers=cluster._workers[:1])
    in_fragments, cluster._run_in_fragments = cluster._run_in_fragments, None
    try:
        assert db.sql(sql).fetchall() == want
    finally:
        cluster._run_in_fragments = in_fragments


def _forget_session(key: str) -> None:
    worker_of_cluster._sessions.pop(key)


def _wait_until_reached(db: gquery.Connection, workers: int) -> None:
    """Until the connection has found out that it reaches so many workers itself."""
    until, orders = time.monotonic() + 60, cast(Any, db._cluster)._orders
    while len(orders._reached) < workers:
        assert time.monotonic() < until, orders._tried
        time.sleep(0.01)


def test_orders_by_the_scheduler_and_without_it(db: gquery.Connection) -> None:
    """The same answers and errors, though a worker is not reached, or is none of this host: with large tables all ways, too."""
    rows = 3 * tuning.cluster.beside_bytes
    db.register("large", pa.table({"n": range(rows)}))
    cluster: Any = db._cluster
    asked: list[str] = []

    def noting(way: str, call: Any) -> Any:
        def called(*given: Any, **named: Any) -> Any:
            asked.append(way)
            return call(*given, **named)

        return called

    orders = cluster._orders
    run, near, direct = cluster.client.run, orders.ran_near, orders._directly
    db.sql("SELECT 1").fetchall()
    _wait_until_reached(db, WORKERS)
    until = time.monotonic() + 60
    while len(orders._near) < WORKERS:
        assert time.monotonic() < until
        time.sleep(0.01)
    try:
        cluster.client.run = noting("scheduler", run)
        orders._directly = noting("worker", direct)
        for way, lost in (("socket", None), ("worker", orders._near), ("scheduler", orders._reached)):
            if lost is not None:
                lost.pop()
            else:
                orders.ran_near = noting(way, near)
            assert db.sql("SELECT n FROM large ORDER BY n").fetchall() == [(n,) for n in range(rows)]
            with pytest.raises(gquery.ConversionError, match="text"):
                db.sql("SELECT CAST(text AS INTEGER) FROM t").fetchall()
            orders.ran_near = near
            assert [w for w in asked if w != "scheduler" or way == "scheduler"][:2] == [way] * 2
            asked.clear()
    finally:
        cluster.client.run, orders._directly, orders.ran_near = run, direct, near
        orders._tried.clear()


def test_another_worker_at_the_same_address(db: gquery.Connection) -> None:
    """It has none of gquery's handlers: the run is made anew, and later ones go to it directly again."""
    sql = "SELECT few, sum(x) FROM t GROUP BY few ORDER BY few"
    want, cluster = db.sql(sql).fetchall(), cast(Any, db._cluster)
    assert db.sql(sql).fetchall() == want
    _wait_until_reached(db, WORKERS)
    cluster.client.run(_forget_handlers, workers=cluster._workers[:1])
    assert db.sql(sql).fetchall() == want
    assert db.sql(sql).fetchall() == want
    _wait_until_reached(db, WORKERS)


def _forget_handlers(dask_worker: Any) -> None:
    for name in [n for n in dask_worker.handlers if n.startswith("gquery_")]:
        del dask_worker.handlers[name]


def test_a_lost_worker(db: gquery.Connection) -> None:
    """One that dies in the midst of a query: it runs again, in fragments."""
    sql = "SELECT a.few, count(*) FROM t a JOIN t b ON a.few = b.few GROUP BY a.few ORDER BY ALL"
    want = db.sql(sql).fetchall()
    cluster: Any = db._cluster
    victim = min(cluster.client.run(os.getpid).values())
    cluster.client.run(_die_at_exchange, victim, 1)
    assert db.sql(sql).fetchall() == want
    assert victim not in cluster.client.run(os.getpid, on_error="ignore").values()
    assert db.sql(sql).fetchall() == want


def test_an_interrupt_stops_the_ranks(db: gquery.Connection) -> None:
    sql = "SELECT count(*) FROM t a, t b, t c WHERE a.x + b.x < c.x AND a.text < b.text AND a.d < c.d"
    threading.Timer(0.3, db.interrupt).start()
    began = time.monotonic()
    with pytest.raises(gquery.InterruptError):
        db.sql(sql).fetchall()
    assert time.monotonic() - began < 10
    assert db.sql("SELECT count(*) FROM t").fetchall() == [(500,)]


@pytest.mark.slow
def test_no_worker_is_left(files: dict[str, str]) -> None:
    """The query ends with an error, and the connection leaves no process and no thread of a rank."""
    others = set(multiprocessing.active_children())
    with gquery.connect(device="python", cluster="local", workers=2) as made:
        sql = f"SELECT count(*) FROM '{files['t']}'"
        assert made.sql(sql).fetchall() == [(500,)]
        cluster: Any = made._cluster
        cluster._link.started.scale(0)
        began = time.monotonic()
        with pytest.raises(gquery.OperationalError, match="No worker of the cluster is left"):
            made.sql(f"{sql} WHERE few = 1").fetchall()
        assert time.monotonic() - began < 30
    assert set(multiprocessing.active_children()) <= others
    assert not [t for t in threading.enumerate() if t.name.startswith("gquery-rank")]


def test_workers_that_do_not_end() -> None:
    """They are stopped, and end by no signal but one: closing raises nothing and leaves none."""
    others = set(multiprocessing.active_children())
    made = gquery.connect(device="python", cluster="local", workers=1)
    assert made.sql("SELECT 7").fetchall() == [(7,)]
    for pid in cast(Any, made._cluster).client.run(os.getpid).values():
        os.kill(pid, signal.SIGSTOP)
    with tuning.using(replace(tuning.cluster, leave_seconds=1)):
        made.close()
    assert set(multiprocessing.active_children()) <= others


@pytest.mark.slow
def test_a_scheduler_that_does_not_answer(tmp_path: Path) -> None:
    """A process that is stopped: its connections stay open, and it says nothing."""
    where = tmp_path / "scheduler.json"
    common = ["--scheduler-file", str(where), "--dashboard-address", "127.0.0.1:0"]
    scheduler = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", *common]
    )
    worker = subprocess.Popen([sys.executable, "-m", "distributed.cli.dask_worker", "--no-nanny", *common])
    try:
        while not where.exists() or not where.read_text():
            time.sleep(0.1)
        address = json.loads(where.read_text())["address"]
        with distributed.Client(address) as client:
            client.wait_for_workers(1, timeout=60)
        patient = replace(tuning.cluster, answer_seconds=60)  # where others use the machine, an answer takes seconds
        with tuning.using(patient), gquery.connect(device="python", cluster=address) as made:
            assert made.sql("SELECT sum(range) FROM range(10)").fetchall() == [(45,)]
            _wait_until_reached(made, 1)
            scheduler.send_signal(signal.SIGSTOP)
            assert made.sql("SELECT sum(range) FROM range(11)").fetchall() == [(55,)], "the workers are asked themselves"
            made.register("sent", {"x": [1, 2]})
            with (
                tuning.using(replace(patient, answer_seconds=1, leave_seconds=1)),
                pytest.raises(gquery.OperationalError, match="scheduler has not answered for 1 seconds"),
            ):
                made.sql("SELECT sum(x) FROM sent").fetchall()
            scheduler.send_signal(signal.SIGCONT)
            assert made.sql("SELECT sum(range) FROM range(12)").fetchall() == [(66,)]
            scheduler.kill()
            scheduler.wait()
            until = time.monotonic() + 60
            with pytest.raises(
                gquery.OperationalError, match="connection to the cluster's scheduler is lost|not answered"
            ):
                while time.monotonic() < until:  # until the worker hears of it, and ends
                    made.sql("SELECT sum(range) FROM range(13)").fetchall()
    finally:
        for process in (scheduler, worker):
            process.kill()
            process.wait()


@pytest.mark.parametrize(
    ("scale", "numbers", "workers"), [(0.01, (18,), 2), pytest.param(0.1, queries.NUMBERS, 3, marks=pytest.mark.slow)]
)
def test_tpch_on_workers(
    scale: float, numbers: Sequence[int], workers: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """One query, compiled; the slow tests take all, at SF0.1."""
    folder = generate(scale, tmp_path_factory.getbasetemp() / f"tpch-{scale}", echo=False)
    oracle = Oracle(scale, folder)
    oracle.prepare(numbers)
    with gquery.connect(device="cpu", cluster="local", workers=workers, threads=1) as made:
        for name, path in tpch_files(folder).items():
            made.sql(f"CREATE VIEW {name} AS SELECT * FROM '{path}'")
        for number in numbers:
            text = queries.sql(number)
            result = made.sql(text)
            want = oracle.expected(number, [str(t) for t in result.types])
            assert want is not None
            assert difference(result.fetchall(), want, order_columns(text, list(result.columns))) is None, number


@pytest.mark.slow
@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("number", [3, 9, 18, 21])
def test_a_worker_is_killed_in_every_fragment(
    number: int, direct: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """SIGKILL as a fragment of one rank begins, for each fragment of four queries; or at each exchange of ranks that meet."""
    folder = generate(0.01, tmp_path_factory.getbasetemp() / "tpch")
    sql = (ROOT / "tpch" / "queries" / f"q{number:02}.sql").read_text()
    with (
        # Behind it Dask looks whether a worker has come again, and ends one that was killed once more just then.
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"}),
        tuning.using(replace(tuning.cluster, whole_bytes=100_000)),
        gquery.connect(device="python", cluster="local", workers=3, threads=1) as made,
    ):
        for path in sorted(Path(folder).glob("*.parquet")):
            made.sql(f"CREATE VIEW {path.stem} AS SELECT * FROM '{path}'")
        want = made.sql(sql).fetchall()
        cluster: Any = made._cluster
        if not direct:
            cluster._run_directly = lambda *of_a_run: None
            assert made.sql(sql).fetchall() == want
        (sent,) = [s for _, s in cluster._plans.items()]
        for fragment in range(sent.exchanges + (not direct)):
            victim = sorted(cluster.client.run(os.getpid).values())[fragment % 3]
            cluster.client.run(_die_at_exchange if direct else _die_at, victim, fragment)
            assert made.sql(sql).fetchall() == want
            _wait_for_another(cluster.client, victim)


def _wait_for_another(client: Any, victim: int) -> None:
    """Until there are three workers without that one. It dies behind a timer, and the scheduler hears of it later still."""
    until = time.monotonic() + 120
    pids: set[int] = set()
    while len(pids) != 3 or victim in pids:
        assert time.monotonic() < until, f"worker {victim} is not replaced: {pids}"
        time.sleep(0.05)
        pids = set(client.run(os.getpid, on_error="ignore").values())


def _die_at(pid: int, exchange: int) -> None:
    """Have the worker of this process id die once it has begun the fragment behind so many exchanges."""
    from gquery.cluster import fragments

    if os.getpid() != pid:
        return
    advance = fragments.RankThread.advance

    def dying(self: fragments.RankThread, received: fragments.Received) -> fragments.Outcome:
        if len(received) >= exchange:
            threading.Timer(0.002, os.kill, (pid, signal.SIGKILL)).start()
        return advance(self, received)

    pytest.MonkeyPatch().setattr(fragments.RankThread, "advance", dying)  # the process dies with it


def _die_at_exchange(pid: int, exchange: int) -> None:
    """Have the worker of this process id die when a rank of it that meets others comes to an exchange."""
    from gquery.cluster import direct_comm

    if os.getpid() != pid:
        return
    meet = direct_comm.DirectComm._meet

    def dying(self: direct_comm.DirectComm, call: str, values: Sequence[object]) -> list[Any]:
        if self.exchanges >= exchange:
            os.kill(pid, signal.SIGKILL)
        return meet(self, call, values)

    pytest.MonkeyPatch().setattr(direct_comm.DirectComm, "_meet", dying)  # the process dies with it
