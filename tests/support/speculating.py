"""Runs without a GPU that speculate as those on one do: a number is compared where it is taken as given, so a wrong one does no
harm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from gquery import tuning
from gquery.columns.table import Table
from gquery.device.array import Array
from gquery.device.device import Device
from gquery.execution import program
from gquery.execution.feedback import RunFeedback
from gquery.execution.speculation import MisspeculationError, Speculation
from gquery.execution.state import Run
from gquery.kernels.bindings import ErrorSite
from gquery.kernels.readback import scalar_readback


@dataclass
class Reads:
    """The numbers that runs have asked for, by stage: taken as given, or waited for; ``wrong``: runs that had to be made again;
    ``later``: kernels whose errors were looked at in the end alone."""

    given: list[int] = field(default_factory=list)
    waited: list[int] = field(default_factory=list)
    later: list[int] = field(default_factory=list)
    wrong: int = 0

    def clear(self) -> None:
        self.given, self.waited, self.later, self.wrong = [], [], [], 0


class HostSpeculation(Speculation):
    """Speculation over arrays of NumPy."""

    reads: Reads

    def __init__(self, feedback: RunFeedback, device: Device, waits: bool) -> None:
        super().__init__(feedback, device, waits)
        self._expected = None if waits else feedback.expected()
        self._words = np.zeros(tuning.speculation.status_words, np.uint32)
        self.reads.wrong += waits

    def read_scalar(self, array: Array | int, expected: int | None = None) -> int:
        if isinstance(array, int):
            return array
        given = len(self.reads.given)
        value = self._scalar(array, expected)
        if len(self.reads.given) == given:
            self.reads.waited.append(self.stage)
        return value

    def _take_as(self, array: Array, value: int) -> None:
        self.reads.given.append(self.stage)
        if int(np.asarray(array).item()) != value:
            raise MisspeculationError

    def status(self, sites: Sequence[ErrorSite]) -> Array | None:
        words = super().status(sites)
        if words is not None:
            self.reads.later.append(self.stage)
        return words


def speculate_on_host(monkeypatch: pytest.MonkeyPatch) -> Reads:
    """Have all runs speculate; what they read is counted."""
    reads, run_stages = Reads(), program._run
    kind: Any = type("Counted", (HostSpeculation,), {"reads": reads})

    def run(state: Run) -> Table:
        with scalar_readback(state.speculation):
            return run_stages(state)

    monkeypatch.setattr(program, "Speculation", kind)
    monkeypatch.setattr(program, "_run", run)
    return reads
