"""Which of a test's parameters only the slow tests take."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest


def and_slow(values: Iterable[str], *slow: str) -> list[Any]:
    """The values; ``slow`` ones among them are for the slow tests."""
    return [pytest.param(v, marks=pytest.mark.slow) if v in slow else v for v in values]


def one_in(count: int, values: Sequence[Any]) -> list[Any]:
    """The values; all but one in ``count`` are for the slow tests."""
    return [pytest.param(v, marks=pytest.mark.slow) if n % count else v for n, v in enumerate(values)]


def in_turns(count: int, first: Iterable[Any], second: Sequence[Any]) -> list[Any]:
    """All pairs; those for every run meet each of the first with one in ``count`` of the second, others each time."""
    return [
        pytest.param(a, b, marks=pytest.mark.slow if (n + m) % count else [])
        for n, a in enumerate(first)
        for m, b in enumerate(second)
    ]
