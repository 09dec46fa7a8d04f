"""What keeps objects from the collector, beside threads that make others."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterator

import pytest

from gquery.runtime import collector


class _Node:
    def __init__(self) -> None:
        self.parts = (1, [2])


@pytest.fixture
def impatient_threads() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def test_trees_are_left_alone() -> None:
    with collector.trees((_Node,)):
        made = [_Node() for _ in range(10)]
    assert not any(gc.is_tracked(n) for n in made)
    assert gc.is_tracked(made)


@pytest.mark.usefixtures("impatient_threads")
def test_tuples_of_other_threads_are_held_by_nobody_else() -> None:
    is_over, errors = threading.Event(), []

    def make() -> None:
        while not is_over.is_set():
            try:
                tuple(object() for _ in range(50))
            except SystemError as error:
                errors.append(error)

    threads = [threading.Thread(target=make) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(1500):
        with collector.trees((_Node,)):
            [_Node() for _ in range(1000)]
    is_over.set()
    for thread in threads:
        thread.join()
    assert not errors
