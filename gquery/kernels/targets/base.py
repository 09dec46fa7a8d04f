"""What every target offers: a kernel's text for its machine, compiled, launched.

`operators` and `execution` know only this. A target adds the loop, the words of its machine and the launch; the body of
a kernel and its meaning are the same everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import field
from typing import TYPE_CHECKING, Any, Protocol

from gquery.kernels import checks
from gquery.kernels.kernel import Kernel, Parameter
from gquery.runtime.records import dataclass

if TYPE_CHECKING:  # the shell's prompt comes before NumPy
    from gquery.device.array import Array
    from gquery.kernels.bindings import Argument

NARROW_ROWS = 2**32 - 2**26
"""Above this many rows a kernel has to be made with ``wide_index``: a 32-bit index plus one stride must not wrap."""


PRIVATE_THREADS = 128
"""Threads of a block of a kernel with private accumulators: fixed, so that their addresses are cheap."""

Perhaps = Callable[[], Iterable[Kernel]]
"""Gives kernels that a query may want; () where there are none."""


@dataclass(frozen=True)
class Compiled:
    """A kernel that is ready to run.

    ``name`` tells the text of its module from all others. ``cached`` says that nothing was compiled for it, ``seconds`` what
    making it ready took in this process. The last four are known on cuda alone: what it uses per thread and block, and whether
    another is being compiled that runs faster.
    """

    kernel: Kernel
    entry: Callable[..., Any]
    name: str
    seconds: float
    cached: bool
    registers: int = 0
    local_bytes: int = 0
    shared_bytes: int = 0
    is_draft: bool = False


class Target(Protocol):
    """A machine that runs kernels."""

    name: str

    def source(self, kernel: Kernel) -> str:
        """The full text of the module that is compiled."""
        ...

    def held(self) -> list[Compiled]:
        """The kernels that this process has in memory, those that were made or used last at the end."""
        ...

    def is_ready(self, kernel: Kernel) -> bool:
        """Whether `compile` would take no time: this process has the kernel in memory."""
        ...

    def is_cached(self, kernel: Kernel) -> bool:
        """Whether `compile` would take some milliseconds at most: the kernel is in memory, or on disk. Looks there."""
        ...

    def compile(self, kernel: Kernel) -> Compiled:
        """The kernel, ready: from memory, from disk, or compiled now."""
        ...

    def compile_many(self, kernels: Sequence[Kernel], perhaps: Perhaps = tuple) -> list[Compiled]:
        """See `targets.compile_many`."""
        ...

    def begin(self, kernels: Iterable[Kernel], perhaps: Perhaps = tuple) -> None:
        """See `targets.begin`."""
        ...

    def argument(self, parameter: Parameter, value: Argument) -> object:
        """What the launch takes for an array (or None, where the kernel never looks) or a number."""
        ...

    def run(self, compiled: Compiled, lo: int, hi: int, arguments: Sequence[object], shared_words: int = 0) -> None:
        """Run rows lo..hi: on this thread (python, cpu), or queued on CuPy's current stream (cuda)."""
        ...


class Arguments(list[object]):
    """What a launch of a kernel takes, parameter by parameter: addresses, on a CPU. ``held`` are the arrays that lie there: any
    thread may have their columns moved (see `device.addresses`)."""

    def __init__(self, arguments: Iterable[object], held: Iterable[object] = ()) -> None:
        super().__init__(arguments)
        self.held = list(held)


def arguments_of(target: Target, kernel: Kernel, values: Sequence[Argument]) -> Arguments:
    """What a launch of a kernel takes for the values of its parameters."""
    if checks.ENABLED:
        for parameter, value in zip(kernel.parameters, values, strict=True):
            checks.check_owner(kernel, parameter.name, value)
    return Arguments([target.argument(p, v) for p, v in zip(kernel.parameters, values, strict=True)], values)


class MorselTarget(Target, Protocol):
    """A target whose kernels run on threads of the CPU (`Capabilities.runs_morsels`)."""

    def compile_in_background(self, kernels: Sequence[Kernel]) -> None:
        """Begin to compile kernels that a later run wants."""
        ...

    def run_morsels(
        self,
        compiled: Compiled,
        ranges: Sequence[tuple[int, int]],
        arguments_per_worker: Sequence[Sequence[object]],
        morsel_rows: int,
        cancelled: Callable[[], bool] | None = None,
    ) -> None:
        """Run ranges of rows on one thread for each worker's arguments; see `targets.morsels`."""
        ...


class KernelsAwaitedError(Exception):
    """These kernels, which a run was not to wait for, are being compiled beside this process."""

    def __init__(self, kernels: Sequence[Kernel]) -> None:
        super().__init__(f"{len(kernels)} kernels are being compiled")
        self.kernels = tuple(kernels)


class AbortableTarget(Target, Protocol):
    """A target whose kernels look at an abort flag before they do anything (cuda)."""

    def aborting_on(self, word: Array) -> AbstractContextManager[None]:
        """Within it, kernels that this thread launches do nothing once ``word`` (uint32, on the GPU) is not 0."""
        ...

    def limited_to(self, rows: Array | None) -> AbstractContextManager[None]:
        """Within it, kernels that this thread launches go no further than to the row whose number ``rows`` (int64, one, on the
        GPU) has by then; None: to their last one."""
        ...

    def without_drafts(self) -> AbstractContextManager[None]:
        """Within it, this thread runs no kernel that another is to take the place of."""
        ...

    def waiting_for_none(self) -> AbstractContextManager[None]:
        """Within it, this thread waits for no compiler: `KernelsAwaitedError` is raised at a kernel that no cache has, with which
        workers begin, and at the end if drafts were run."""
        ...

    def noting(self) -> AbstractContextManager[Launched]:
        """Within it, what this thread launches is noted."""
        ...

    def compile_in_background(self, kernels: Sequence[Kernel]) -> None:
        """Begin to compile in the background what no cache has."""
        ...

    def is_at_hand(self, kernels: Sequence[Kernel]) -> bool:
        """Whether nobody would have to wait for a compiler."""
        ...


@dataclass(frozen=True, eq=False)
class LaunchedKernel:
    """One launch: ``shape`` are its blocks, the threads of one, and that one's shared memory in bytes. ``values`` are all
    arguments, of which those of ``arguments`` come last. ``node`` is what the current stream has captured it as (None: it
    captures nothing)."""

    compiled: Compiled
    shape: tuple[int, int, int]
    values: tuple[Any, ...]
    arguments: Sequence[object]
    node: int | None


@dataclass
class Launched:
    """What was launched: kernels, and the arrays that they were handed (None: one without rows). A recording of launches needs
    both for as long as it is there."""

    kernels: list[LaunchedKernel] = field(default_factory=list)
    arrays: list[Array | None] = field(default_factory=list)
