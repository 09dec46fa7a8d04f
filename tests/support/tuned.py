"""Tests choose numbers by setting records of `gquery.tuning`; they patch no module."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import Any, cast

from gquery import tuning
from gquery.tuning.record import Record


class Tune:
    """``tune(tuning.join_layouts, small_array=16)`` sets fields of a record until the test ends (fixture ``tune``)."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack

    def __call__(self, record: Record, **fields: Any) -> None:
        self._stack.enter_context(tuning.using(replace(cast(Any, record), **fields)))
