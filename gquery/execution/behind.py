"""What goes to the tier below a device while the next rows are at work there: one thing at a time, on a thread of its own."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Protocol, TypeVar

from gquery.device.device import Device
from gquery.errors import OutOfMemoryError
from gquery.execution.tiers import put_below
from gquery.operators.base import Frame
from gquery.runtime.interrupt import holding
from gquery.runtime.threads import Helper, core_count

Made = TypeVar("Made")


class GivesWay(Protocol):
    """Who has memory of a device for something that goes on beside a query's thread."""

    def give_way(self) -> bool:
        """Let go of it, however long that takes; whether there was any."""


def give_way(*beside: GivesWay) -> bool:
    """Have all of them let go of it; whether there was any. Raises the error of what could not be written."""
    return sum(b.give_way() for b in beside) > 0


def relieved(make: Callable[[], Made], *beside: GivesWay) -> Made:
    """What a function makes; where memory runs out, once more without what goes on beside it."""
    try:
        return make()
    except OutOfMemoryError as error:
        traceback.clear_frames(error.__traceback__)
        refused = error.with_traceback(None)
    if not give_way(*beside):
        raise refused
    return make()


class Beside:
    """Something that a thread does beside the one that asked for it, which raises its error when it waits."""

    def __init__(self, work: Callable[[], object], name: str) -> None:
        self._work = work
        self._errors: list[BaseException] = []
        self._helper = Helper(self._run, name)

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:
            self._errors.append(error)

    def join(self) -> None:
        """Until it has ended, with an error or without."""
        self._helper.join()
        self._work = int  # what it was done with is let go of

    def wait(self) -> None:
        """The same; raises its error."""
        self.join()
        if self._errors:
            raise self._errors.pop()


class Behind:
    """Moves what was made to the tier behind the thread that makes it. One thing at most is on its way: the next waits for it.
    All have arrived when the block is left. What waits raises the error of what it waited for."""

    def __init__(self, device: Device, label: str) -> None:
        self._device, self._label = device, label
        self._going: Beside | None = None

    def __enter__(self) -> Behind:
        return self

    def move(self, frame: Frame) -> Frame:
        """The frame, whose columns will lie in the tier."""
        self.run(lambda: put_below(frame, self._device, self._label))
        return frame

    def run(self, work: Callable[[], object]) -> None:
        """Have something done that reads what was made. On one core, and where the tier are a CPU's files, it is done at once."""
        self.wait()
        if self._device.below is None or core_count() == 1:
            work()
            return
        self._device.synchronize()  # another thread has a stream of its own
        with holding():  # Ctrl-C: what has started is waited for
            self._going = Beside(work, "gquery-tier")

    def made(self, make: Callable[[], Made]) -> Made:
        """What a function makes; where memory runs out, once more without what is on its way."""
        return relieved(make, self)

    def give_way(self) -> bool:
        """See `GivesWay`."""
        is_going = self._going is not None
        self.wait()
        return is_going

    def wait(self) -> None:
        """Until nothing is on its way."""
        going, self._going = self._going, None
        if going is not None:
            going.wait()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        if error is None:
            self.wait()
        elif self._going is not None:
            self._going.join()
