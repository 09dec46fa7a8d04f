"""Foreseen: a run that knows from the one before how many rows its stages make, and so never waits for a GPU.

The host needs a few numbers of each stage to go on: how many rows were collected, whether a table was full. Waiting for each
leaves the GPU idle while Python prepares the next kernel. A program that has run before over the same tables makes the same
numbers again. So a later run takes them as given, queues everything, and looks once, at its end.

A number that is not as foreseen must not do harm: arrays would be too small, or hold rows that nobody wrote. So the GPU
compares it itself, where it is made, and sets the *halt* word: every kernel that is queued behind looks at that word first and
does nothing. The run then is made once more, waiting for each number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gquery import tuning
from gquery.device.device import Device
from gquery.execution.feedback import RunFeedback, ScalarSite
from gquery.expression.facts import BITMAP_BITS
from gquery.kernels.builtin.define import builtin_kernel, launch
from gquery.kernels.code import ErrorSite
from gquery.kernels.readback import wait_for_scalar

_EXPECT = builtin_kernel(
    "numbers:*i64 expected:i64 word:*u32",
    "if ne_i64(i64(numbers[i]), expected):",
    "    store_u32(word, i64(i), 1)",
)


class UnforeseenError(Exception):
    """A number is another one than in the run before: what was queued since was halted."""


class Outlook:
    """What one run knows of its stages, and what it has to look at in the end.

    ``feedback`` is what earlier runs left, ``halt`` the word that kernels look at before they do anything (None on the CPU).
    Nothing is foreseen where ``waits``, on the CPU, and before a program's first run has ended.
    """

    def __init__(self, feedback: RunFeedback, device: Device, waits: bool) -> None:
        self.feedback = feedback
        self.device = device
        self._known = None if waits or not device.is_cuda else feedback.scalars
        self._seen: dict[ScalarSite, int] = {}
        self._reads: dict[int, int] = {}  # by stage, how many numbers it asked for
        self.stage = 0  # which one runs
        self._words = device.zeros(tuning.speculation.status_words, "uint32") if device.is_cuda else None
        self.halt = None if self._words is None else self._words[:1]
        self._used = 1
        self._sites: list[tuple[int, Sequence[ErrorSite]]] = []

    @property
    def foresees(self) -> bool:
        return self._known is not None

    def read_scalar(self, array: Any) -> int:
        """The one integer in ``array``, which the stage has made: waited for, or as it was in the run before."""
        if isinstance(array, int | np.ndarray | np.generic):
            return wait_for_scalar(array)
        key = ScalarSite(self.stage, self._reads.get(self.stage, 0))
        self._reads[self.stage] = key.ordinal + 1
        value = None if self._known is None else self._known.get(key)
        if value is None:
            value = wait_for_scalar(array)
        else:
            numbers = array.reshape(1).astype(np.int64, copy=False)
            launch(_EXPECT, 1, numbers, numbers, value, self.halt)
        self._seen[key] = value
        return value

    def status(self, sites: Sequence[ErrorSite]) -> Any | None:
        """Words for the errors of a kernel on the GPU, looked at by `validate_all`; None if it must be looked at at
        once: nothing is foreseen, or there is no room."""
        size = -(-len(sites) // BITMAP_BITS)
        if not self.foresees or self._words is None or self._used + size > tuning.speculation.status_words:
            return None
        at, self._used = self._used, self._used + size
        self._sites.append((at, sites))
        return self._words[at : at + size]

    def validate(self) -> None:
        """Wait, and see that all is as foreseen so far: before the host looks at what the GPU made."""
        if self.foresees and self._words is not None:
            self._look(self.device.to_host(self._words[:1]))

    def is_off(self) -> bool:
        """Whether something was not as foreseen; waits."""
        try:
            self.validate()
        except UnforeseenError:
            return True
        return False

    def validate_all(self) -> None:
        """Wait for the end, and raise what kernels have to say; remember the numbers for the next run."""
        if self.foresees and self._words is not None:
            words = self.device.to_host(self._words[: self._used])
            self._look(words)
            for at, sites in self._sites:
                for site in raised(words[at:], sites):
                    if site.retry:
                        raise UnforeseenError
                    raise site.error(site.message)
        self.feedback.scalars = self._seen

    @staticmethod
    def _look(words: Any) -> None:
        if words[0]:
            raise UnforeseenError


def raised(words: Any, sites: Sequence[ErrorSite]) -> list[ErrorSite]:
    """The errors whose bits are set."""
    return [site for n, site in enumerate(sites) if int(words[n // BITMAP_BITS]) >> n % BITMAP_BITS & 1]
