"""What becomes of a cluster's runs where messages are lost, data is taken away, and connections close in the midst of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from tests.support.tuned import Tune
from tests.support.two_workers import two_workers, with_files

pytest.importorskip("distributed")

from gquery.cluster import direct, direct_comm, host_sockets, worker
from gquery.distributed.transport import RankAbortedError

TABLES = {"t": pa.table({"k": np.arange(900) % 7, "v": np.arange(900)})}
SQL = "SELECT k, count(*), sum(v) FROM t GROUP BY k ORDER BY k"
WANT = [(k, len(range(k, 900, 7)), sum(range(k, 900, 7))) for k in range(7)]
LONG = "SELECT count(*) FROM t a, t b, t c WHERE a.v * b.v + c.v < 17 AND a.k < c.v"


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with two_workers() as made:
        yield made


@pytest.fixture(params=["sockets of the host", "Dask's connections"])
def db(
    request: pytest.FixtureRequest, client: Any, tmp_path: Path, tune: Tune, monkeypatch: pytest.MonkeyPatch
) -> Iterator[gquery.Connection]:
    tune(tuning.cluster, whole_bytes=0)
    if request.param == "Dask's connections":
        monkeypatch.setattr(direct, "listening", lambda: None)
    with gquery.connect(device="python", cluster=client, workers=2, threads=1) as made:
        with_files(made, TABLES, tmp_path, 100)
        if request.param == "sockets of the host":
            _near(made)
        yield made


def _near(db: gquery.Connection) -> None:
    """Wait until workers have answered through sockets of the host: their orders go there from then on."""
    assert db.sql("SELECT max(v) FROM t").fetchall() == [(899,)]
    cluster: Any = db._cluster
    _until(lambda: cluster._orders._near.issuperset(cluster._workers))


class _InTime(threading.Thread):
    """A query on a thread of its own, which is interrupted where it takes too long."""

    def __init__(self, db: gquery.Connection, sql: str) -> None:
        super().__init__(daemon=True)
        self._db, self._sql = db, sql
        self._made: list[tuple[Any, ...]] | BaseException = TimeoutError()
        self.start()

    def run(self) -> None:
        try:
            self._made = self._db.sql(self._sql).fetchall()
        except BaseException as error:
            self._made = error

    def made(self, seconds: float = 30) -> list[tuple[Any, ...]]:
        """Its rows, or its error; TimeoutError where it waits still."""
        self.join(seconds)
        if self.is_alive():
            self._db.interrupt()
            self.join(seconds)
            raise TimeoutError
        if isinstance(self._made, BaseException):
            raise self._made
        return self._made


def _threads(name: str) -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name.startswith(name)]


def _ranks() -> list[threading.Thread]:
    return _threads("gquery-rank")


def _until(holds: Callable[[], bool], seconds: float = 20) -> None:
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.02)


def _losing(monkeypatch: pytest.MonkeyPatch, operation: str, number: int) -> list[str]:
    """Have a message of an operation go nowhere, as where a connection breaks behind the last byte; those that did."""
    sent, on_line, lost = direct_comm.Sender.send, host_sockets.Line.send, list[str]()

    def send_on(self: host_sockets.Line, name: str, *message: Any) -> None:
        if name == operation.removeprefix("gquery_"):
            lost.append(name)
            if len(lost) == number:
                return
        on_line(self, name, *message)

    def send(self: direct_comm.Sender, place: str, name: str, **message: Any) -> Future[Any]:
        if name == operation:
            lost.append(name)
            if len(lost) == number:
                nothing = Future[Any]()
                nothing.set_result(None)
                return nothing
        return sent(self, place, name, **message)

    monkeypatch.setattr(direct_comm.Sender, "send", send)
    monkeypatch.setattr(host_sockets.Line, "send", send_on)
    return lost


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_message_is_lost(number: int, db: gquery.Connection, monkeypatch: pytest.MonkeyPatch, tune: Tune) -> None:
    """A rank that waits asks whether it was sent, and the run is made anew."""
    tune(tuning.cluster, ask_seconds=0.1)
    lost = _losing(monkeypatch, "gquery_hand_over", number)
    assert _InTime(db, SQL).made() == WANT and len(lost) >= number
    assert _InTime(db, SQL).made() == WANT


def test_ranks_do_not_hear_that_one_has_failed(db: gquery.Connection, monkeypatch: pytest.MonkeyPatch, tune: Tune) -> None:
    tune(tuning.cluster, ask_seconds=0.1)
    assert db.sql(SQL).fetchall() == WANT
    ran, sent = worker.run_rank, direct_comm.Sender.send

    def run_rank(session: Any, request: Any, *others: Any) -> Any:
        if request.rank == 1:
            raise gquery.ConversionError("of rank 1")
        return ran(session, request, *others)

    def send(self: direct_comm.Sender, place: str, name: str, **message: Any) -> Future[Any]:
        if name == "gquery_abort":
            lost = Future[Any]()
            lost.set_exception(OSError("no way there"))
            return lost
        return sent(self, place, name, **message)

    monkeypatch.setattr(direct, "run_rank", run_rank)
    monkeypatch.setattr(direct_comm.Sender, "send", send)
    with pytest.raises(gquery.ConversionError, match="of rank 1"):
        _InTime(db, SQL).made()
    _until(lambda: not _ranks())


def test_a_rank_that_is_slow_to_begin_is_waited_for(
    db: gquery.Connection, monkeypatch: pytest.MonkeyPatch, tune: Tune
) -> None:
    """And so is one whose stage takes long: nothing is lost, and nothing runs in fragments."""
    tune(tuning.cluster, ask_seconds=0.02)
    assert db.sql(SQL).fetchall() == WANT
    start, ran = direct._Rank.start, worker.run_rank

    def slow_start(self: direct._Rank) -> None:
        threading.Timer(0.5 * self.request.rank, start, (self,)).start()

    def slow_run(session: Any, request: Any, *others: Any) -> Any:
        time.sleep(0.3 * request.rank)
        return ran(session, request, *others)

    monkeypatch.setattr(direct._Rank, "start", slow_start)
    monkeypatch.setattr(direct, "run_rank", slow_run)
    monkeypatch.setattr(cast(Any, db._cluster), "_run_in_fragments", None)
    assert _InTime(db, SQL).made() == WANT


def test_an_order_that_does_not_come(db: gquery.Connection, monkeypatch: pytest.MonkeyPatch, tune: Tune) -> None:
    """The connection is killed when one of two workers has its order: the rank there does not wait for ever. Where it goes on,
    and the order was lost on its way through a socket, the run is made anew."""
    tune(tuning.cluster, ask_seconds=0.02, answer_seconds=1)
    assert db.sql(SQL).fetchall() == WANT
    start = direct._Rank.start
    monkeypatch.setattr(direct._Rank, "start", lambda self: start(self) if self.request.rank == 0 else None)
    asked = _InTime(db, SQL)
    _until(lambda: len(_ranks()) == 1)
    _until(lambda: not _ranks())
    if cast(Any, db._cluster)._orders._near:
        assert asked.made() == WANT
        return
    db.interrupt()
    with pytest.raises(gquery.InterruptError):
        asked.made()


def test_replicas_of_a_table_in_memory_are_dropped(client: Any, db: gquery.Connection) -> None:
    """Dask's memory manager leaves one copy of what was sent to all: a worker that needs it gets it from there."""
    db.register("m", TABLES["t"])
    sql, cluster = SQL.replace("FROM t", "FROM m"), cast(Any, db._cluster)
    assert db.sql(sql).fetchall() == WANT
    manager = client.cluster.scheduler.extensions["amm"]
    _until(lambda: bool(client.sync(_run_once, manager)) and all(len(v) <= 1 for v in client.who_has().values()))
    client.run(_forget, cluster.key)
    cluster._run_in_fragments = None
    assert _InTime(db, sql).made() == WANT


