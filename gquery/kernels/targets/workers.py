"""Processes that compile kernels beside this one; see `gquery.kernels.compile_worker`.

They start when there is work for them, take what queries wait for before what a first run may wait for, and that before what
later runs want, and end when there has been nothing to do for a while, or with this process. Where none can be started, or one
fails, nothing is lost: the kernel is compiled when it is asked for, in this process.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from gquery import tuning
from gquery.kernels.targets.cache import OTHER_BUILD, KernelSource, build_hash, kernel_cache
from gquery.runtime.interrupt import check
from gquery.runtime.records import dataclass

if TYPE_CHECKING:
    import subprocess

Request = tuple[str, KernelSource, tuple[int, int]]
"""The compiler (see `compile_worker`), the kernel's module and the compute capability (cuda alone looks at it)."""


@dataclass(eq=False)
class _Task:
    """A kernel to be compiled; ``done`` also where that failed: it will be tried again where the kernel is needed. One
    ``is_perhaps`` that no query waited for when a worker took it."""

    request: Request
    done: bool = False
    is_perhaps: bool = False


_OPTIMIZED_TRIES = 2  # workers that may die of a kernel before one leaves its optimizer out, in which compilers' faults are
_TRIES = _OPTIMIZED_TRIES + 1


class Workers:
    """The workers of this process: each has a thread that hands it one kernel at a time."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._changed = threading.Condition()
        self._urgent: deque[_Task] = deque()
        self._early: deque[_Task] = deque()  # a first run may wait for these
        self._later: deque[_Task] = deque()
        self._open: dict[Request, _Task] = {}  # those that are not done
        self._died: dict[Request, int] = {}  # of these so many workers died, or while they compiled them
        self._parent: subprocess.Popen[bytes] | None = None  # of the workers
        self._threads: set[threading.Thread] = set()
        self._ready = 0  # workers that have imported what they need
        self._speculative = 0  # those that compile what no query waits for
        self._used = 0.0  # when one was last given something, or ended it
        self._stopped = False
        self._is_refused = False  # no process compiles as this one does

    def compile_at_once(
        self, requests: Sequence[Request], here: Callable[[Request], object], patience: int = 1, elsewhere: bool = False
    ) -> None:
        """Compile kernels' modules into the disk cache, and wait for them. This thread compiles by ``here`` those for which no
        worker will be there soon: one takes a second to start, and it waits for ``patience`` kernels of each. With
        ``elsewhere`` it waits for workers, and compiles only where there are none."""
        with self._changed:
            mine = [self._task(r, self._urgent) for r in requests]
            if len(requests) > 1 or elsewhere:
                self._start(requests[0][0], least=int(elsewhere))
            try:
                while not all(t.done for t in mine):
                    own = next((t for t in self._urgent if t in mine), None)  # others' are not for ``here``
                    is_busy = len(self._urgent) > patience * self._ready
                    if own is not None and is_busy and not (elsewhere and self._threads):
                        self._urgent.remove(own)
                        self._compile_here(own, here)
                    else:
                        self._changed.wait(tuning.compiling.look_seconds)
                        check()
            finally:  # an interrupt: nobody waits for the rest
                for task in mine:
                    if task in self._urgent:
                        self._urgent.remove(task)
                        self._end(task)

    def compile_soon(self, requests: Sequence[Request]) -> None:
        """Have kernels' modules compiled before all that no query waits for; `compile_at_once` waits for them."""
        with self._changed:
            if self._is_refused:
                return
            for request in requests:
                self._task(request, self._urgent)
            self._start(requests[0][0])

    def compile_early(self, requests: Sequence[Request]) -> None:
        """Have kernels' modules compiled when no query waits for a worker, as the next one may."""
        self._compile_unawaited(requests, self._early)

    def compile_later(self, requests: Sequence[Request]) -> None:
        """Have kernels' modules compiled behind what is compiled early, as a later run wants them."""
        self._compile_unawaited(requests, self._later)

    def bring_forward(self, requests: Sequence[Request]) -> None:
        """Of what was asked for by `compile_later`, have these compiled first: a query that runs again and again wants them."""
        with self._changed:
            for request in reversed(requests):
                self._put_first(self._open.get(request))

    def _compile_unawaited(self, requests: Sequence[Request], queue: deque[_Task]) -> None:
        with self._changed:
            if self._is_refused:
                return
            for request in requests:
                self._task(request, queue)
            self._start(requests[0][0])

    def compile_behind(self, request: Request) -> None:
        """Have a kernel's module compiled behind all that queries wait for, and wait for that, as long as there are workers and
        the process goes on. It comes before what was asked for by `compile_later`: its query has run already."""
        with self._changed:
            if self._is_refused:
                return
            task = self._task(request, self._later)
            self._put_first(task)
            self._start(request[0], least=1)
            while not task.done and self._threads and threading.main_thread().is_alive():
                self._changed.wait(tuning.compiling.look_seconds)
            if task in self._later:
                self._later.remove(task)
                self._end(task)

    def has_died_of(self, request: Request) -> bool:
        """Whether a worker ended while it compiled a kernel's module: this process may end with it, too."""
        return request in self._died

    @property
    def are_up(self) -> bool:
        """Whether there are workers, or soon will be."""
        return bool(self._threads)

    @property
    def has_ready(self) -> bool:
        """Whether a worker is there that compiles sooner than this process, which has compilers yet to import."""
        return self._ready > 0

    def is_open(self, request: Request) -> bool:
        """Whether a worker compiles the kernel's module, or will."""
        return request in self._open and bool(self._threads)

    @property
    def can_start(self) -> bool:
        """Whether there are workers, or could be: there is a core for one, and no process has been refused."""
        return bool(self._threads) or (self._count() > 0 and not self._stopped and not self._is_refused)

    def _count(self) -> int:
        """A worker for each core, as this process only waits once all are ready; none beside a single one."""
        cores = os.cpu_count() or 1
        return min(self.most, cores) if cores > 1 else 0

    def stop(self) -> None:
        """End all workers, whatever they do."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
            if self._parent is not None:
                _kill(self._parent)
        for thread in list(self._threads):
            thread.join(tuning.compiling.stop_seconds)

    # ---- with the lock held ----

    def _task(self, request: Request, queue: deque[_Task]) -> _Task:
        task = self._open.get(request)
        if task is None:
            task = self._open[request] = _Task(request)
            queue.append(task)
        elif queue is self._urgent:
            for waiting in (self._early, self._later):
                if task in waiting:
                    waiting.remove(task)
                    queue.append(task)
        self._changed.notify_all()
        return task

    def _put_first(self, task: _Task | None) -> None:
        """Before all others that are compiled later, if it waits there."""
        if task is not None and task in self._later:
            self._later.remove(task)
            self._later.appendleft(task)

    def _start(self, compiler: str, least: int = 0) -> None:
        """Have workers, as many as there are cores for, if there are none."""
        count = max(least, self._count())
        if self._threads or self._stopped or self._is_refused or count < 1:
            return
        lines: list[_Line] = []
        try:
            for _ in range(count):
                lines.append(_Line())
            self._parent = _parent(compiler, lines)
        except OSError:  # no processes or descriptors are left
            self._parent = None
        for line in lines:
            line.hand_over(self._parent is not None)
        self._used = time.monotonic()
        for line in lines if self._parent is not None else ():
            arguments = (self._parent, line)
            thread = threading.Thread(target=self._serve, args=arguments, name="gquery-compiler", daemon=True)
            self._threads.add(thread)
            thread.start()

    def _compile_here(self, task: _Task, here: Callable[[Request], object]) -> None:
        self._changed.release()
        try:
            here(task.request)
        finally:
            self._changed.acquire()
            self._end(task)

    def _end(self, task: _Task) -> None:
        task.done = True
        self._used = time.monotonic()
        self._open.pop(task.request, None)
        self._changed.notify_all()

    # ---- a worker's thread ----

    def _serve(self, parent: subprocess.Popen[bytes], line: _Line) -> None:
        """Hand a worker one kernel after another, until there is none for a while."""
        is_ready = line.answers()
        with self._changed:
            self._ready += is_ready
            self._changed.notify_all()
            while is_ready and (task := self._next()) is not None:
                self._changed.release()
                is_well = False
                died = self._died.get(task.request, 0)
                try:
                    is_well = line.ask(task.request, died >= _OPTIMIZED_TRIES)
                except Exception:  # its text cannot be made: who asks for the kernel makes it again, and is told
                    is_well = True
                finally:
                    self._changed.acquire()
                    self._speculative -= task.is_perhaps
                    if not is_well and not self._stopped:
                        self._died[task.request] = died = died + 1
                    if is_well or died >= _TRIES:
                        self._end(task)
                    else:
                        self._urgent.appendleft(task)
                if not is_well:
                    break
            self._ready -= is_ready
            self._threads.remove(threading.current_thread())
            is_last = not self._threads
            if is_last:
                self._parent = None
            self._changed.notify_all()
        line.close()  # at the end of its input a worker ends
        if is_last and parent.wait() == OTHER_BUILD:
            self._refuse()

    def _refuse(self) -> None:
        """Start no workers any more: the sources on disk are not those of this process."""
        with self._changed:
            self._is_refused = True
            for queue in (self._early, self._later):
                while queue:
                    self._end(queue.popleft())

    def _next(self) -> _Task | None:
        while not self._stopped:
            if self._urgent:
                task = self._urgent.popleft()
                task.is_perhaps = False
                return task
            queue = self._early or self._later
            if queue and self._speculative < max(1, int(len(self._threads) * tuning.compiling.speculative)):
                task = queue.popleft()
                task.is_perhaps = True
                self._speculative += 1
                return task
            left = self._used + tuning.compiling.idle_seconds - time.monotonic()
            if left <= 0:  # for all of them at once, so that there are all or none
                return None
            self._changed.wait(left)
        return None


class _Line:
    """The two pipes between this process and a worker."""

    def __init__(self) -> None:
        requests, answers = os.pipe(), os.pipe()
        self.theirs = requests[0], answers[1]
        self._requests, self._answers = os.fdopen(requests[1], "w"), os.fdopen(answers[0])

    def hand_over(self, is_taken: bool) -> None:
        """Close the worker's ends here, once it has them; ours too where there is none."""
        for descriptor in self.theirs:
            os.close(descriptor)
        if not is_taken:
            self.close()

    def ask(self, request: Request, is_careful: bool) -> bool:
        """Have a worker compile, without the optimizer if it ``is_careful``; whether it is well. What went wrong with a kernel
        comes up again where that is asked for."""
        import json  # as below

        from gquery.kernels.packed import packed

        compiler, source, cc = request
        written = packed(source.kernel) if source.kernel is not None else None
        text = source.text if written is None else None
        said = json.dumps([compiler, source.name, text, written, cc, str(kernel_cache().path), is_careful])
        try:
            self._requests.write(said + "\n")
            self._requests.flush()
        except (OSError, ValueError):
            return False
        return self.answers()

    def answers(self) -> bool:
        """Wait for a line; False where the worker is gone."""
        try:
            return bool(self._answers.readline())
        except (OSError, ValueError):  # closed
            return False

    def close(self) -> None:
        for pipe in (self._requests, self._answers):
            with suppress(OSError):  # the worker is gone already
                pipe.close()


