"""The garbage collector rests while plans and kernels are made, and works again behind that, errors and threads included."""

from __future__ import annotations

import gc
import threading

import pytest

import gquery
from gquery.runtime.collector import paused


def test_it_rests_within_and_works_behind() -> None:
    assert gc.isenabled()
    with paused(), paused():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_stays_off_for_who_turned_it_off() -> None:
    gc.disable()
    try:
        with paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_the_last_thread_turns_it_on() -> None:
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with paused():
            inside.set()
            leave.wait()

    thread = threading.Thread(target=other)
    with paused():
        thread.start()
        inside.wait()
    assert not gc.isenabled()
    leave.set()
    thread.join()
    assert gc.isenabled()


def test_an_error_while_planning_turns_it_on() -> None:
    with pytest.raises(gquery.Error):
        gquery.connect("python").sql("SELECT no_such_column FROM range(3)")
    assert gc.isenabled()
