"""Nothing that runs an event loop or reads a socket waits for what it is to bring, and every wait ends: by what comes, by an
interrupt, or by what becomes of what was lost."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any, cast

import pytest

import gquery
from gquery import tuning
from gquery.errors import InterruptError
from gquery.runtime import interrupt
from tests.support.tuned import Tune
from tests.support.two_workers import two_workers, with_files

pytest.importorskip("distributed")

from gquery.cluster import direct, direct_comm, host_sockets, tasks, worker
from gquery.cluster.fragments import Ended, FragmentComm, Handed
from gquery.cluster.host_sockets import Line
from gquery.cluster.link import LostError
from gquery.cluster.moving import packed, unpacked
from tests.distributed.test_cluster_faults import SQL, TABLES, WANT, _InTime, _near

needs_sockets = pytest.mark.skipif(not hasattr(socket, "SO_PEERCRED"), reason="the system has no abstract names of sockets")


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with two_workers() as made:
        yield made


@pytest.fixture
def db(client: Any, tmp_path: Path, tune: Tune) -> Iterator[gquery.Connection]:
    tune(tuning.cluster, whole_bytes=0)
    with gquery.connect(device="python", cluster=client, workers=2, threads=1) as made:
        with_files(made, TABLES, tmp_path, 100)
        yield made


def test_a_run_ends_while_another_waits_for_the_event_loop(
    client: Any, db: gquery.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ranks of one run make their programs, for which tables are to come through the event loop of their worker; there the
    ranks of another run of the connection are ended."""
    db.register("m", TABLES["t"])
    fetched, comes, waits = direct_comm.Sender.fetched, threading.Event(), threading.Event()

    def late(self: direct_comm.Sender, keys: Sequence[str]) -> Future[Any]:
        found, later = fetched(self, keys), Future[Any]()

        def bring() -> None:
            comes.wait(60)
            later.set_result(found.result(20))

        threading.Thread(target=bring, daemon=True).start()
        waits.set()
        return later

    monkeypatch.setattr(direct_comm.Sender, "fetched", late)
    asked = _InTime(db, SQL.replace("FROM t", "FROM m"))
    assert waits.wait(20)
    key = cast(Any, db._cluster).key
    ended = threading.Thread(target=client.run, args=(direct.end, key, "another run"), daemon=True)
    ended.start()
    ended.join(20)
    is_over = not ended.is_alive()
    comes.set()
    assert is_over and asked.made() == WANT


def test_a_scheduler_that_does_not_answer(db: gquery.Connection, monkeypatch: pytest.MonkeyPatch, tune: Tune) -> None:
    """Who waits for it is interrupted. One that answers when a machine goes on that was at rest has not been given up."""
    link, token, said = cast(Any, db._cluster)._link, interrupt.Token(), list[object]()
    answers = asyncio.Event()
    identity = link._identity

    async def late() -> Any:
        await answers.wait()
        return await identity()

    monkeypatch.setattr(link, "_identity", late)

    def ask() -> None:
        with interrupt.acting_for(token):
            try:
                said.append(len(link.workers()))
            except (InterruptError, gquery.OperationalError) as error:
                said.append(error)

    first = threading.Thread(target=ask, daemon=True)
    first.start()
    first.join(0.1)
    assert first.is_alive()
    token.stopped = True
    first.join(10)
    assert isinstance(said.pop(), InterruptError)
    token = interrupt.Token()
    tune(tuning.cluster, answer_seconds=1)
    rested = list[float]()

    def resting(asked: Sequence[Any], seconds: float) -> Any:
        if not rested:
            rested.append(1.5)
            time.sleep(1.5)
            link.client.loop.add_callback(answers.set)
            return wait([], 0)
        return wait(asked, 10)

    monkeypatch.setattr("gquery.cluster.link.wait", resting)
    ask()
    assert said == [2] and rested


def test_a_call_that_ends_by_a_timeout_of_its_own(db: gquery.Connection) -> None:
    """As where there was no worker for long to send a table to: it is not asked for again and again."""
    link = cast(Any, db._cluster)._link

    async def fails() -> None:
        raise TimeoutError("No valid workers found")

    with pytest.raises(LostError, match="No valid workers"):
        link.waited(fails())


@needs_sockets
@pytest.mark.parametrize("what", ["an order", "an answer"])
def test_what_is_lost_on_its_way(what: str, db: gquery.Connection, monkeypatch: pytest.MonkeyPatch, tune: Tune) -> None:
    """A worker has no order, or an answer has gone nowhere: the connection asks through Dask, and has the run made anew."""
    tune(tuning.cluster, ask_seconds=0.05, answer_seconds=1)
    _near(db)
    send, lost = Line.send, list[str]()
    operation = {"an order": "run", "an answer": "answer"}[what]

    def losing(self: Line, name: str, *message: Any) -> None:
        if name == operation and not lost:
            lost.append(name)
            return
        send(self, name, *message)

    monkeypatch.setattr(host_sockets.Line, "send", losing)
    assert _InTime(db, SQL).made() == WANT and lost
    assert _InTime(db, SQL).made() == WANT


