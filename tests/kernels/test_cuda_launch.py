"""How parameters reach a kernel on a GPU: each at the address that the driver is given, in its own type."""

from __future__ import annotations

import ctypes
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from gquery.kernels.kernel import Kernel, Parameter

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
