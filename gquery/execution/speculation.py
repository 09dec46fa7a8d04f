"""Speculation: a run takes scalars of the run before as given, so that it never waits for a GPU, and validates them there.

The host needs a few numbers of each stage to go on: how many rows were materialized, whether a table was full. Reading each
back leaves the GPU idle while Python prepares the next kernel. A program that has run before over the same tables makes the
same numbers again. So a later run takes them from the feedback, queues everything, and looks once, at its end.

Misspeculation must do no harm: arrays would be too small, or hold rows that nobody wrote. So the GPU compares each number where
it is made, and sets the *abort flag* if it differs. Every kernel that is queued behind reads that flag first and does nothing
if it is set. The run is then made once more, waiting for each number.

A run that is to serve other constants, too, takes counts with *slack*: some more than there were. The GPU compares whether there
are more than that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from gquery import tuning
from gquery.device.array import Array
from gquery.device.device import Device
from gquery.execution.feedback import RunFeedback
from gquery.execution.stage_feedback import ScalarSite
from gquery.expression.facts import BITMAP_BITS
from gquery.kernels.bindings import ErrorSite
from gquery.kernels.builtin.define import builtin_kernel, launch
from gquery.kernels.builtin.elements import converted
from gquery.kernels.readback import Count, wait_for_scalar

_VALIDATE = builtin_kernel(
    "numbers:*i64 expected:i64 word:*u32",
    "if ne_i64(i64(numbers[i]), expected):",
    "    store_u32(word, i64(i), 1)",
)
_VALIDATE_MOST = builtin_kernel(
    "numbers:*i64 most:i64 word:*u32",
    "if gt_i64(i64(numbers[i]), most):",
    "    store_u32(word, i64(i), 1)",
)
_COUNT = builtin_kernel(  # the same, and keeps the number: where it was counted may be written to
    "numbers:*i64 most:i64 word:*u32 kept:*i64",
    "number = i64(numbers[i])",
    "store_i64(kept, i64(i), number)",
    "if gt_i64(number, most):",
    "    store_u32(word, i64(i), 1)",
)
_FOLLOW = builtin_kernel("peer:*u32 own:*u32", "if ne_i64(i64(peer[i]), 0):", "    store_u32(own, i64(i), 1)")
_NO_BOUNDS: Mapping[ScalarSite, int] = {}
COUNTING = (_COUNT, _VALIDATE_MOST)
"""What a recording with slack takes counts by; see `count_nothing`."""


class MisspeculationError(Exception):
    """A number is another one than in the run before: what was queued since was aborted."""


class Speculation:
    """The state of one run's speculation: the scalars that it takes as given, and what is validated in the end.

    ``feedback`` is what earlier runs left, ``abort_flag`` one uint32 on the GPU that kernels read before they do anything (None
    on a CPU). Nothing is speculated where ``waits``, on a CPU, and before a program's first run has ended. ``slack`` is what
    counts are multiplied by (0: they are taken as they are), and ``bounds`` are what they were taken as before, by a recording
    that had too little of it.
    """

    def __init__(
        self,
        feedback: RunFeedback,
        device: Device,
        waits: bool,
        slack: float = 0.0,
        bounds: Mapping[ScalarSite, int] = _NO_BOUNDS,
    ) -> None:
        self.feedback = feedback
        self.device = device
        self.slack, self._bounds = slack, bounds
        self._expected = None if waits or not device.is_cuda else feedback.expected()
        self._seen: dict[ScalarSite, int] = {}
        self._reads: dict[int, int] = {}  # by stage, how many numbers it asked for
        self.stage = 0  # which one runs
        self._words = device.zeros(tuning.speculation.status_words, "uint32") if device.is_cuda else None
        self.abort_flag = None if self._words is None else self._words[:1]
        self._used = 1
        self._sites: list[tuple[int, Sequence[ErrorSite]]] = []
        self._is_open = False  # something was taken as given since the GPU was last waited for

    @property
    def seen(self) -> Mapping[ScalarSite, int]:
        """The scalars of the run so far, and as what it took counts."""
        return self._seen

    @property
    def speculates(self) -> bool:
        return self._expected is not None

    def read_scalar(self, array: Array | int, expected: int | None = None) -> int:
        """The one integer in ``array``, which the stage has made: as it was in a run before, as it is ``expected`` to be, or
        waited for."""
        return (
            wait_for_scalar(array)
            if isinstance(array, int | np.ndarray | np.generic)
            else self._scalar(array, expected)
        )

    def _scalar(self, array: Array, expected: int | None) -> int:
        key = ScalarSite(self.stage, self._reads.get(self.stage, 0))
        self._reads[self.stage] = key.ordinal + 1
        value = None if self._expected is None else self._expected.scalars.get(key, expected)
        if value is None:
            value = wait_for_scalar(array)
            self._look_early()
        else:
            self._take_as(array, value)
            self._is_open = True
        self._seen[key] = value
        return value

    def read_count(self, array: Array, most: int | None, varies: bool = False) -> Count:
        """How many elements an array says that there are, ``most`` at most; with slack, and where that number ``varies`` from run
        to run, as many as there may be."""
        slack = max(self.slack, tuning.speculation.varying_slack) if varies else self.slack
        if not slack or isinstance(array, np.ndarray):
            return Count(self.read_scalar(array))
        counted = _whole(array)
        bound, is_taken = self._bound(counted, slack, tuning.replay.slack_rows, most)
        if not is_taken:
            return Count(bound, converted(counted, np.int64))
        number = self.device.empty(1, np.int64)
        launch(_COUNT, 1, number, counted, bound, self.abort_flag, number)
        return Count(bound, number)

    def read_most(self, array: Array) -> int:
        """A number that the one in ``array`` does not exceed; with slack one that it may grow to."""
        if not self.slack or isinstance(array, np.ndarray):
            return self.read_scalar(array)
        number = _whole(array)
        bound, is_taken = self._bound(number, self.slack, 0, None)
        if is_taken:
            launch(_VALIDATE_MOST, 1, number, number, bound, self.abort_flag)
        return bound

    def _bound(self, number: Array, slack: float, spare: int, most: int | None) -> tuple[int, bool]:
        """What a number is taken to be at most, ``most`` in any case: ``spare`` are added to what it is with slack. And whether
        that is taken as given: the GPU has to set the abort flag if the number is greater."""
        key = ScalarSite(self.stage, self._reads.get(self.stage, 0))
        self._reads[self.stage] = key.ordinal + 1
        bound = None if self._expected is None else self._expected.scalars.get(key)
        is_taken = bound is not None and bound != most
        if bound is None:
            bound = max(int(wait_for_scalar(number) * slack) + spare, self._bounds.get(key, 0))
            bound = bound if most is None else min(bound, most)
            self._look_early()
        self._is_open |= is_taken
        self._seen[key] = bound
        return bound, is_taken

    def _take_as(self, array: Array, value: int) -> None:
        """Have the GPU set the abort flag if a number is not this one."""
        numbers = _whole(array)
        launch(_VALIDATE, 1, numbers, numbers, value, self.abort_flag)

    def follow(self, abort_flag: Array) -> None:
        """Have the GPU set the abort flag if that of another rank is set, whose arrays this one reads."""
        assert self.abort_flag is not None
        launch(_FOLLOW, 1, abort_flag, abort_flag, self.abort_flag)
        self._is_open = True

    def _look_early(self) -> None:
        """Raise what has gone wrong so far, now that the GPU was waited for: a number that kernels which were aborted should
        have made says nothing."""
        if self._is_open:
            self._is_open = False
            self.check(self.device.to_host(self.status_words))

    def status(self, sites: Sequence[ErrorSite]) -> Array | None:
        """Words for the errors of a kernel on the GPU, looked at by `validate_all`; None if it must be looked at at
        once: nothing is speculated, a table may be full of which no run has told, or there is no room."""
        size = -(-len(sites) // BITMAP_BITS)
        if self._expected is None or self._words is None or self._used + size > tuning.speculation.status_words:
            return None
        if not self._expected.has(self.stage) and any(site.retry for site in sites):
            return None
        at, self._used = self._used, self._used + size
        self._sites.append((at, sites))
        self._is_open = True
        array: Array = self._words[at : at + size]
        return array

    def validate(self) -> None:
        """Wait, and validate what was speculated so far: before the host looks at what the GPU made."""
        if self.speculates and self._words is not None:
            self._look(self.device.to_host(self._words[:1]))

    def has_failed(self) -> bool:
        """Whether something was misspeculated; waits."""
        try:
            self.validate()
        except MisspeculationError:
            return True
        return False

    def validate_all(self) -> None:
        """Wait for the end, and raise what kernels have to say; remember the numbers for the next run."""
        if self.speculates and self._words is not None:
            self.check(self.device.to_host(self.status_words))
        self.feedback.ended(self._seen, self._words is not None)

    @property
    def status_words(self) -> Array:
        """The words of a GPU that are in use: the abort flag, and the errors of kernels."""
        assert self._words is not None
        return self._words[: self._used]

    def check(self, words: Array) -> None:
        """Raise what the status words of a run say, which were copied to the host."""
        if not words.any():  # nearly always
            return
        self._look(words)
        for at, sites in self._sites:
            for site in raised(words[at:], sites):
                if site.retry:
                    raise MisspeculationError
                raise site.error(site.message)

    @staticmethod
    def _look(words: Array) -> None:
        if words[0]:
            raise MisspeculationError


def count_nothing(device: Device) -> None:
    """Have the kernels of `COUNTING` loaded: a rehearsal, which waits, does not come to them, and none is loaded while a graph is
    recorded."""
    number, word = device.zeros(1, np.int64), device.zeros(1, np.uint32)
    launch(_COUNT, 1, number, number, 0, word, device.zeros(1, np.int64))
    launch(_VALIDATE_MOST, 1, number, number, 0, word)


def _whole(array: Array) -> Array:
    """An array of one number as int64."""
    number: Array = array.reshape(1)
    return number if number.dtype == np.int64 else converted(number, np.int64)


def raised(words: Array, sites: Sequence[ErrorSite]) -> list[ErrorSite]:
    """The errors whose bits are set."""
    return [site for n, site in enumerate(sites) if int(words[n // BITMAP_BITS]) >> n % BITMAP_BITS & 1]