@needs_sockets
def test_an_answer_that_is_long_on_its_way(db: gquery.Connection, monkeypatch: pytest.MonkeyPatch, tune: Tune) -> None:
    """It is not taken for one that is lost."""
    _near(db)
    tune(tuning.cluster, ask_seconds=0.02)
    send, asked = Line.send, threading.Semaphore(0)

    def slow(self: Line, name: str, *message: Any) -> None:
        if name == "answer":
            for _ in range(4):
                assert asked.acquire(timeout=20)
        send(self, name, *message)

    orders: Any = cast(Any, db._cluster)._orders
    ask = orders._stands

    def noting(*question: Any) -> Any:
        asked.release()
        return ask(*question)

    orders._stands = noting
    monkeypatch.setattr(host_sockets.Line, "send", slow)
    monkeypatch.setattr(cast(Any, db._cluster), "_run_in_fragments", None)
    assert _InTime(db, SQL).made() == WANT


@needs_sockets
def test_an_answer_by_a_line_that_another_closes(db: gquery.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rank that is stopped in the midst of a message closes the line, which others have in hand: they take a new one."""
    _near(db)
    to, closed = direct_comm.lines.to, list[str]()

    def closing(name: str) -> Line | None:
        line = to(name)
        if line is not None and threading.current_thread().name.startswith("gquery-rank") and not closed:
            closed.append(name)
            line.close()
        return line

    monkeypatch.setattr(cast(Any, db._cluster), "_run_in_fragments", None)
    monkeypatch.setattr(direct, "lines", _Lines(closing))
    assert _InTime(db, SQL).made() == WANT and closed


class _Lines:
    def __init__(self, to: Any) -> None:
        self.to = to


@needs_sockets
def test_who_waits_to_connect_is_interrupted() -> None:
    """As many wait already as the system lets, and nobody takes them."""
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    server.bind("\0gquery-test-nobody-accepts")
    server.listen(0)
    others = [socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) for _ in range(2)]
    for other in others:
        other.setblocking(False)
        other.connect_ex("\0gquery-test-nobody-accepts")
    lines, tokens, ended = host_sockets.Lines(), [interrupt.Token(), interrupt.Token()], list[int]()

    def connect(n: int) -> None:
        with interrupt.acting_for(tokens[n]):
            try:
                lines.to("gquery-test-nobody-accepts")
            except InterruptError:
                ended.append(n)

    threads = [threading.Thread(target=connect, args=(n,), daemon=True) for n in range(2)]
    for thread in threads:
        thread.start()
    time.sleep(0.2)
    assert all(t.is_alive() for t in threads)
    for n in (1, 0):
        tokens[n].stopped = True
        threads[n].join(20)
    assert ended == [1, 0]
    for end in (server, *others):
        end.close()


def test_a_fragment_is_made_again_while_a_later_one_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dask computes what a worker that is gone had made, maybe on the worker where the rank is further: both are made."""
    session, further, runs = worker.Session(cast(Any, None)), threading.Event(), list[int]()

    def run_rank(session: Any, request: Any, key: str, plan: Any, comm: FragmentComm) -> int:
        (first,) = comm.all_gather("first", "a")
        runs.append(1)
        if len(runs) == 1:
            further.set()
            while True:
                interrupt.check()
                time.sleep(0.01)
        (second,) = comm.all_gather("second", first + "b")
        return len(second)

    monkeypatch.setattr(tasks, "run_rank", run_rank)
    monkeypatch.setattr(tasks, "session_of", lambda key, engine: session)
    request: Any = worker.Request("s", "r", 0, "python", cast(Any, None), False, False)
    plan: Any = worker.PackedProgram("k", 1, packed(0), packed(0), cast(Any, None))
    first = tasks.fragment(request, plan, {}, [])
    assert isinstance(first, Handed)
    made: list[Any] = []
    later = threading.Thread(target=lambda: made.append(tasks.fragment(request, plan, {}, [[first]])), daemon=True)
    later.start()
    assert further.wait(20)
    again = tasks.fragment(request, plan, {}, [])
    later.join(20)
    assert isinstance(again, Handed) and unpacked(again.value) == "a"
    assert not later.is_alive() and unpacked(made[0].value) == "ab"
    end = tasks.fragment(request, plan, {}, [[first], [made[0]]])
    assert isinstance(end, Ended) and unpacked(end.made) == 2
    assert not session.ranks
