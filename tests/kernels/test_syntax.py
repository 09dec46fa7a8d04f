"""The parser in several threads: CPython 3.11 counts the depth of syntax trees in one place for all of them."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from gquery.runtime.syntax import compiled, parse

TEXT = "x = " + "f(" * 60 + "1" + ")" * 60


@pytest.fixture
def busy_collector() -> Iterator[None]:
    """The collector runs in the midst of trees, and lets other threads go on."""

    def pause(*_: object) -> None:
        time.sleep(0)

    before = gc.get_threshold()
    gc.callbacks.append(pause)
    gc.set_threshold(50, 100, 100)
    yield
    gc.set_threshold(*before)
    gc.callbacks.remove(pause)


@pytest.mark.usefixtures("busy_collector")
def test_threads_parse_and_compile_at_once() -> None:
    def work(number: int) -> int:
        found: dict[str, Any] = {"f": lambda x: x}
        for n in range(10):
            exec(compiled(parse(f"{TEXT}\ny = {number + n}"), "<text>"), found)
        y: int = found["y"]
        return y

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(32))) == [number + 9 for number in range(32)]
