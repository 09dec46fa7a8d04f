"""Waits for what goes on beside queries, which would be counted as a test's own."""

from __future__ import annotations

import time
from collections.abc import Iterator

from gquery import tuning
from gquery.kernels.targets.background import Background
from gquery.kernels.targets.workers import workers

FAIL_SECONDS = 60


def wait_until_quiet(background: Background) -> None:
    """Wait until no thread of it is at a task."""
    end = time.monotonic() + FAIL_SECONDS
    while background._busy:
        assert time.monotonic() < end, "the background's tasks do not end"
        time.sleep(0.01)


def wait_until_compiled() -> None:
    """Wait until the processes that compile for this one have done all that they were asked for, and a recording that waits for
    them looks again."""
    end = time.monotonic() + FAIL_SECONDS
    while workers()._open and workers()._threads:
        assert time.monotonic() < end, "kernels are not compiled"
        time.sleep(0.01)
    time.sleep(tuning.replay.poll_seconds)


def again_and_again(pause: float) -> Iterator[None]:
    """Goes on for a minute, with a pause of so many seconds in between: for what others have to do meanwhile."""
    end = time.monotonic() + FAIL_SECONDS
    while time.monotonic() < end:
        yield
        time.sleep(pause)
