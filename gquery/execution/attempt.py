"""One attempt to run a pipeline: the arrays that all launches of its kernels share, and what their parameters stand for."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import field
from typing import assert_never

import numpy as np

from gquery.device.array import Array
from gquery.device.buffer import Buffer
from gquery.device.device import Device
from gquery.device.host import address_of
from gquery.device.recording import CannotRecordError
from gquery.device.section import Section
from gquery.execution.state import BoundArguments, BoundPattern, Run
from gquery.expression.frozen import frozen_open
from gquery.kernels import checks
from gquery.kernels.bindings import Argument, Binding, BuildPart, ColumnPart, Constant, Content, StatePart, TextMatches
from gquery.kernels.targets.base import Target
from gquery.operators.base import Frame, SinkState
from gquery.operators.codegen import Unit
from gquery.operators.scan_ranges import ScanRanges


@frozen_open
class Attempt:
    """A pipeline over the rows of ``frame``, with a sink of one size; an attempt whose sink was full is followed by another.

    ``units`` are the kernels by role. ``status`` has, by role, words (uint32, on ``device``) for the errors of a kernel, None
    where it has none; those of the roles ``looked_at`` are read as soon as the stage has ended, others at the end of the run.
    ``scan`` are the rows of the frame to run over. ``counters`` (int64, one for the source and each step) count rows where the
    run is to count. ``selection`` are the numbers (uint32) of the rows that the kernel *select* has found, None where there is
    no such kernel, or it has not run yet. ``matches`` are the bitmaps of text scans, by column and pattern: all partitions and
    kernels have one. ``sections`` are the parts on the device of columns that are streamed through it; ``held`` is what
    kernels, and string views that they make, have the addresses of, by id, so that memory of columns that a limit has let go
    of, for any thread, is not another's meanwhile.
    ``number`` is that of the rows (see `Frame`) that kernels go over: of the frame, or of the selection."""

    run: Run
    frame: Frame
    label: str
    device: Device
    units: Mapping[str, Unit]
    status: Mapping[str, Array | None]
    looked_at: tuple[str, ...]
    counters: Array | None
    scan: ScanRanges
    number: Array | None = None
    selection: Array | None = None
    matches: dict[Hashable, Array] = field(default_factory=dict)
    sections: Mapping[ColumnPart, Section] = field(default_factory=dict)
    held: dict[int, Argument] = field(default_factory=dict)

    def arguments(self, unit: Unit, state: SinkState, target: Target) -> list[object]:
        """What a target's launch of a kernel takes; ``state`` is the sink's own for the worker."""
        made = unit.constants.copy()
        if self.run.bound is not None:
            self.run.bound.append(BoundArguments(unit, made))
        for place, parameter, binding in unit.open:
            value = self.value(unit, binding, state)
            if self.device.streams or (self.device.is_cpu and not isinstance(binding, StatePart)):
                self.held[id(value)] = value
            if checks.ENABLED:
                checks.check_owner(unit.kernel, parameter.name, value)
            if not parameter.is_pointer and not isinstance(value, (int, float)):
                value = 0 if value is None else _address(value)
            made[place] = target.argument(parameter, value)
        return made

    def value(self, unit: Unit, binding: Binding, state: SinkState) -> Argument:
        """What a binding of a kernel stands for; ``state`` is the sink's own for the worker."""
        match binding:
            case StatePart():
                return self._part(unit, binding, state)
            case ColumnPart(owner, column, part):
                if binding in self.sections:
                    return self.sections[binding]
                frame = self.frame if owner is None else self.run.joins[owner].frame
                buffer: Buffer | None = getattr(frame.columns[column], part)
                return None if buffer is None else buffer.on(self.device, self.label)
            case Constant(value):
                return value
            case BuildPart(number, "matched"):
                return self.run.matched[number]
            case BuildPart(number, "count"):
                index = self.run.joins[number]
                known_rows(index.frame)
                return index.arrays.count  # of all ranks, where the table was merged: this one may have no row of it
            case BuildPart(number, part):
                found = self.run.joins[number].arrays.part(part)
                return found.on(self.device, self.label) if isinstance(found, Buffer) else found
            case Content(buffer):
                return buffer.on(self.device)
            case TextMatches():
                return self._matches(unit, binding)
            case _:
                assert_never(binding)

    def _matches(self, unit: Unit, binding: TextMatches) -> Array:
        name = next(p.name for p, b in unit.parameters if b is binding)
        slot = unit.slots.get(name)
        key = binding.column, binding.pattern.prepared, None if slot is None else tuple(map(repr, slot.literals))
        found = self.matches.get(key)
        if found is None:
            from gquery.execution.streamed_texts import matched_texts  # of GPUs alone

            column, pattern = self.frame.columns[binding.column], binding.pattern
            packed = self.device.from_host(pattern.packed())
            if slot is not None and self.run.bound_patterns is not None:
                self.run.bound_patterns.append(BoundPattern(unit, name, pattern, packed))
            found = self.matches[key] = matched_texts(column, pattern, packed, self.device, self.label)
        return found

    def _part(self, unit: Unit, binding: StatePart, state: SinkState) -> Argument:
        match binding.part:
            case "status":
                return self.status[unit.role]
            case "counters":
                return self.counters
            case "selection":
                return self.selection
            case "compacted":
                return 0 if self.selection is None else int(self.selection.size)
            case "rows":
                return known_rows(self.frame)
            case _:
                return state.part(binding)


def known_rows(frame: Frame) -> int:
    """How many rows a frame has. CannotRecordError where only the GPU knows."""
    if frame.number is not None:
        raise CannotRecordError("a kernel counts on the number of rows of a stage")
    return frame.rows


def _address(array: Array | Section) -> int:
    if isinstance(array, Section):
        address = _address(array.array)
        return checks.moved(address, -array.first) if isinstance(address, checks.Span) else address - array.first
    if array.size == 0:
        return 0
    if not isinstance(array, np.ndarray):
        return int(array.data.ptr)
    address = address_of(array)
    return checks.span_of(address, array.nbytes) if checks.ENABLED else address
