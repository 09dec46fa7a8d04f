"""Faults on purpose: the n-th allocation fails, the n-th look at the token of a run finds it stopped."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from gquery.kernels.targets import python
from gquery.runtime import interrupt
from tests.support import harness

_NUMPY = ("empty", "zeros", "ones", "full", "arange", "concatenate", "repeat", "where", "flatnonzero", "argsort", "cumsum",
          "unique", "ascontiguousarray", "packbits", "unpackbits", "bincount", "lexsort", "searchsorted")  # fmt: skip
_ARROW = ("array", "chunked_array", "table", "concat_arrays", "concat_tables", "nulls", "py_buffer")
_COMPUTE = ("take", "cast", "fill_null", "unique", "sort_indices", "filter", "min_max", "value_counts", "is_null")


class Count:
    """How often something was done; ``at`` is the turn at which it fails, counted from 1 (0: never)."""

    def __init__(self, at: int = 0) -> None:
        self.at, self.seen = at, 0
        self._lock = threading.Lock()

    def now(self) -> bool:
        with self._lock:
            self.seen += 1
            return self.seen == self.at


@contextmanager
def failing_allocations(at: int = 0) -> Iterator[Count]:
    """Within it, the allocation number ``at`` of NumPy or Arrow fails as it does where there is no memory."""
    count = Count(at)

    def failing(function: Callable[..., Any], error: type[Exception]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            if count.now():
                raise error("no memory, on purpose")
            return function(*args, **options)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for module, names, error in (
            (np, _NUMPY, MemoryError), (pa, _ARROW, pa.ArrowMemoryError), (pc, _COMPUTE, pa.ArrowMemoryError)
        ):  # fmt: skip
            for name in names:
                patch.setattr(module, name, failing(getattr(module, name), error))
        yield count


@contextmanager
def interrupted(at: int = 0) -> Iterator[Count]:
    """Within it, a run's token is found stopped at turn ``at`` and later, as `Connection.interrupt` leaves it."""
    count = Count(at)

    class Token(interrupt.Token):
        __slots__ = ("_own",)

        @property
        def stopped(self) -> bool:
            if count.now():
                self._own = True
            return bool(self._own)

        @stopped.setter
        def stopped(self, value: bool) -> None:
            self._own = value

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interrupt, "Token", Token)
        yield count


def break_primitives(monkeypatch: pytest.MonkeyPatch, broken: Mapping[str, Callable[..., Any]]) -> None:
    """Kernels that are interpreted meanwhile call these in place of primitives of their names. None of them stays, neither in the
    target nor with a connection that is kept: a later test with a kernel of the same text would run it."""
    monkeypatch.setattr(python.TARGET, "_compiled", {})
    monkeypatch.setattr(harness, "_connections", OrderedDict())
    for name, function in broken.items():
        monkeypatch.setitem(python.primitives(), name, function)
