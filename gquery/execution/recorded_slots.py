"""What of a recorded run depends on constants: arguments of launches, and the patterns of text scans.

Each is made once a run, however many launches are given it. All arrays go over in one copy, to where those of the run before lay,
so that a launch whose constants are as they were is left alone.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import cast

from gquery.device.arena import Arena, Sent
from gquery.device.graph import RecordedGraph
from gquery.device.recording import CannotRecordError
from gquery.execution.feedback import Shared
from gquery.execution.state import BoundPattern, Run
from gquery.expression.frozen import frozen_open
from gquery.expression.slots import Recorder, SlotValues, literal_key, numbers_in
from gquery.kernels.bindings import Constant, Content, SlotConstant, TextMatches
from gquery.kernels.builtin.define import address
from gquery.kernels.kernel import Parameter
from gquery.kernels.targets.base import LaunchedKernel
from gquery.kernels.targets.cuda_launch import Launcher
from gquery.operators.codegen import Unit
from gquery.runtime.records import dataclass, replace

Made = Constant | Content | TextMatches
"""What a slot is in one run."""


@frozen_open
class SlotArgument:
    """A value of a launch, the ``place``-th of all: what the recording's ``slot``-th slot is as ``parameter``."""

    place: int
    parameter: Parameter
    slot: int


@dataclass(eq=False)
class SlotLaunch:
    """A launch that is given constants; ``packed`` are its values as they were set last."""

    launched: LaunchedKernel
    arguments: tuple[SlotArgument, ...]
    packed: bytes

    def set(self, made: Sequence[Made], places: dict[int, int], graph: RecordedGraph) -> None:
        """Give it those of a run; ``places`` says by slot where arrays lie."""
        values = list(self.launched.values)
        for argument in self.arguments:
            binding = made[argument.slot]
            if isinstance(binding, Constant):
                values[argument.place] = argument.parameter.number(binding.value)
            else:
                values[argument.place] = places[argument.slot]
        launcher, node = cast(Launcher, self.launched.compiled.entry), self.launched.node
        packed = launcher.packed(values)
        if packed != self.packed:
            assert node is not None
            launcher.set_in(graph, node, self.launched.shape, packed)
            self.packed = packed


@frozen_open
class SlotPattern:
    """A text scan by what the recording's ``slot``-th slot is."""

    bound: BoundPattern
    slot: int


class RecordedSlots:
    """The slots of a recording, the launches and scans that depend on them, and the guards of its kernels."""

    def __init__(self, state: Run, launched: Sequence[LaunchedKernel], shared: Shared) -> None:
        """``state`` is the run that was recorded, with the launches that it ``launched``. CannotRecordError where one cannot be
        changed."""
        self._places: dict[Hashable, int] = {}  # in the list of slots, by what they are made of
        self._slots: list[SlotConstant] = []
        self._guards = tuple(_guards(state, shared))
        self._launches = tuple(self._of_launches(state, launched))
        self._patterns = tuple(
            [
                SlotPattern(p, self._slot((id(p.unit), p.name), p.unit.slots[p.name]))  # each has its form
                for p in state.bound_patterns or ()
            ]
        )
        self._numbers = [numbers_in(slot.literals) for slot in self._slots]
        self._last: tuple[SlotValues, list[Made]] | None = None  # the values of the last run, and what was made of them
        self._sent: Sent | None = None  # the arrays of the last run, on the GPU

    def made(self, values: SlotValues) -> list[Made] | None:
        """What the slots are in a run with these values; None where other kernels would serve them."""
        if any(recorder.failed(values) is not None for recorder in self._guards):
            return None
        if self._last is None:
            made = [self._made_of(n, values) for n in range(len(self._slots))]
        else:
            before, known = self._last
            changed = values.changed_since(before)
            made = [
                old if changed.isdisjoint(numbers) else self._made_of(n, values)
                for n, (numbers, old) in enumerate(zip(self._numbers, known, strict=True))
            ]
        self._last = values, made
        return made

    def fits(self, made: Sequence[Made]) -> bool:
        """Whether the recorded text scans look for patterns like those that the slots are."""
        return all(p.bound.pattern.is_like(cast(TextMatches, made[p.slot]).pattern) for p in self._patterns)

    def _made_of(self, number: int, values: SlotValues) -> Made:
        """What a slot is."""
        made = self._slots[number].resolve(values)
        if isinstance(made, TextMatches):
            form = next(p.bound.pattern for p in self._patterns if p.slot == number)
            made = replace(made, pattern=made.pattern.in_form_of(form))
        return made

    def set(self, made: Sequence[Made], graph: RecordedGraph, arena: Arena) -> None:
        """Give the launches what `made` says, before the graph is launched on the arena's stream."""
        arrays = {n: b.buffer.host for n, b in enumerate(made) if isinstance(b, Content)}
        patterns = [cast(TextMatches, made[p.slot]).pattern.packed() for p in self._patterns]
        self._sent = arena.send([*arrays.values(), *patterns], self._sent)
        places = dict(zip(arrays, self._sent.places, strict=False))
        for scan, place in zip(self._patterns, self._sent.places[len(arrays) :], strict=True):
            arena.copy(address(scan.bound.packed), place, scan.bound.packed.nbytes)
        for launch in self._launches:
            launch.set(made, places, graph)

    def _argument(self, unit: Unit, name: str) -> int:
        """The number of what a parameter of a kernel stands for; those that are made alike have one."""
        slot = unit.slots[name]
        make, given = slot.given
        return self._slot((slot.make, make, *map(id, given), *map(literal_key, slot.literals)), slot)

    def _slot(self, key: Hashable, slot: SlotConstant) -> int:
        if key not in self._places:
            self._places[key] = len(self._slots)
            self._slots.append(slot)
        return self._places[key]

    def _of_launches(self, state: Run, launched: Sequence[LaunchedKernel]) -> Iterator[SlotLaunch]:
        by_arguments = {id(b.values): b.unit for b in state.bound or ()}
        for launch in launched:
            unit = by_arguments.get(id(launch.arguments))
            if unit is None or not unit.slots:
                continue
            if launch.node is None:
                raise CannotRecordError("a launch is not known by its node")
            first = len(launch.values) - len(unit.parameters)
            arguments = [
                SlotArgument(first + n, p, self._argument(unit, p.name))
                for n, (p, b) in enumerate(unit.parameters)
                if p.name in unit.slots and not isinstance(b, TextMatches)
            ]
            if arguments:
                yield SlotLaunch(launch, tuple(arguments), b"")


def _guards(state: Run, shared: Shared) -> Iterator[Recorder]:
    """The guards of all kernels that were bound."""
    used = {id(b.unit) for b in state.bound or ()}
    for key, units in state.feedback.units.items():
        if any(id(u) in used for u in units):
            recorder = shared.units.guards(key, units)
            if recorder is None:
                raise CannotRecordError("a kernel is not one of the template's")
            yield recorder