def _parent(compiler: str, lines: Sequence[_Line]) -> subprocess.Popen[bytes]:
    """The process that forks a worker for each line. What it has to complain of comes up where a kernel is asked for."""
    # the package may be importable here because of the script's place alone
    root = str(Path(__file__).resolve().parents[3])
    path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    single = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # a process with threads is not to be forked
    ends = [":".join(map(str, line.theirs)) for line in lines]
    most = str(tuning.compiling.worker_kernels)
    kept, grown = str(tuning.compiling.kept_bytes), str(tuning.compiling.grown_bytes)
    # glibc's allocator gives back what a kernel took, and touches it anew for the next one: 1,700 faults each
    memory = {"MALLOC_TRIM_THRESHOLD_": kept, "MALLOC_MMAP_THRESHOLD_": kept, "MALLOC_TOP_PAD_": grown}
    import subprocess  # with its own 2 ms, which a process that starts no workers does without

    return subprocess.Popen(
        [sys.executable, "-P", "-m", "gquery.kernels.compile_worker", compiler, most, build_hash(), *ends],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": path} | single | memory, pass_fds=[d for line in lines for d in line.theirs],
        process_group=0,  # Ctrl-C in a terminal is meant for us alone
    )  # fmt: skip


def _kill(parent: subprocess.Popen[bytes]) -> None:
    """End a process and those that it forked."""
    with suppress(ProcessLookupError):
        os.killpg(parent.pid, signal.SIGTERM)


_workers = Workers(tuning.compiling.workers)


def workers() -> Workers:
    """Those of this process."""
    return _workers


def _forget() -> None:
    """A forked child has no workers: their pipes belong to its parent."""
    global _workers
    _workers = Workers(tuning.compiling.workers)


os.register_at_fork(after_in_child=_forget)
atexit.register(lambda: _workers.stop())
