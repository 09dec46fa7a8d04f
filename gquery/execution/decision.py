"""How a stage runs, and the facts that this was decided from."""

from __future__ import annotations

from gquery import tuning
from gquery.execution.stage_feedback import StageFeedback
from gquery.expression.facts import BITMAP_BITS
from gquery.expression.frozen import frozen_open
from gquery.kernels.kernel import Kernel
from gquery.kernels.targets.capabilities import Capabilities, capabilities
from gquery.operators.codegen import Unit
from gquery.operators.specialize import ProbedTable
from gquery.planner.physical import Pipeline
from gquery.runtime.records import cached_property
from gquery.runtime.tuples import NamedTuple
from gquery.settings import Settings


class Choice(NamedTuple):
    """The name of the target that runs a pipeline, and why that one. ``is_draft``: it runs drafts of the kernels."""

    target: str
    reason: str
    is_draft: bool = False


@frozen_open
class Specialized:
    """A pipeline as it runs, and the target that runs it."""

    pipeline: Pipeline
    choice: Choice

    @property
    def target(self) -> str:
        """The name of the target."""
        return self.choice.target


class Grounds(NamedTuple):
    """All that a decision depends on (see `execution.facts.Facts`)."""

    rows: int
    tables: tuple[ProbedTable, ...]
    known: StageFeedback
    copied_bytes: int
    has_room: bool
    target: str
    stays: bool  # on the device; see `Device.stays`
    counts: bool
    settings: Settings


@frozen_open
class Decision:
    """A specialized pipeline, its target, and its kernels there. ``fan_out``: build rows that a row of the source goes through,
    expected now that the tables are there. ``awaited`` are kernels of a better form of the pipeline, which are being compiled:
    once they are there, another decision is made."""

    grounds: Grounds
    runs: Specialized
    units: tuple[Unit, ...]
    fan_out: float = 1.0
    awaited: tuple[Kernel, ...] = ()

    @cached_property
    def unit(self) -> int:
        """Rows that one count of a materializing kernel covers: a power of two, fewer where each goes through many build rows,
        as the query can be interrupted between two units alone. Where threads share a bitmap, those of a word of it at least."""
        most, steps = tuning.materialization.unit, tuning.interpreting.loop_steps_cpu
        least = BITMAP_BITS if self.able.has_warps else 1
        return max(least, min(most, 1 << int(steps / self.fan_out).bit_length() >> 1))

    @cached_property
    def able(self) -> Capabilities:
        """What the target can do."""
        return capabilities(self.runs.target)
