"""Processes that compile the kernels of a query at once; see `gquery.kernels.compile_worker`.

They start with the first query that needs two kernels, stay for later ones, and end with this process. Where none can
be started, or one fails, nothing is lost: the kernel is compiled when it is asked for, in this process.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Any

MOST_WORKERS = 8
Request = tuple[str, Path, tuple[int, int]]
"""The target, the kernel's module and the compute capability (cuda alone looks at it)."""

_lock = threading.Lock()
_idle: SimpleQueue[subprocess.Popen[str]] = SimpleQueue()
_all: list[subprocess.Popen[str]] = []


def compile_at_once(requests: Sequence[Request], here: Callable[[Request], object]) -> None:
    """Compile kernels' modules into the disk cache: in workers, and by ``here`` in this thread meanwhile.

    A worker takes a second to start, in which this thread has done the first few.
    """
    with _lock:
        workers = _start(min(len(requests) - 1, MOST_WORKERS, (os.cpu_count() or 1) - 1))
        waiting = deque(requests)
        if not workers:
            _drain(waiting, here)
            return
        with ThreadPoolExecutor(workers) as pool:
            lanes = [pool.submit(_drain, waiting, _compile) for _ in range(workers)]
            try:
                _drain(waiting, here)
            finally:
                waiting.clear()
        for lane in lanes:
            lane.result()


def _drain(waiting: deque[Request], compile_: Callable[[Request], object]) -> None:
    while waiting:
        try:
            request = waiting.popleft()
        except IndexError:  # another lane took the last one
            return
        compile_(request)


def _start(wanted: int) -> int:
    """Have up to ``wanted`` workers running; how many are."""
    for dead in [w for w in _all if w.poll() is not None]:
        _all.remove(dead)
    # the package may be importable here because of the script's place alone
    root = str(Path(__file__).resolve().parents[3])
    path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    while len(_all) < wanted:
        try:
            worker = subprocess.Popen(
                [sys.executable, "-m", "gquery.kernels.compile_worker"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path},
                process_group=0,  # Ctrl-C in a terminal is meant for us alone
            )  # fmt: skip
        except OSError:
            break
        _all.append(worker)
        _idle.put(worker)
    return len(_all)


def _compile(request: Request) -> None:
    target, path, cc = request
    while True:
        worker = _idle.get()
        if worker.poll() is None:
            break
        if all(w.poll() is not None for w in _all):
            _idle.put(worker)
            return
    try:
        assert worker.stdin is not None
        assert worker.stdout is not None
        worker.stdin.write(json.dumps([target, str(path), cc]) + "\n")
        worker.stdin.flush()
        worker.stdout.readline()  # what went wrong comes up again where the kernel is asked for
    except OSError:
        worker.kill()
    _idle.put(worker)


@atexit.register
def _stop() -> None:
    for worker in _all:
        for pipe in (worker.stdin, worker.stdout):
            _close(pipe)
        worker.terminate()
        worker.wait()
    _all.clear()


def _close(pipe: IO[Any] | None) -> None:
    try:
        if pipe is not None:
            pipe.close()
    except OSError:
        return  # the worker is gone already


def _forget() -> None:
    """A forked child has no workers: their pipes belong to its parent."""
    global _idle, _lock
    _lock, _idle = threading.Lock(), SimpleQueue()
    _all.clear()


os.register_at_fork(after_in_child=_forget)