async def _run_once(manager: Any) -> bool:
    manager.run_once()
    return True


def _forget(key: str) -> None:
    worker._sessions.pop(key, None)


def test_a_connection_closes_while_its_query_runs(client: Any, tmp_path: Path, tune: Tune) -> None:
    """The query ends with an error, and no rank goes on, wherever its worker is."""
    tune(tuning.cluster, whole_bytes=0)
    made = gquery.connect(device="python", cluster=client, workers=2, threads=1)
    with_files(made, TABLES, tmp_path, 100)
    asked = _InTime(made, LONG)
    _until(lambda: len(_ranks()) == 2)
    key = cast(Any, made._cluster).key
    made.close()
    with pytest.raises(gquery.Error):
        asked.made()
    _until(lambda: not _ranks())
    assert key not in worker._sessions


def test_an_order_that_comes_when_its_connection_has_closed(client: Any, db: gquery.Connection) -> None:
    """It begins nothing."""
    assert db.sql(SQL).fetchall() == WANT
    cluster: Any = db._cluster
    ordered: list[direct.Order] = []
    orders = cluster._orders.ran

    def noting(order: direct.Order, workers: Any) -> Any:
        ordered.append(order)
        return orders(order, workers)

    cluster._orders.ran, cluster._orders.ran_near = noting, lambda *order: None
    cluster._plans.clear()
    assert db.sql(SQL).fetchall() == WANT
    db.close()
    (order,) = ordered
    assert order.plan is not None
    late = order._replace(requests=tuple([r._replace(run=f"late {cluster.key}") for r in order.requests]))
    found = client.run(direct.run_ranks, late)
    assert all(isinstance(r.error, gquery.OperationalError) for ran in found.values() for r in ran.values()), found
    assert cluster.key not in worker._sessions


