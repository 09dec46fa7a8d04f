"""What goes to the tier below a device while the next rows are at work there: one thing at a time, on a thread of its own."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from types import TracebackType
from typing import TypeVar

from gquery.device.device import Device
from gquery.errors import OutOfMemoryError
from gquery.execution.tiers import put_below
from gquery.operators.base import Frame
from gquery.runtime.threads import Helper, core_count

Made = TypeVar("Made")


class Behind:
    """Moves frames to the tier behind the thread that makes them. One at most is on its way: `move` waits for the one before. All
    have arrived when the block is left. What waits for a move raises its error."""

    def __init__(self, device: Device, label: str) -> None:
        self._device, self._label = device, label
        self._helper: Helper | None = None
        self._errors: list[BaseException] = []

    def __enter__(self) -> Behind:
        return self

    def move(self, frame: Frame) -> Frame:
        """The frame, whose columns will lie in the tier. On one core, and where the tier are a CPU's files, they do at once."""
        self._wait()
        if self._device.below is None or core_count() == 1:
            return put_below(frame, self._device, self._label)
        self._device.synchronize()  # another thread has a stream of its own
        self._helper = Helper(lambda: self._put(frame), "gquery-tier")
        return frame

    def made(self, make: Callable[[], Made]) -> Made:
        """What a function makes; where memory runs out, once more without the frame that is on its way."""
        try:
            return make()
        except OutOfMemoryError as error:
            if self._helper is None:
                raise
            traceback.clear_frames(error.__traceback__)
        self._wait()
        return make()

    def _put(self, frame: Frame) -> None:
        try:
            put_below(frame, self._device, self._label)
        except BaseException as error:
            self._errors.append(error)

    def _wait(self) -> None:
        helper, self._helper = self._helper, None
        if helper is not None:
            helper.join()
        if self._errors:
            raise self._errors.pop()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        if error is None:
            self._wait()
        elif self._helper is not None:
            self._helper.join()
