"""The progress line of a query that takes long: what it does now, how far it is, and an estimate of the rest.

A thread of its own draws it on stderr, from what the query's thread writes into a `Watch`.
"""

from __future__ import annotations

import shutil
import threading
import time
from typing import TextIO

from gquery.runtime.stopwatch import Part, Watch

_AFTER, _EVERY = 0.7, 0.1  # seconds until the first line, and between two
_BAR = 24
_WORDS: dict[Part, str] = {
    "parse": "parsing", "plan": "planning", "compile": "compiling kernels", "read": "reading columns",
    "copy": "copying to the device", "run": "running", "fetch": "fetching rows",
}  # fmt: skip


class Progress:
    """Draws while it is entered, if ``shown`` and if that takes long enough."""

    def __init__(self, watch: Watch, stream: TextIO, shown: bool) -> None:
        self._watch, self._stream, self._shown = watch, stream, shown
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> None:
        if self._shown:
            self._thread = threading.Thread(target=self._draw, name="gquery-progress", daemon=True)
            self._thread.start()

    def __exit__(self, *_: object) -> None:
        if self._thread is not None:
            self._ended.set()
            self._thread.join()

    def _draw(self) -> None:
        start = time.perf_counter()
        if self._ended.wait(_AFTER):
            return
        while not self._ended.wait(_EVERY):
            line = progress_line(self._watch, time.perf_counter() - start)
            width = shutil.get_terminal_size((80, 24)).columns - 1
            self._stream.write(f"\r\x1b[K{line[:width]}")
            self._stream.flush()
        self._stream.write("\r\x1b[K")
        self._stream.flush()


def progress_line(watch: Watch, spent: float) -> str:
    """One line of progress.

    >>> watch = Watch(); watch.begin([1, 1]); watch.stage(1)
    >>> progress_line(watch, 2.0)[:41]
    '████████████░░░░░░░░░░░░  50%  stage 2 of'
    """
    doing = watch.doing
    words = _WORDS[doing] if doing is not None else ""
    if not watch.at:
        return f"{words or 'working'}, {spent:.0f} s"
    full = round(watch.share * _BAR)
    line = f"{'█' * full}{'░' * (_BAR - full)} {watch.share:4.0%}  stage {watch.at} of {watch.stages}"
    if doing not in ("run", None):
        line += f", {words}"
    left = watch.remaining()
    return f"{line}, {spent:.0f} s" + (f", about {left:.0f} s left" if left is not None else "")


def seconds_text(seconds: float) -> str:
    """A span of time with the digits that matter.

    >>> seconds_text(0.0), seconds_text(0.00042), seconds_text(0.0123), seconds_text(1.5), seconds_text(90)
    ('0', '0.42 ms', '12.3 ms', '1.50 s', '90.0 s')
    """
    if seconds < 5e-6:
        return "0"
    if seconds < 1:
        return f"{seconds * 1e3:.2f} ms" if seconds < 0.01 else f"{seconds * 1e3:.1f} ms"
    return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"
