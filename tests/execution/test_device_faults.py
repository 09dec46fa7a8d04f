"""A broken CUDA context is one error that says what to do, first and later; without a GPU, by a module that stands for CuPy."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import gquery
from gquery.device import current, device
from gquery.errors import DeviceError, OperationalError, OutOfMemoryError
from gquery.runtime import device_faults
from gquery.runtime.boundary import boundary

ILLEGAL = "cudaErrorIllegalAddress: an illegal memory access was encountered"
SAYS = r"cannot be used any more in this process.*cudaErrorIllegalAddress.*Restart it"


class CUDARuntimeError(RuntimeError):
    """As CuPy's is."""


class MemoryFullError(MemoryError):
    """As CuPy's OutOfMemoryError is."""


class FakeCuPy:
    """NumPy's arrays, one GPU, and a context that breaks when ``fault`` is set."""

    def __init__(self) -> None:
        self.fault = ""
        runtime = SimpleNamespace(
            CUDARuntimeError=CUDARuntimeError,
            getDeviceCount=lambda: self.answer(1),
            getDevice=lambda: self.answer(0),
            setDevice=lambda ordinal: self.answer(None),
            memGetInfo=lambda: self.answer((0, 0)),
        )
        memory = SimpleNamespace(OutOfMemoryError=MemoryFullError)
        stream = SimpleNamespace(synchronize=lambda: self.answer(None))
        self.cuda = SimpleNamespace(
            Device=self.current, runtime=runtime, memory=memory, get_current_stream=lambda: stream, MemoryPool=self.pool
        )
        self.entered = 0

    def current(self, ordinal: int) -> Any:
        return self

    def __enter__(self) -> None:
        self.entered += 1

    def __exit__(self, *_: object) -> None:
        self.answer(None)

    def answer(self, value: Any) -> Any:
        if self.fault:
            raise CUDARuntimeError(self.fault)
        return value

    def zeros(self, *given: Any) -> Any:
        return self.answer(np.zeros(*given))

    def asnumpy(self, array: Any) -> Any:
        return self.answer(array)

    def pool(self) -> Any:
        return SimpleNamespace(
            free_all_blocks=lambda: self.answer(None), used_bytes=lambda: 0, total_bytes=lambda: 0, set_limit=lambda size: None
        )

    get_default_memory_pool = pool


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCuPy]:
    fake = FakeCuPy()
    monkeypatch.setattr(device, "_cupy", lambda: fake)
    monkeypatch.setattr(device, "has_driver", lambda: True)
    monkeypatch.setattr(device_faults, "_broken", None)
    monkeypatch.setattr(current, "_met", threading.local())
    yield fake
    device_faults._broken = None


@pytest.mark.parametrize("limit", [None, 10**9])
def test_the_first_use_and_all_later_ones(cupy: FakeCuPy, limit: int | None) -> None:
    gpu = device.cuda_device().with_limit(limit)
    cupy.cuda.using_allocator = lambda allocate: gpu_nothing()
    gpu.zeros(3, "int64")
    cupy.fault, gpu.task = ILLEGAL, "group by k"
    with pytest.raises(OperationalError, match=SAYS) as first:
        gpu.zeros(3, "int64")
    assert "noticed in group by k" in str(first.value)
    assert isinstance(first.value.__cause__, CUDARuntimeError)
    cupy.fault = ""  # whatever CUDA says later: nothing asks it
    entered, array = cupy.entered, cast(Any, object())
    for use in (
        lambda: gpu.zeros(3, "int64"),
        gpu.synchronize,
        gpu.make_room,
        lambda: gpu.to_host(array),
        device.cuda_device,
        device.best_device,
        lambda: gquery.connect(device="cuda"),
        lambda: gquery.connect(),
    ):
        with pytest.raises(DeviceError, match=SAYS) as later:
            use()
        assert "an earlier query met" in str(later.value)
    assert cupy.entered == entered
    assert gquery.connect(device="cpu").sql("SELECT 1").fetchall() == [(1,)]


@pytest.mark.parametrize("limit", [None, 10**9])
def test_a_thread_that_meets_a_broken_gpu_first(cupy: FakeCuPy, limit: int | None) -> None:
    """Making its context the thread's is the first that fails there."""
    gpu = device.cuda_device().with_limit(limit)
    cupy.cuda.using_allocator = lambda allocate: gpu_nothing()
    cupy.fault, gpu.task = ILLEGAL, "join of t"
    said: list[str] = []

    def use() -> None:
        for _ in range(2):
            try:
                with gpu.activate():
                    said.append("nothing")
            except DeviceError as error:
                said.append(str(error))

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert "noticed in join of t" in said[0] and "an earlier query met" in said[1] and len(said) == 2
    assert cupy.entered == 0


def gpu_nothing() -> Any:
    return current.Nothing()


def test_what_a_query_meets_between_its_kernels(cupy: FakeCuPy) -> None:
    """Thrust and the driver word it their own way; a nested use does not wrap the error again."""
    gpu = device.cuda_device()
    for text in (
        "merge_sort: failed to synchronize: " + ILLEGAL,
        "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered",
        "CUDA_ERROR_LAUNCH_FAILED: unspecified launch failure",
        "cudaErrorLaunchFailure: unspecified launch failure",
        "CUDA_ERROR_ECC_UNCORRECTABLE: uncorrectable ECC error encountered",
    ):
        device_faults._broken = None
        with pytest.raises(DeviceError, match="cannot be used any more") as raised, gpu.activate(), gpu.activate():
            raise RuntimeError(text)
        assert str(raised.value).count("cannot be used any more") == 1


def test_other_errors_stay_what_they_are(cupy: FakeCuPy) -> None:
    gpu = device.cuda_device()
    for error in (
        CUDARuntimeError("cudaErrorInvalidValue: invalid argument"),
        OutOfMemoryError("Out of memory on cuda:0"),
        gquery.Error('there is no column "cudaErrorIllegalAddress"'),
        KeyboardInterrupt(ILLEGAL),
    ):
        with pytest.raises(type(error)) as raised, gpu.activate():
            raise error
        assert raised.value is error
    gpu.synchronize()


def test_a_context_that_another_library_broke(cupy: FakeCuPy) -> None:
    cupy.fault = ILLEGAL
    with pytest.raises(DeviceError, match=SAYS):
        gquery.connect(device="cuda")
    with pytest.raises(DeviceError, match=SAYS):
        gquery.connect()


def test_where_no_device_was_asked(cupy: FakeCuPy) -> None:
    """Array functions may be called elsewhere: the boundary of the package knows those faults, too."""

    @boundary
    def sort() -> None:
        raise CUDARuntimeError(ILLEGAL)

    with pytest.raises(DeviceError, match=SAYS):
        sort()
    with pytest.raises(DeviceError, match="an earlier query met"):
        device.cuda_device()
