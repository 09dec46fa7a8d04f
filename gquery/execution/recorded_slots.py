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
from gquery.expression.exact import exact
from gquery.expression.frozen import frozen_open
from gquery.expression.slots import Recorder, SlotValues
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
        self._numbers: dict[tuple[int, str], int] = {}
        self._slots: list[SlotConstant] = []
        self._guards = tuple(_guards(state, shared))
        self._launches = tuple(self._of_launches(state, launched))
        self._patterns = tuple([SlotPattern(p, self._slot(p.unit, p.name)) for p in state.bound_patterns or ()])
        # by slot: an array or a pattern of the last run, and the values that it is of
        self._kept: dict[int, tuple[list[Hashable], Made]] = {}
        self._sent: Sent | None = None  # the arrays of the last run, on the GPU

    def made(self, shared: Shared) -> list[Made] | None:
        """What the slots are in a run of a plan; None where other kernels would serve its constants."""
        values = shared.values
        if any(recorder.failed(values) is not None for recorder in self._guards):
            return None
        return [self._made_of(n, slot, values) for n, slot in enumerate(self._slots)]

    def fits(self, made: Sequence[Made]) -> bool:
        """Whether the recorded text scans look for patterns like those that the slots are."""
        return all(p.bound.pattern.is_like(cast(TextMatches, made[p.slot]).pattern) for p in self._patterns)

    def _made_of(self, number: int, slot: SlotConstant, values: SlotValues) -> Made:
        """What a slot is; arrays and patterns are made anew where a value is another one than in the run before."""
        given = [values.of(literal) for literal in slot.literals]
        kept = self._kept.get(number)
        if kept is not None and kept[0] == list(map(exact, given)):
            return kept[1]
        made = slot.make(*given, *slot.given)
        if isinstance(made, TextMatches):
            form = next(p.bound.pattern for p in self._patterns if p.slot == number)
            made = replace(made, pattern=made.pattern.in_form_of(form))
        if not isinstance(made, Constant):
            self._kept[number] = list(map(exact, given)), made
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

    def _slot(self, unit: Unit, name: str) -> int:
        """The number of what a parameter of a kernel stands for."""
        key = id(unit), name
        if key not in self._numbers:
            self._numbers[key] = len(self._slots)
            self._slots.append(unit.slots[name])
        return self._numbers[key]

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
                SlotArgument(first + n, p, self._slot(unit, p.name))
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
