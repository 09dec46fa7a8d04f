"""Processes that end, disks that fill up and files that change while kernels are compiled: answers stay right, and the worst is
that a kernel is compiled again.

`make faults` runs more of each (``GQUERY_FAULTS=500``), and those that take long.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gquery.kernels.builtin.registry import builtin_kernels
from gquery.kernels.targets.cache import KernelCache, kernel_cache
from gquery.kernels.targets.compilers import compiling_by
from gquery.kernels.targets.cuda import CudaTarget
from tests.kernels.test_kernel_cache import folder, mutated
from tests.support.paths import ROOT

__all__ = ["folder"]
COUNT = max(1, int(os.environ.get("GQUERY_FAULTS", "30")) // 30)
COMPILERS = ["llvm", pytest.param("numba", marks=pytest.mark.slow)]

QUERIES = """
import sys, warnings
warnings.simplefilter("ignore")
import gquery
from gquery.kernels.targets import get_target
db = gquery.connect(device="cpu")
db.sql("SET interpret_limit = 0")
db.sql(f"SET compiler = '{sys.argv[1]}'")
print("begun", flush=True)
def same(sql, rows):
    found = db.sql(sql).fetchall()
    assert found == rows, (sql, found)
same("SELECT x % 7 AS g, max(x) FROM range(1000) t(x) GROUP BY g ORDER BY g LIMIT 1", [(0, 994)])
same("SELECT sum(x * 3), count(*) FROM range(1000) t(x) WHERE x > 11", [(1498302, 988)])
same("SELECT count(*) FROM range(900) t(x) JOIN range(500, 2000) u(y) ON x = y", [(400,)])
same("SELECT sum(fmod(x, 7.5)) > 0 FROM (SELECT CAST(x AS DOUBLE) AS x FROM range(100) t(x))", [(True,)])
print(len(get_target("cpu").held()))
"""


def begin(place: Path, compiler: str, script: str = QUERIES, **more: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "GQUERY_CACHE_DIR": str(place), "PYTHONPATH": str(ROOT)} | more
    return subprocess.Popen(
        [sys.executable, "-c", script, compiler],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def end(process: subprocess.Popen[str]) -> int:
    """How many kernels a process has made or found; its answers are right."""
    said, complaint = process.communicate(timeout=300)
    assert process.returncode == 0, complaint
    return int(said.split()[-1])


def heals(place: Path, compiler: str) -> None:
    """A process gives right answers and leaves all its kernels behind; the next one takes them from there."""
    assert end(begin(place, compiler)) == whole(place) > 3
    before = {file.name: file.stat().st_mtime_ns for file in place.iterdir()}
    end(begin(place, compiler))
    assert {file.name: file.stat().st_mtime_ns for file in place.iterdir()} == before


def whole(place: Path) -> int:
    """Entries that can be read: all but what a killed process had not finished, which has a name of its own."""
    cache = KernelCache(place)
    entries = [file.name for file in place.iterdir() if file.name.startswith("k") and file.name != "key"]
    assert all(cache.read(name) is not None for name in entries)
    return len(entries)


def left_behind(place: Path) -> list[int]:
    """Processes that compile into a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"GQUERY_CACHE_DIR={place}\0".encode() in (process / "environ").read_bytes():
                found.append(int(process.name))
        except OSError:
            continue
    return found


# ---- kill -9 --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("turn", range(COUNT))
def test_a_process_is_killed_while_it_compiles(turn: int, compiler: str, tmp_path: Path) -> None:
    """Its workers end, too, and what is in the cache is whole."""
    place, rng = tmp_path / "cache", random.Random(turn)
    process = begin(place, compiler)
    assert process.stdout is not None and process.stdout.readline() == "begun\n"
    time.sleep(rng.uniform(0.0, 0.5 if compiler == "llvm" else 2.5))
    process.send_signal(signal.SIGKILL)
    process.communicate()
    until = time.monotonic() + 60
    while left_behind(place) and time.monotonic() < until:
        time.sleep(0.05)
    assert left_behind(place) == []
    assert not place.exists() or whole(place) >= 0
    heals(place, compiler)


