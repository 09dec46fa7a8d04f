"""What a GPU's launches of one thread depend on: an abort flag, a limit of rows, who notes them, and whether drafts will do."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gquery.device.array import Array, on_gpu
from gquery.kernels.kernel import Kernel
from gquery.kernels.targets.base import KernelsAwaitedError, Launched


class Local(threading.local):
    """What launches of one thread depend on."""

    abort_flag: int | None = None  # the address of the word that kernels look at; None: of one that stays 0
    limit: int | None = None  # the address of the number that rows stay below; None: of one that is greater than all
    noted: Launched | None = None
    drafts: dict[Kernel, None] | None = None  # that were run where no compiler is to be waited for
    is_recorded: bool = False  # or rehearsed for that: what is launched stays, so that it is no draft


class LaunchContexts:
    """The contexts of `AbortableTarget`, each for the thread that enters it."""

    def __init__(self) -> None:
        self._local = Local()

    @contextmanager
    def without_drafts(self) -> Iterator[None]:
        """Within it, this thread waits for the kernels proper."""
        before, self._local.is_recorded = self._local.is_recorded, True
        try:
            yield
        finally:
            self._local.is_recorded = before

    @contextmanager
    def waiting_for_none(self) -> Iterator[None]:
        """See `AbortableTarget.waiting_for_none`."""
        drafts = self._local.drafts = {}
        try:
            yield
        finally:
            self._local.drafts = None
        if drafts:
            raise KernelsAwaitedError(list(drafts))

    @contextmanager
    def noting(self) -> Iterator[Launched]:
        """Within it, what this thread launches is noted."""
        noted = self._local.noted = Launched()
        try:
            with self.without_drafts():
                yield noted
        finally:
            self._local.noted = None

    @contextmanager
    def aborting_on(self, word: Any) -> Iterator[None]:
        """Within it, kernels that this thread launches do nothing once ``word`` (uint32, on the GPU) is not 0."""
        before = self._local.abort_flag
        self._local.abort_flag = int(word.data.ptr)
        try:
            yield
        finally:
            self._local.abort_flag = before

    @contextmanager
    def limited_to(self, rows: Array | None) -> Iterator[None]:
        """See `AbortableTarget.limited_to`."""
        before = self._local.limit
        self._local.limit = None if rows is None else int(on_gpu(rows).data.ptr)
        try:
            yield
        finally:
            self._local.limit = before
