"""Waits for what goes on beside queries, which would be counted as a test's own."""

from __future__ import annotations

import time

from gquery.kernels.targets.background import Background

FAIL_SECONDS = 60


def wait_until_quiet(background: Background) -> None:
    """Wait until no thread of it is at a task."""
    end = time.monotonic() + FAIL_SECONDS
    while background._busy:
        assert time.monotonic() < end, "the background's tasks do not end"
        time.sleep(0.01)
