"""Sockets between the processes of one host: what ranks hand over goes through them, and not through Dask's event loops.

Dask takes a fifth of a millisecond for a small message at each end, one after another on the one thread of its loop. Here the
rank's own thread writes, and a thread for each process that has connected reads.

A process listens at a name that is no file (an abstract name of Linux), so that nothing is left of it. Names are chosen at random
and told to others through Dask. Both ends ask the kernel whose process the other is: one of another user is hung up on. A name of
another host is not known here, and there is no such socket where the system has no abstract names: Dask's connections are used.
"""

from __future__ import annotations

import os
import pickle
import select
import socket
import struct
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

import numpy as np

from gquery import tuning
from gquery.errors import InternalError
from gquery.runtime import interrupt

_HEAD = struct.Struct("<Q")  # bytes of the pickle that follows: operation, arguments, bytes of each buffer behind it
_CREDENTIALS = struct.Struct("3i")  # process, user, group
_MOST_PIECES = 512  # that one call of the system takes; Linux takes 1,024
_reader = threading.local()  # with ``is_here`` on the threads that read

Handler = Callable[..., object]


class Listener:
    """Calls ``handlers`` with what other processes of this host send: the arguments, and then the buffers, each an array of uint8
    of its own. A handler returns soon, and sends nothing itself: what it waited for would not be read. OSError where the system
    has no such sockets."""

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self.name = f"gquery-{uuid.uuid4().hex}"
        self._handlers = handlers
        self._socket = _new_socket()
        try:
            self._socket.bind(_address(self.name))
            self._socket.listen()
        except OSError:
            self._socket.close()
            raise
        threading.Thread(target=self._accept, name="gquery-listener", daemon=True).start()

    def close(self) -> None:
        """Take no more connections."""
        with suppress(OSError):  # it wakes who accepts, which closing does not
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _accept(self) -> None:
        while True:
            try:
                other, _ = self._socket.accept()
            except OSError:
                return
            if _is_own(other):
                threading.Thread(target=self._read, args=(other,), name="gquery-reader", daemon=True).start()
            else:
                other.close()

    def _read(self, other: socket.socket) -> None:
        _reader.is_here = True
        with other, suppress(EOFError, OSError):  # the process has ended, or hung up in the midst of a message
            while True:
                (size,) = _HEAD.unpack(_received(other, _HEAD.size))
                operation, arguments, sizes = pickle.loads(_received(other, size))
                buffers = [_received(other, n) for n in sizes]
                if operation not in self._handlers:
                    return
                self._handlers[operation](*arguments, buffers)


class Line:
    """A connection to a process of this host that listens at a name. OSError where there is none, or it is another user's."""

    def __init__(self, name: str) -> None:
        self._lock = threading.Lock()
        self._socket = _new_socket()
        self._socket.settimeout(tuning.memory.wait_seconds)
        try:
            self._connect(name)
            if not _is_own(self._socket):
                raise PermissionError(f"the process at {name} is another user's")
        except BaseException:
            self._socket.close()
            raise

    def _connect(self, name: str) -> None:
        end = time.monotonic() + tuning.cluster.connect_seconds
        while True:
            try:
                return self._socket.connect(_address(name))
            except (BlockingIOError, TimeoutError):  # as many wait for it already as the system lets
                if time.monotonic() > end:
                    raise
                interrupt.check()
                time.sleep(tuning.memory.wait_seconds)

    def send(self, operation: str, arguments: tuple[Any, ...], buffers: Sequence[Any] = ()) -> None:
        """Have the other process call a handler. Buffers may be written to again when this returns. OSError where the process has
        ended, InterruptError where the caller is stopped before all is sent; then the line is closed."""
        if getattr(_reader, "is_here", False):  # the other end may wait for this thread to read
            raise InternalError(f"a thread that reads is to send {operation!r}")
        views = [memoryview(b).cast("B") for b in buffers]
        head = pickle.dumps((operation, arguments, [v.nbytes for v in views]), protocol=5)
        pieces = [memoryview(_HEAD.pack(len(head)) + head), *[v for v in views if v.nbytes]]
        while not self._lock.acquire(timeout=tuning.memory.wait_seconds):  # another sends, and nobody reads
            interrupt.check()
        try:
            while pieces:
                pieces = _behind(pieces, self._sent(pieces[:_MOST_PIECES]))
        except BaseException:
            self._socket.close()
            raise
        finally:
            self._lock.release()

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    @property
    def is_over(self) -> bool:
        """Whether one of both has hung up."""
        if self._socket.fileno() < 0:
            return True
        asked = select.poll()
        asked.register(self._socket, select.POLLIN)  # nobody answers on it, so that there is nothing to read but its end
        return bool(asked.poll(0))

    def _sent(self, pieces: Sequence[memoryview]) -> int:
        while True:
            try:
                return self._socket.sendmsg(pieces)
            except TimeoutError:  # nobody reads
                interrupt.check()


class Lines:
    """Those of a process to others, by name. Any thread may call it."""

    def __init__(self) -> None:
        self._lock = interrupt.Lock()
        self._lines: dict[str, Line | None] = {}

    def to(self, name: str) -> Line | None:
        """The line to the process that listens at a name; None where nobody does on this host."""
        with self._lock:
            known = self._lines.get(name)
            if name in self._lines and (known is None or not known.is_over):
                return known
            for other in [n for n, line in self._lines.items() if line is not None and line.is_over]:
                cast(Line, self._lines.pop(other)).close()
            try:
                made = Line(name)
            except OSError:
                made = None
            self._lines[name] = made
            return made

    def forget(self) -> None:
        """Have none, in a forked child: those of its parent go on."""
        self._lock = interrupt.Lock()
        self._lines = {}

    def close(self) -> None:
        """Hang up on all."""
        with self._lock:
            for line in self._lines.values():
                if line is not None:
                    line.close()
            self._lines.clear()


def _new_socket() -> socket.socket:
    if not hasattr(socket, "SO_PEERCRED"):
        raise OSError("this system has no abstract names of sockets")
    return socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)


def _address(name: str) -> str:
    return f"\0{name}"


def _is_own(other: socket.socket) -> bool:
    """Whether the process at the other end is this user's."""
    found = other.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return bool(_CREDENTIALS.unpack(found)[1] == os.geteuid())


def _received(other: socket.socket, size: int) -> Any:
    """So many bytes, as an array of uint8. EOFError where the other end has hung up."""
    made = np.empty(size, np.uint8)
    view, at = made.data, 0
    while at < size:
        got = other.recv_into(view[at:], 0, socket.MSG_WAITALL)
        if not got:
            raise EOFError
        at += got
    return made


def _behind(pieces: Sequence[memoryview], sent: int) -> list[memoryview]:
    """What is left of them behind so many bytes."""
    for n, piece in enumerate(pieces):
        if sent < piece.nbytes:
            return [piece[sent:], *pieces[n + 1 :]]
        sent -= piece.nbytes
    return []
