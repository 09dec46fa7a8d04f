"""Room for what is nested deeply: parsing and planning are recursive, and Python allows 1,000 calls within each other.

Work that needs more (some 50 levels of CASE) is done again from its start on a thread with a larger stack, under a larger
limit; nothing else pays for that. What is nested more deeply still is refused by one error.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, TypeVar, cast

from gquery import tuning
from gquery.errors import NotSupportedError
from gquery.runtime import collector, interrupt, stopwatch
from gquery.runtime.forking import free_in_child
from gquery.runtime.threads import Helper

T = TypeVar("T")
_changing = free_in_child(threading.RLock())
_threads = 0  # with room, of all callers
_limit = 0  # Python's own, while there are such threads


def with_room(work: Callable[[], T]) -> T:
    """What ``work`` returns. It may be started a second time, and then runs on another thread. NotSupportedError where it is
    nested too deeply for that too."""
    if _here.has_room:
        return work()  # the outermost call sees to it
    with collector.paused():  # what is parsed, planned and written stays
        try:
            return work()
        except RecursionError:
            pass
        try:
            return _on_thread(work)
        except (RecursionError, MemoryError):
            raise too_deep() from None


def too_deep() -> NotSupportedError:
    """The error for a statement or an expression that Python's recursion does not get to the bottom of."""
    return NotSupportedError("not supported: a query that is nested too deeply; split its expressions or subqueries up")


class _Here(threading.local):
    has_room = False


_here = _Here()


def _on_thread(work: Callable[[], T]) -> T:
    """Do it on a thread with room, in the name of this one: interrupts and the clock are the same."""
    token, watch = interrupt.current(), stopwatch.current()
    done: list[Any] = []

    def run() -> None:
        _here.has_room = True
        try:
            with interrupt.acting_for(token), nullcontext() if watch is None else stopwatch.watched(watch):
                done.extend((True, work()))
        except BaseException as error:  # raised again by the caller
            done.extend((False, error))
        finally:
            _raise_limit(-1)  # here: Python may abort where a thread is far beyond its limit

    _raise_limit(1)
    try:
        helper = _started(run)
    except RuntimeError:  # no room for such a stack
        _raise_limit(-1)
        raise RecursionError from None
    try:
        while not helper.has_ended(tuning.memory.wait_seconds):
            interrupt.check()  # also where the thread is in the midst of something that does not look
    except BaseException:
        if token is not None:
            token.stopped = True
        raise
    is_well, result = done
    if not is_well:
        raise result
    return cast(T, result)


def _started(run: Callable[[], None]) -> Helper:
    with _changing:
        before = threading.stack_size(tuning.memory.stack_bytes)
        try:
            return Helper(run, "gquery-nested")
        finally:
            threading.stack_size(before)


def _raise_limit(threads: int) -> None:
    """So many more threads need a higher limit. Python's is one for all threads: it is raised while somebody needs it."""
    global _threads, _limit
    with _changing:
        if _threads == 0:
            _limit = sys.getrecursionlimit()
            sys.setrecursionlimit(max(_limit, tuning.memory.nested_calls))
        _threads += threads
        # else somebody has set it meanwhile
        is_ours = sys.getrecursionlimit() == max(_limit, tuning.memory.nested_calls)
        if _threads == 0 and is_ours:
            sys.setrecursionlimit(_limit)
