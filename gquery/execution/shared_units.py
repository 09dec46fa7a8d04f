"""Kernels that the plans of one template share: each is written once, for the values that a run has, with guards of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable

from gquery import tuning
from gquery.execution.stage_feedback import UnitsKey
from gquery.expression.slots import Recorder, Slots, SlotValues
from gquery.operators.codegen import Unit


class SharedUnits:
    """The kernels of a template's stages, several of a stage where the values of slots decide how it is written."""

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self._made: dict[UnitsKey, tuple[tuple[Recorder, tuple[Unit, ...]], ...]] = {}
        self._lock = threading.Lock()

    def find(self, key: UnitsKey, values: SlotValues) -> tuple[Unit, ...] | None:
        """The kernels of a stage for these values, if they were made."""
        for recorder, units in self._made.get(key, ()):
            if recorder.failed(values) is None:
                return tuple(u.with_values(values) for u in units)
        return None

    def guards(self, key: UnitsKey, units: tuple[Unit, ...]) -> Recorder | None:
        """The guards of kernels that `get` gave."""
        for recorder, made in self._made.get(key, ()):
            if len(made) == len(units) and all(a.kernel is b.kernel for a, b in zip(made, units, strict=True)):
                return recorder
        return None

    def get(self, key: UnitsKey, values: SlotValues, make: Callable[[], tuple[Unit, ...]]) -> tuple[Unit, ...]:
        """The kernels of a stage for these values: found, or made now."""
        found = self.find(key, values)
        if found is not None:
            return found
        with self._slots.recording(Recorder(values)) as recorder:
            made = make()
        with self._lock:
            self._made[key] = ((recorder, made), *self._made.get(key, ()))[: tuning.memory.templates]
        return made