WORKERS = """
import os, signal, threading, time
from pathlib import Path
def is_own(process):  # it has this test's folder, and is the kind that is wanted
    line = (process / "cmdline").read_bytes().split(bytes(1))
    place = b"GQUERY_CACHE_DIR=" + os.environ["GQUERY_CACHE_DIR"].encode()
    if b"gquery.kernels.compile_worker" not in line or place not in (process / "environ").read_bytes().split(bytes(1)):
        return False
    parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
    return WANTED == ("parent" if parent == os.getpid() else "worker")
def kill():
    while True:
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if is_own(process):
                    os.kill(int(process.name), signal.SIGKILL)
            except OSError:
                pass  # it has ended, or is another user's
        time.sleep(0.02)
threading.Thread(target=kill, daemon=True).start()
from dataclasses import replace
from gquery import tuning
tuning.use(replace(tuning.compiling, own_kernels=0))  # workers compile all
"""


@pytest.mark.slow
@pytest.mark.parametrize("compiler", ["llvm", "numba"])
@pytest.mark.parametrize("who", ["worker", "parent"])
def test_workers_are_killed_as_soon_as_they_are_seen(who: str, compiler: str, tmp_path: Path) -> None:
    assert end(begin(tmp_path / "cache", compiler, WORKERS.replace("WANTED", repr(who)) + QUERIES)) > 3
    heals(tmp_path / "cache", compiler)


WRITING = """
import importlib, os, signal
cache = importlib.import_module("gquery.kernels.targets.cache")
def write(folder, name, content):
    descriptor = os.open("t0123", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=folder)
    os.write(descriptor, content[:len(content) // 2])
    os.kill(os.getpid(), signal.SIGKILL)
own, cache.write_file = cache.write_file, lambda *a: (own if a[1] == "key" else write)(*a)
"""


def test_a_process_is_killed_while_it_writes(tmp_path: Path) -> None:
    place = tmp_path / "cache"
    process = begin(place, "llvm", WRITING + QUERIES)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert (place / "t0123").exists() and whole(place) == 0
    heals(place, "llvm")


# ---- files that change ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("turn", range(COUNT))
def test_all_entries_are_damaged(turn: int, compiler: str, tmp_path: Path) -> None:
    """Each in some way, while nobody looks: compiled again, and whole from then on."""
    place, rng = tmp_path / "cache", random.Random(turn)
    end(begin(place, compiler))
    entries = [file for file in place.iterdir() if file.name != "key"]
    contents = [file.read_bytes() for file in entries]
    for file, content in zip(entries, contents, strict=True):
        file.write_bytes(mutated(content, rng.choice(contents), rng))
    heals(place, compiler)


@pytest.mark.parametrize("compiler", ["llvm", pytest.param("numba", marks=pytest.mark.slow)])
def test_a_damaged_cubin_is_made_again(compiler: str, folder: Path) -> None:
    """Its first line says what a launch needs to know."""
    pytest.importorskip("cuda.core" if compiler == "llvm" else "numba.cuda")
    made, target, rng = builtin_kernels()["define.FILLS[i64]"], CudaTarget(), random.Random(3)
    with compiling_by(compiler):
        first = target.compile_cubin(made, (9, 0))
        (path,) = folder.glob("*.cubin")
        content = path.read_bytes()
        damaged = [
            b"",
            content[:-1],
            content[: len(content) // 2],
            *[mutated(content, b"x" * 99, rng) for _ in range(COUNT)],
        ]
        for text in damaged:
            path.write_bytes(text)
            assert target.compile_cubin(made, (9, 0)).registers == first.registers
            assert kernel_cache().read(path.name) == content[48:] or compiler == "numba"


# ---- a full disk ------------------------------------------------------------------------------------------------------
@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 16 KB; where nobody may make one, the test is skipped."""
    place = tmp_path / "disk"
    place.mkdir(mode=0o700)
    mount = shutil.which("mount")
    done = mount and subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=16k,mode=700", "tmpfs", str(place)], capture_output=True
    )
    if not done or done.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_a_full_disk(compiler: str, small_disk: Path) -> None:
    """Some entries fit; from the first that does not, kernels are kept in memory alone."""
    made = end(begin(small_disk, compiler))
    assert whole(small_disk) < made
    assert not list(small_disk.glob("t*")), "nothing half written is left"
    assert end(begin(small_disk, compiler)) == made


# ---- many at once -----------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("compiler", ["llvm", "numba"])
def test_fifty_processes_begin_with_an_empty_cache(compiler: str, tmp_path: Path) -> None:
    place = tmp_path / "cache"
    running = [begin(place, compiler) for _ in range(50 if compiler == "llvm" else 10)]
    assert len({end(process) for process in running}) == 1
    assert not list(place.glob("t*"))
    heals(place, compiler)
