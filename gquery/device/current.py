"""What makes a device the current one of a thread, for as long as a block runs."""

from __future__ import annotations

import threading
from typing import Any

from gquery.runtime import device_faults

_met = threading.local()


class Nothing:
    """Stands for a stream or a current device where there is no such thing."""

    def __enter__(self) -> Nothing:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def synchronize(self) -> None:
        """Nothing runs beside the host."""


class Current:
    """Makes a GPU the current one, and names the faults after which there is none; see `device_faults`. ``task()`` says what
    runs there."""

    __slots__ = ("_inner", "_task")

    def __init__(self, task: Any, inner: Any) -> None:
        self._task, self._inner = task, inner

    def __enter__(self) -> None:
        device_faults.check()
        try:
            self._inner.__enter__()
        except Exception as error:
            self._raise_named(error)
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: Any) -> None:
        try:
            self._inner.__exit__(kind, error, traceback)
        except Exception as again:  # to go back to the device before fails, too
            self._raise_named(again)
            raise
        if error is not None:
            self._raise_named(error)

    def _raise_named(self, error: BaseException) -> None:
        named = device_faults.named(error, self._task())
        if named is not None:
            raise named from error


class KnownGpu:
    """The context manager of ``cupy.cuda`` that makes a GPU the current one. It takes it that a thread's first device is that
    already, and asks the runtime for nothing; the driver, which launches our kernels, then knows of no context in a thread that
    begins with one."""

    __slots__ = ("_cuda", "_device", "_ordinal")

    def __init__(self, cuda: Any, ordinal: int) -> None:
        self._cuda, self._ordinal = cuda, ordinal

    def __enter__(self) -> None:
        cuda, ordinal = self._cuda, self._ordinal
        if ordinal not in getattr(_met, "ordinals", ()) and cuda.runtime.getDevice() == ordinal:
            cuda.runtime.setDevice(ordinal)
            cuda.runtime.memGetInfo()  # before CUDA 12 the first call that needs a context makes it
            _met.ordinals = {ordinal, *getattr(_met, "ordinals", ())}
        self._device = cuda.Device(ordinal)
        self._device.__enter__()

    def __exit__(self, *raised: object) -> None:
        self._device.__exit__(*raised)
