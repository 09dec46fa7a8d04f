"""Scalars that plans of one template have in common: a stage that meets the constants of an earlier run makes what that made.

A plan that a template serves has not run yet, so a run of it would wait for each scalar of a GPU (see `speculation`). But most
stages of it depend on few of the text's constants, many on none. Each stage's scalars are kept by the values of the slots that
it depends on, itself or through the stages that it reads. Runs of all plans of the template leave them, and they are validated
where they are taken as given.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Hashable, Mapping
from typing import TYPE_CHECKING

from gquery import tuning
from gquery.execution.stage_feedback import ScalarSite
from gquery.expression.frozen import frozen_open
from gquery.runtime.nesting import with_room
from gquery.runtime.recent import Recent
from gquery.runtime.records import cached_property
from gquery.runtime.tuples import NamedTuple

if TYPE_CHECKING:
    from gquery.expression.slots import SlotValues
    from gquery.planner.physical import Program


@frozen_open
class Expected:
    """What a run may take as given: ``scalars``, and that no table of ``stages`` fills up (None: of any stage)."""

    scalars: Mapping[ScalarSite, int]
    stages: frozenset[int] | None

    def has(self, stage: int) -> bool:
        """Whether a run has told of a stage."""
        return self.stages is None or stage in self.stages


class _Known(NamedTuple):
    """What is kept of a stage: its scalars, and whether a table had to grow for them."""

    scalars: Mapping[ScalarSite, int]
    grew: bool


class _Ended(NamedTuple):
    """A run that has ended, with what `StageScalars.keep` is told of it."""

    values: SlotValues
    seen: Mapping[ScalarSite, int]
    grown: Collection[int]


class StageScalars:
    """The scalars of one template's stages."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._found = Recent[tuple[int, Hashable], _Known](tuning.speculation.kept_stages)
        self._last: _Ended | None = None
        self._misspeculated = 0
        self._lock = threading.Lock()

    def expected(self, values: SlotValues) -> Expected | None:
        """What is known of a run with these values of the slots; None before a run of the template has ended, and where it
        has been wrong too often."""
        self.enter_last()
        if len(self._found) == 0 or self._misspeculated >= tuning.speculation.given_up:
            return None
        scalars: dict[ScalarSite, int] = {}
        stages = []
        for key in self._keys(values):
            found = self._found.get(key)
            if found is not None:
                scalars |= found.scalars
                if not found.grew:
                    stages.append(key[0])
        return Expected(scalars, frozenset(stages))

    def keep(self, values: SlotValues, seen: Mapping[ScalarSite, int], grown: Collection[int] = ()) -> None:
        """Keep what a run with these values has read back; the tables of the stages ``grown`` had to grow, and have to again
        in other plans."""
        with self._lock:
            before, self._last = self._last, _Ended(values, seen, grown)
        if before is not None and before.values is not values:  # else this run has told of each of its stages again
            self._enter(before)

    def enter_last(self) -> None:
        """Enter the last run by what its stages depend on. To look for that takes some milliseconds, which the first run of a
        text leaves to the second, or to the first one with other constants."""
        with self._lock:
            last, self._last = self._last, None
        if last is not None:
            self._enter(last)

    def _enter(self, run: _Ended) -> None:
        by_stage: dict[int, dict[ScalarSite, int]] = {}
        for site, value in run.seen.items():
            by_stage.setdefault(site.stage, {})[site] = value
        for key in self._keys(run.values):
            self._found[key] = _Known(by_stage.get(key[0], {}), key[0] in run.grown)

    def misspeculated(self) -> None:
        """A run that took scalars of others as given had to be made again."""
        with self._lock:
            self._misspeculated += 1

    def _keys(self, values: SlotValues) -> list[tuple[int, Hashable]]:
        """For each stage, what its result depends on."""
        given = values.keys()
        return [(n, tuple([given[s] for s in slots])) for n, slots in enumerate(self._slots)]

    @cached_property
    def _slots(self) -> list[list[int]]:
        from gquery.planner.slot_uses import slots_by_stage

        return [sorted(slots) for slots in with_room(lambda: slots_by_stage(self._program))]