def test_connections_and_threads_at_once(client: Any, tmp_path: Path, tune: Tune) -> None:
    """Two connections, each asked by two threads: their runs do not meet."""
    tune(tuning.cluster, whole_bytes=0)
    connections = [gquery.connect(device="python", cluster=client, workers=2, threads=1) for _ in range(2)]
    try:
        for made in connections:
            with_files(made, TABLES, tmp_path, 100)
        asked = [
            (n, _InTime(made, f"SELECT k, count(*), sum(v) FROM t WHERE v >= {n % 3} GROUP BY k ORDER BY k"))
            for n in range(6)
            for made in connections
        ]
        for n, query in asked:
            kept = [range(k, 900, 7)[(k < n % 3) :] for k in range(7)]
            assert query.made() == [(k, len(rows), sum(rows)) for k, rows in enumerate(kept)]
    finally:
        for made in connections:
            made.close()


def test_workers_of_this_host_are_asked_through_its_sockets(client: Any, tmp_path: Path, tune: Tune) -> None:
    """Where one listens no more at its name, the run is made in fragments, and later ones as the first."""
    tune(tuning.cluster, whole_bytes=0)
    with gquery.connect(device="python", cluster=client, workers=2, threads=1) as db:
        with_files(db, TABLES, tmp_path, 100)
        _near(db)
        cluster: Any = db._cluster
        orders, in_fragments = cluster._orders, cluster._run_in_fragments
        ran, orders.ran, cluster._run_in_fragments = orders.ran, None, None
        assert db.sql(SQL).fetchall() == WANT
        with pytest.raises(gquery.ConversionError, match="abc"):
            db.sql("SELECT sum(CAST(CASE WHEN v = 800 THEN 'abc' ELSE '1' END AS INT)) FROM t").fetchall()
        assert db.sql(SQL).fetchall() == WANT and not direct.answered
        orders.ran, cluster._run_in_fragments = ran, in_fragments
        orders._names = dict.fromkeys(orders._names, "gquery-nobody")
        assert db.sql(SQL).fetchall() == WANT and not orders._near
        _near(db)


def test_who_reads_a_socket_does_not_wait_for_one() -> None:
    """A worker is greeted while all that goes its way is full, and more is to come: it answers, and all is read."""
    name = direct.listening()
    if name is None:
        pytest.skip("the system has no abstract names of sockets")
    line, go_on, reached = direct_comm.lines.to(name), threading.Event(), threading.Event()
    assert line is not None
    direct_comm.inboxes.end_all("ended", RankAbortedError("the run has ended"))

    def hold_up(number: int, data: object) -> None:
        go_on.wait(20)

    direct.answered["holds up"] = hold_up
    line.send("answer", ("holds up", 0, b""))
    direct.greet(name, reached.set)
    _until(lambda: not _threads("gquery-greeting"))
    rank = threading.Thread(
        target=line.send, args=("hand_over", (("ended", 0, 0, 1), "", b""), [bytes(2**24)]), daemon=True
    )
    rank.start()
    _until(line._lock.locked)
    del direct.answered["holds up"]
    go_on.set()
    rank.join(20)
    assert reached.wait(20) and not rank.is_alive() and not direct.answered


def test_an_order_to_a_worker_that_is_gone(client: Any, tmp_path: Path, tune: Tune) -> None:
    """Who reads it goes on, and says so: the run is made elsewhere."""
    tune(tuning.cluster, whole_bytes=0)
    with gquery.connect(device="python", cluster=client, workers=2, threads=1) as db:
        with_files(db, TABLES, tmp_path, 100)
        _near(db)
        gone = dict(direct._served)
        direct._served.clear()
        try:
            assert _InTime(db, SQL).made() == WANT
        finally:
            direct._served.update(gone)
        _near(db)
        assert _InTime(db, SQL).made() == WANT
