"""Settings of all tests: plans are verified after every rule, GPU tests are skipped where there is no GPU."""

from __future__ import annotations

import ctypes
import gc
import os
import tempfile
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import cache, partial
from types import SimpleNamespace
from typing import Any

import pytest

# Read once at import of gquery, so set before. Kernels go to a cache that outlives the run, as users have it.
os.environ["GQUERY_VERIFY"] = "1"
os.environ.setdefault("GQUERY_CHECK_MEMORY", "1")

import gquery.kernels.targets.cpu
import gquery.kernels.targets.python
import gquery.runtime.boundary
from gquery import tuning
from gquery.functions.registry import declare_all
from tests.support.collection import WrittenDoctests
from tests.support.tuned import Tune

declare_all()  # also what a process asks for late

# Partitions begin at multiples of so many rows: few, so that three partitions of a small table are three.
tuning.use(replace(tuning.materialization, unit=32))
tuning.use(replace(tuning.encoding, zone_rows=64))
tuning.use(replace(tuning.loops, marked_least_rows=0, marked_rows=128))  # small tables, too, are several blocks
# Small tables, too, are cut, and the groups of ranks are merged by their keys, few by their slots, many in parts.
tuning.use(replace(tuning.distribution, replicated_bytes=0, cut_frame_rows=16, merged_slot_words=16, parted_bytes=256))
tuning.use(
    replace(
        tuning.distribution,
        hashed_bytes=256,
        hashed_most=1e9,
        sorted_later_bytes=2048,
        exchanged_us=0.0,
        gathered_rows=4,
        gathered_located_rows=4,
        alone_rows=16,
        alone_bytes=0,
    )
)
tuning.use(replace(tuning.worker_distribution, **vars(tuning.distribution)))
# Of small tables, too, the first rows of partitions, and of all, are looked for before a sort.
tuning.use(replace(tuning.sorting, leading_least=16, leading_sample=16, fused_rows=24, bucket_rows=48))
tuning.use(replace(tuning.interpreting, plain_rows=8))  # most units run with primitives inlined, the last ones without


# `make quick` runs what interprets alone: a test that comes to the compiler is skipped.
if os.environ.get("GQUERY_QUICK"):
    os.environ["GQUERY_TARGETS"] = "python"

    def compile_nothing(*_: object, **__: object) -> Any:
        pytest.skip("make quick compiles nothing")

    for name in ("compile", "compile_many"):
        setattr(gquery.kernels.targets.cpu.TARGET, name, compile_nothing)


# An error that is no fault of the user's, and no resource's, is one of ours: whatever a test is about, none may come
# up.
faults: list[BaseException] = []
fault = gquery.runtime.boundary.fault


def recorded(error: Exception) -> gquery.InternalError:
    faults.append(error)
    return fault(error)


gquery.runtime.boundary.fault = recorded


@pytest.fixture(autouse=True)
def no_fault(request: pytest.FixtureRequest) -> Iterator[None]:
    faults.clear()
    yield
    assert not faults or request.node.get_closest_marker("faulty"), f"an InternalError was made of {faults!r}"


@pytest.fixture(autouse=True)
def nothing_is_compiled_by_cupy(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.node.get_closest_marker("cuda") is None:
        yield
        return
    from tests.support.cupy_compiler import callers_of_compiler  # CuPy is where GPUs are

    with callers_of_compiler() as callers:
        yield
    assert not callers, f"CuPy compiles for {callers}"


@pytest.fixture(scope="session", autouse=True)
def sources_of_faults(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The source of a kernel that does not compile is kept for who reports it: of those that tests break pytest disposes."""
    folder = tmp_path_factory.mktemp("sources")
    with pytest.MonkeyPatch.context() as patch:
        made = SimpleNamespace(mkstemp=partial(tempfile.mkstemp, dir=folder))
        patch.setattr("gquery.kernels.targets.cache.tempfile", made)
        yield


def open_files() -> int:
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


@pytest.fixture(scope="module", autouse=True)
def files_are_closed() -> Iterator[None]:
    """A module leaves few files open: connections that the next tests take, and what a process keeps. With more than a thousand,
    tests of other modules fail, whose libraries wait by `select`."""
    before = open_files()
    yield
    assert open_files() - before < 100, f"{before} files were open before, {open_files()} are"


@pytest.fixture
def tune() -> Iterator[Tune]:
    """Sets numbers of `gquery.tuning` until the test ends."""
    with ExitStack() as stack:
        yield Tune(stack)


@cache
def has_gpu() -> bool:
    """Whether a CUDA driver with a device is here, asked without CuPy."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int()
    return driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without a GPU its tests are left out, three thousand of them, each of which costs a report as another does; who asks for
    them is told that they are skipped."""
    if has_gpu():
        return
    is_asked = "cuda" in config.option.markexpr or any("::" in argument for argument in config.args)
    on_gpus = [item for item in items if item.get_closest_marker("cuda")]
    if is_asked:
        for item in on_gpus:
            item.add_marker(pytest.mark.skip(reason="no GPU here"))
        return
    left = set(on_gpus)
    items[:] = [item for item in items if item not in left]
    config.hook.pytest_deselected(items=on_gpus)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(WrittenDoctests())  # a hook of this file is not asked about modules of other folders


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Modules and tests are made, which stay: no collection finds anything meanwhile."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Tests are objects too, 600,000 of them: no collection has to go through them again, of which some tests ask for several."""
    gc.collect()
    gc.freeze()


# Plans and kernels of a worker's thousands of queries stay in caches: a full collection would go through all of them each time,
# for a quarter of a second at last. What one has left is taken for good, between tests, so that the next looks at new ones. It
# comes when one is due, and the interpreter's own only for a test that makes as much as ten others.
young, middle, old = gc.get_threshold()
gc.set_threshold(young, middle, 10 * old)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    done = yield
    if gc.get_count()[2] > old:
        gc.collect()
        gc.freeze()
    return done
