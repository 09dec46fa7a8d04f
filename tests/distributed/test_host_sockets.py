"""Sockets between the processes of a host: what comes through, who is hung up on, and what becomes of a process that ends."""

from __future__ import annotations

import os
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from gquery.cluster.host_sockets import Line, Lines, Listener
from gquery.errors import InternalError, InterruptError
from gquery.runtime import interrupt

pytestmark = pytest.mark.skipif(not hasattr(socket, "SO_PEERCRED"), reason="the system has no abstract names of sockets")
Came = queue.SimpleQueue[tuple[Any, ...]]


@pytest.fixture
def came() -> Came:
    return queue.SimpleQueue()


@pytest.fixture
def listener(came: Came) -> Iterator[Listener]:
    made = Listener({"put": lambda *message: came.put(message)})
    yield made
    made.close()


def refused(send: Callable[[], None], seconds: float = 20) -> bool:
    """Whether sending fails at last: what is on its way when the other end hangs up is lost without a word."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            send()
        except OSError:
            return True
    return False


@pytest.mark.parametrize("sizes", [(), (0,), (5, 0, 7), (3_000_000, 1), (1,) * 2_000])
def test_buffers_of_any_size(sizes: tuple[int, ...], listener: Listener, came: Came) -> None:
    sent = [np.arange(n).astype(np.uint8) for n in sizes]
    line = Line(listener.name)
    for _ in range(2):
        line.send("put", ("a", [1, None]), sent)
        a, b, buffers = came.get(timeout=20)
        assert (a, b) == ("a", [1, None]) and len(buffers) == len(sent)
        assert all(np.array_equal(x, y) and x.flags.writeable for x, y in zip(buffers, sent, strict=True))
    line.close()


def test_arrays_of_other_types_go_as_bytes(listener: Listener, came: Came) -> None:
    line, sent = Line(listener.name), np.arange(12, dtype=np.int32).reshape(3, 4)
    line.send("put", (), [sent])
    ((found,),) = came.get(timeout=20)
    assert np.array_equal(found.view(np.int32), np.arange(12))
    line.close()


def test_threads_that_send_at_once(listener: Listener, came: Came) -> None:
    """Messages on one line do not mix."""
    lines = Lines()

    def send(number: int) -> None:
        for n in range(20):
            line = lines.to(listener.name)
            assert line is not None
            line.send("put", (number, n), [np.full(50_000 * (n % 3), number, np.uint8)])

    threads = [threading.Thread(target=send, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    found: dict[int, list[int]] = {}
    for _ in range(120):
        number, n, (buffer,) = came.get(timeout=20)
        assert buffer.size == 50_000 * (n % 3) and (buffer == number).all()
        found.setdefault(number, []).append(n)
    assert found == {k: list(range(20)) for k in range(6)}
    line = lines.to(listener.name)
    assert line is lines.to(listener.name)
    for thread in threads:
        thread.join()
    assert line is not None
    line.close()


def test_a_name_that_nobody_has() -> None:
    assert Lines().to("gquery-nobody") is None
    with pytest.raises(OSError):
        Line("gquery-nobody")


def test_a_process_that_ends(came: Came) -> None:
    listener, lines = Listener({"put": lambda *message: came.put(message), "end": lambda *message: 1 / 0}), Lines()
    line = lines.to(listener.name)
    assert line is not None and not line.is_over
    line.send("put", (1,))
    assert came.get(timeout=20) == (1, [])
    listener.close()
    assert lines.to(listener.name) is line, "who is connected stays"
    line.close()
    assert line.is_over and lines.to(listener.name) is None
    with pytest.raises(OSError):
        line.send("put", (2,))


def test_another_user_is_hung_up_on(listener: Listener, came: Came, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: -5)
    assert Lines().to(listener.name) is None, "whose listener it is"
    raw = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    raw.connect("\0" + listener.name)
    assert raw.recv(1) == b"", "who connects"
    raw.close()
    assert came.empty()


def test_an_interrupt_while_nobody_reads() -> None:
    """The line is closed, as half a message has gone; the other end drops that, and hears who connects next."""
    going, came, token = threading.Event(), Came(), interrupt.Token()

    def wait(*message: Any) -> None:
        going.wait(20)
        came.put(message[:-1])

    listener, lines = Listener({"wait": wait}), Lines()
    line = lines.to(listener.name)
    assert line is not None
    line.send("wait", (0,))
    threading.Timer(0.1, setattr, (token, "stopped", True)).start()
    with interrupt.acting_for(token), pytest.raises(InterruptError):
        line.send("wait", (1,), [np.zeros(30_000_000, np.uint8)])
    going.set()
    another = lines.to(listener.name)
    assert another is not None and another is not line
    another.send("wait", (2,))
    assert sorted(came.get(timeout=20) for _ in range(2)) == [(0,), (2,)] and came.empty()
    another.close()
    listener.close()


def test_what_is_sent_to_one_who_has_gone(listener: Listener) -> None:
    """Its reader has hung up: at last sending fails, and nothing waits."""
    line = Line(listener.name)
    assert refused(lambda: line.send("no such handler", ()))


def test_a_handler_that_sends_is_an_error(listener: Listener) -> None:
    """It would wait for others, who may wait for its thread to read."""
    there, said = Line(listener.name), queue.SimpleQueue[BaseException]()

    def send() -> None:
        try:
            there.send("put", ())
        except InternalError as error:
            said.put(error)

    other = Listener({"send": lambda buffers: send()})
    line = Line(other.name)
    line.send("send", ())
    assert "'put'" in str(said.get(timeout=20))
    for end in (line, there, other):
        end.close()


def test_who_waits_for_another_that_sends_is_stopped() -> None:
    """Nobody reads: one thread is in the midst of a message, the next has not begun."""
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    server.bind("\0gquery-test-nobody-reads")
    server.listen()
    line, tokens, ended = Line("gquery-test-nobody-reads"), [interrupt.Token(), interrupt.Token()], list[int]()

    def send(n: int) -> None:
        with interrupt.acting_for(tokens[n]):
            try:
                line.send("put", (), [bytes(2**24)])
            except (InterruptError, OSError):
                ended.append(n)

    threads = []
    for n in range(2):
        threads.append(threading.Thread(target=send, args=(n,), daemon=True))
        threads[-1].start()
        while not line._lock.locked():
            time.sleep(0.01)
    for n in (1, 0):
        tokens[n].stopped = True
        threads[n].join(20)
    assert ended == [1, 0]
    server.close()
