"""How parameters reach a kernel on a GPU: each at the address that the driver is given, in its own type."""

from __future__ import annotations

import ctypes
import threading
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from gquery.kernels.kernel import Kernel, Parameter
from gquery.runtime.recent import Recent
from tests.support.tuned import Tune

PARAMETERS = (
    Parameter("c0", "i32", True),
    Parameter("k0", "i64", False),
    Parameter("k1", "f64", False),
    Parameter("s0", "u8", True),
)


def _launcher(wide: bool, record: Any) -> Any:
    pytest.importorskip("cupy")
    from gquery.kernels.targets.cuda_launch import Launcher

    kernel = Kernel(PARAMETERS, (), (), (), frozenset(), wide_index=wide)
    launcher = Launcher(SimpleNamespace(ptr=77), kernel)
    launcher._launch, launcher._stream = record, lambda: SimpleNamespace(ptr=5)
    return launcher


def _read(address: int, kind: Any) -> Any:
    return kind.from_address(address).value


@pytest.mark.parametrize("wide", [False, True])
def test_parameters_lie_where_the_driver_looks(wide: bool) -> None:
    seen: list[Any] = []

    def record(*arguments: int) -> None:
        pointers = (ctypes.c_void_p * 8).from_address(arguments[9])
        index = ctypes.c_uint64 if wide else ctypes.c_uint32
        kinds = [
            index,
            index,
            ctypes.c_uint64,
            ctypes.c_uint64,
            ctypes.c_uint64,
            ctypes.c_int64,
            ctypes.c_double,
            ctypes.c_uint64,
        ]
        seen.append((arguments[:9], [_read(p, k) for p, k in zip(pointers, kinds, strict=True)]))

    high = 2**40 if wide else 2**32 - 2**26
    _launcher(wide, record)(3, 256, 1024, (32, high, 2**47, 2**45, 2**46, -(2**63), 2.5, 0))
    assert seen == [((77, 3, 1, 1, 256, 1, 1, 1024, 5), [32, high, 2**47, 2**45, 2**46, -(2**63), 2.5, 0])]


def test_two_threads_do_not_mix_their_values() -> None:
    wrong: list[Any] = []

    def record(*arguments: int) -> None:
        pointers = (ctypes.c_void_p * 8).from_address(arguments[9])
        first = _read(pointers[4] or 0, ctypes.c_uint64)
        for _ in range(20):
            if any(_read(pointers[n] or 0, ctypes.c_uint64) != first for n in (5, 7)):
                wrong.append(first)

    launch = _launcher(False, record)
    threads = [
        threading.Thread(target=lambda n=n: [launch(1, 1, 0, (0, 1, 0, 0, n, n, 0.0, n)) for _ in range(300)])
        for n in range(1, 5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_shared_memory_that_was_allowed_stays_so() -> None:
    """Another thread may be about to launch with more."""
    sizes: list[int] = []
    launcher = _launcher(False, None)
    launcher._set = lambda function, attribute, size: sizes.append(size)
    for size in (60_000, 50_000, 60_000, 70_000):
        launcher.allow_shared(size)
    assert sizes == [60_000, 70_000]


def test_code_is_retired_when_its_launcher_goes() -> None:
    pytest.importorskip("cupy")
    from gquery.kernels.targets.cuda_modules import Modules

    modules = Modules(0)
    launcher = modules.keep(_launcher(False, None))
    function = launcher.function
    assert not modules._retired
    del launcher
    assert list(modules._retired) == [function]


@pytest.mark.cuda
def test_code_is_unloaded_while_threads_launch(tune: Tune, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each query has a kernel of its own, of which next to none are kept."""
    from gquery.kernels.targets import cuda

    monkeypatch.setattr(cuda.TARGET, "_compiled", Recent(8))
    tune(tuning.compiling, retired_kernels=4)
    table, wrong = pa.table({"a": pa.array(range(10_000), pa.int64())}), []

    def ask(first: int) -> None:
        with gquery.connect(device="cuda") as connection:
            connection.sql("SET interpret_limit = 0")
            connection.register("t", table)
            for n in range(first, first + 10):
                found = connection.sql(f"SELECT sum({' + '.join(f'a % {k + 2}' for k in range(n))}) FROM t").fetchone()
                if found != (sum(a % (k + 2) for a in range(10_000) for k in range(n)),):
                    wrong.append(n)

    threads = [threading.Thread(target=ask, args=(1 + 10 * n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
