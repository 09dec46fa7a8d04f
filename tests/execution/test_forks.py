"""A child of a fork computes, whatever other threads of its parent were at."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.marks import one_in

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no forks")

BEGIN = """
import faulthandler, os, sys, threading, time
import numpy as np
import pyarrow as pa
import gquery
from gquery.kernels.targets import cpu_code
from gquery.runtime import collector, forking

TABLE = pa.table({"k": np.arange(60_000) % 7, "v": np.arange(60_000)})

def asked(number, compiled=True):
    with gquery.connect("cpu", threads=2) as db:
        db.set("interpret_limit", 0 if compiled else 10**9)
        db.register("t", TABLE)
        return db.sql(f"SELECT k, sum(v * {number}) FROM t WHERE v % 5 < {number} GROUP BY k ORDER BY k").fetchall()

def forked(compiled=True):
    want = asked(3)
    child = os.fork()
    if child == 0:
        faulthandler.dump_traceback_later(40, exit=True)
        os._exit(0 if asked(3, compiled) == want and asked(4, compiled) else 1)
    return os.waitpid(child, 0)[1]

def held(*locks):
    "Another thread takes locks and keeps them until the event is set."
    taken, go_on = threading.Event(), threading.Event()
    def hold():
        for lock in locks:
            lock.__enter__()
        taken.set()
        go_on.wait()
        for lock in reversed(locks):
            lock.__exit__(None, None, None)
    threading.Thread(target=hold, daemon=True).start()
    assert taken.wait(20)
    return go_on

def later(go_on):
    "What the fork waits for is over a moment after it has begun to wait."
    def wait():
        while not forking._forks:
            time.sleep(0.005)
        time.sleep(0.2)
        go_on.set()
    threading.Thread(target=wait, daemon=True).start()

asked(2)
"""

SCENES = {
    "locks of this package": """
locks = [lock for ref in forking._locks if (lock := ref()) is not None]
assert len(locks) > 12
held(*locks)
want = None
child = os.fork()
if child == 0:
    faulthandler.dump_traceback_later(40, exit=True)
    os._exit(0 if len(asked(3)) == 7 else 1)
assert os.waitpid(child, 0)[1] == 0
os._exit(0)
""",
    "a collector that is paused": """
held(collector.paused())
import gc
assert not gc.isenabled()
child = os.fork()
if child == 0:
    os._exit(0 if gc.isenabled() and len(asked(3)) == 7 and gc.isenabled() else 1)
assert os.waitpid(child, 0)[1] == 0
os._exit(0)
""",
    "LLVM": """
want = asked(3)
go_on = held(cpu_code.llvm.ffi.lib._lock)
def wait():
    while not forking._forks:
        time.sleep(0.005)
    time.sleep(0.2)
    go_on.set()
threading.Thread(target=wait, daemon=True).start()
child = os.fork()
assert go_on.is_set()
if child == 0:
    faulthandler.dump_traceback_later(40, exit=True)
    os._exit(0 if asked(3) == want and asked(4) else 1)
assert os.waitpid(child, 0)[1] == 0
""",
    "a kernel that is compiled": """
go_on = held(forking.whole())
later(go_on)
assert forked() == 0 and go_on.is_set()
""",
    "a thread that forks while it compiles": """
with forking.whole():
    assert forked() == 0
""",
    "a module that is imported": """
go_on = threading.Event()
sys.go_on = go_on
with open("slow_to_import.py", "w") as file:
    file.write("import sys; sys.go_on.wait(60); value = 5")
sys.path.insert(0, ".")
thread = threading.Thread(target=__import__, args=("slow_to_import",), daemon=True)
thread.start()
while not forking._imports():
    time.sleep(0.01)
later(go_on)
child = os.fork()
if child == 0:
    faulthandler.dump_traceback_later(40, exit=True)
    import slow_to_import
    os._exit(0 if slow_to_import.value == 5 else 1)
assert os.waitpid(child, 0)[1] == 0 and go_on.is_set()
""",
    "what does not end": """
from gquery import tuning
from tests.support.marks import one_in
object.__setattr__(tuning.memory, "fork_seconds", 0.2)
held(forking.whole())
assert forked() == 0
os._exit(0)
""",
    "two that fork": """
go_on = held(forking.whole())
later(go_on)
ended = []
threads = [threading.Thread(target=lambda: ended.append(forked())) for _ in range(2)]
asked(3)
for thread in threads:
    thread.start()
for thread in threads:
    thread.join(60)
assert ended == [0, 0] and not forking._forks and not forking._busy
assert len(asked(5)) == 7
""",
}


@pytest.mark.parametrize("scene", one_in(2, list(SCENES)))
def test_another_thread_is_at(scene: str, tmp_path: Path) -> None:
    environment = {**os.environ, "GQUERY_CACHE_DIR": str(tmp_path / "cache")}
    script = BEGIN + SCENES[scene]
    ran = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", script],
        cwd=tmp_path,
        env=environment,
        timeout=120,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
