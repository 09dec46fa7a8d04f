"""The garbage collector rests while plans and kernels are made, and works again behind that, errors and threads included."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import weakref
from dataclasses import replace
from pathlib import Path

import pytest

import gquery
from gquery import tuning
from gquery.runtime import collector
from gquery.runtime.collector import paused, permanent


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


_LOGS = """
import gc, sys, threading

class Log:
    def __init__(self, name):
        self.file, self.itself = open(sys.argv[1] + name, "w"), self
        self.file.write(name)

    def __del__(self):
        self.file.close()

class Holder:
    log = open(sys.argv[1] + "class", "w")

Holder.log.write("class")
before = Log("before")
Log("garbage")
import gquery
between = Log("between")
late = {}
%s
db = gquery.connect("cpu")
frozen = gc.get_freeze_count()
late["itself"], late["log"] = late, Log("late")
after = Log("after")
assert db.sql("SELECT 1").fetchall() == [(1,)]
print(frozen, any(o is before for o in gc.get_objects()), any(o is Holder for o in gc.get_objects()))
"""


def _logs(folder: Path, line: str = "") -> tuple[int, str]:
    """How many objects a process keeps from the collector, and what files hold that it left to the interpreter's end to close."""
    options = [sys.executable, "-c", _LOGS % line, f"{folder}/"]
    done = subprocess.run(options, check=True, capture_output=True, text=True, timeout=100)
    frozen, *found = done.stdout.split()
    assert found == ["True", "True"]
    return int(frozen), " ".join((folder / n).read_text() for n in sorted(p.name for p in folder.iterdir()))


_WRITTEN = "after before between class garbage late"


def test_the_engine_is_left_out_and_what_is_the_user_s_is_not(tmp_path: Path) -> None:
    frozen, written = _logs(tmp_path)
    assert frozen > 30_000
    assert written == _WRITTEN


@pytest.mark.parametrize(
    "line",
    [
        "wait = threading.Event(); threading.Thread(target=wait.wait, daemon=True).start()",
        "many = [[] for _ in range(100_000)]",
    ],
)
def test_nothing_is_left_out_where_objects_cannot_be_told_apart(tmp_path: Path, line: str) -> None:
    assert _logs(tmp_path, line) == (0, _WRITTEN)


def test_what_a_block_makes_is_permanent_and_a_circle_from_before_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "_others_run", lambda: False)  # threads of other tests, which make nothing meanwhile

    class Circle:
        itself: object = None

    circle = Circle()
    circle.itself = circle
    gone = weakref.ref(circle)
    frozen = gc.get_freeze_count()
    with tuning.using(replace(tuning.startup, collected_before=10**9)), permanent():
        made: list[object] = [[] for _ in range(1000)]  # more than the tests before have left to go meanwhile
    try:
        assert gc.get_freeze_count() > frozen
        assert not any(o is made for o in gc.get_objects())
        del circle
        gc.collect()
        assert gone() is None
    finally:
        gc.unfreeze()
        gc.freeze()  # what was there before the tests, and more


def test_a_process_with_too_many_objects_lists_them_once(monkeypatch: pytest.MonkeyPatch) -> None:
    listed: list[int] = []

    def objects() -> list[object]:
        listed.append(1)
        return [None] * 10

    monkeypatch.setattr(collector, "_others_run", lambda: False)
    monkeypatch.setattr(collector, "_seen", 0)
    monkeypatch.setattr(gc, "get_objects", objects)
    with tuning.using(replace(tuning.startup, collected_before=9)):
        for _ in range(3):
            with permanent():
                pass
    assert listed == [1]


def test_a_proxy_of_what_is_gone_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "_others_run", lambda: False)

    class Gone:
        pass

    gone = Gone()
    proxy = weakref.proxy(gone)
    del gone
    with tuning.using(replace(tuning.startup, collected_before=10**9)), permanent():
        made = [proxy]
    assert len(made) == 1
