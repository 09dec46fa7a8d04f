"""Interrupts: how another thread stops a running query.

Each run has a token. What runs for long calls `check` between its steps, on the thread of the query; worker threads ask the
token itself. A token is set once and never reset, so an interrupt that comes late stops nothing that starts after it.
"""

from __future__ import annotations

import importlib
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import copy_context
from types import FrameType
from typing import Any, TypeVar, cast

from gquery import tuning
from gquery.errors import InterruptError

T = TypeVar("T")

_signals: Any = importlib.import_module("_signal")
"""What `signal` is made of: that makes members of enumerations of all that it takes and gives, 20 us a run."""

_CTRL_C = int(signal.SIGINT)


class Token:
    """Whether one run is to stop, and whether it was told so."""

    __slots__ = ("stopped", "told")

    def __init__(self) -> None:
        self.stopped = self.told = False

    def is_stopped(self) -> bool:
        return self.stopped


class Running:
    """The runs of a connection and its cursors that have not ended."""

    def __init__(self) -> None:
        self._tokens: set[Token] = set()
        self._lock = threading.Lock()

    def stop(self) -> int:
        """Stop all of them; how many there were."""
        with self._lock:
            for token in self._tokens:
                token.stopped = True
            return len(self._tokens)

    def one(self) -> AbstractContextManager[None]:
        """The run of this thread; one within another belongs to it."""
        return _NOTHING if current() is not None else _One(self)

    def begin(self, token: Token) -> None:
        """A run has begun, on this thread."""
        _thread.token = token
        with self._lock:
            self._tokens.add(token)

    def end(self, token: Token) -> None:
        """It has ended."""
        _thread.token = None
        with self._lock:
            self._tokens.discard(token)


_NOTHING = nullcontext()


class _One:
    """One run. Within it, Ctrl-C sets the token before it raises KeyboardInterrupt: where that is lost, as in a callback of a
    compiler's, the run still ends at its next check. Only on the main thread, and only where nobody handles the signal in a
    way of their own."""

    __slots__ = ("_handler", "_running", "_token")

    def __init__(self, running: Running) -> None:
        self._running, self._token = running, Token()

    def __enter__(self) -> None:
        self._running.begin(self._token)
        is_ours = threading.current_thread() is threading.main_thread() and (
            _signals.getsignal(_CTRL_C) is signal.default_int_handler
        )
        self._handler = _stopping(self._token) if is_ours else None
        if self._handler is not None:
            _signals.signal(_CTRL_C, self._handler)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        try:
            if kind is None and not self._token.told:  # planning is a run of its own, what follows it has another token
                check()
        finally:
            if self._handler is not None and _signals.getsignal(_CTRL_C) is self._handler:
                _signals.signal(_CTRL_C, signal.default_int_handler)
            self._running.end(self._token)


def _stopping(token: Token) -> Callable[[int, FrameType | None], None]:
    """A handler of Ctrl-C."""

    def stop(number: int, frame: FrameType | None) -> None:
        token.stopped = True
        if not _thread.holding:
            signal.default_int_handler(number, frame)

    return stop


@contextmanager
def holding() -> Iterator[None]:
    """Within it, Ctrl-C is noticed and raised as an InterruptError at its end: for what must not be left half done, such as the
    import of a compiler. (Not where `_One` sets no handler: the signal is the caller's then.)"""
    _thread.holding += 1
    try:
        yield
    finally:
        _thread.holding -= 1
    if not _thread.holding:
        check()


class _Thread(threading.local):
    token: Token | None = None
    holding: int = 0


_thread = _Thread()


def current() -> Token | None:
    """The token of the run on this thread; None where there is none."""
    return _thread.token


@contextmanager
def acting_for(token: Token | None) -> Iterator[None]:
    """Within it, this thread works for the run of another, which waits for it."""
    _thread.token = token
    try:
        yield
    finally:
        _thread.token = None


def beside(work: Callable[[], T]) -> T:
    """What ``work`` returns, done on another thread where this one has a run: an interrupt ends the wait for what cannot be
    stopped itself, such as a compiler. It goes on then, and nobody looks at its result."""
    if current() is None:
        return work()
    done: list[Any] = []
    ended = threading.Event()

    def run() -> None:
        try:
            done.extend((True, work()))
        except BaseException as error:  # raised again by who waits
            done.extend((False, error))
        ended.set()

    threading.Thread(target=copy_context().run, args=(run,), name="gquery-compiling").start()
    while not ended.wait(tuning.memory.wait_seconds):
        check()
    is_well, result = done
    if not is_well:
        raise result
    return cast(T, result)


class Lock:
    """A lock for what takes long: whose wait for another thread ends by an interrupt. Its owner may take it again."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        while not self._lock.acquire(timeout=tuning.memory.wait_seconds):
            check()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def check() -> None:
    """InterruptError where this thread's run is to stop."""
    token = _thread.token
    if token is not None and token.stopped:
        token.told = True
        raise InterruptError("The query was interrupted")
