"""Bindings: what a kernel's parameter stands for at launch, and what a bit of its status block means."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, TypeAlias
from typing import Literal as OneOf

from gquery.device.array import Array
from gquery.device.buffer import Buffer
from gquery.device.section import Section
from gquery.errors import DatabaseError
from gquery.expression.expr import Literal
from gquery.expression.frozen import frozen
from gquery.expression.slots import SlotValues
from gquery.kernels.patterns import ScannedPattern
from gquery.runtime.records import dataclass

Argument: TypeAlias = Array | Section | int | float | None
"""What a parameter is given at launch: an array on the kernel's device, or a number; None where the kernel never looks."""

JoinName = OneOf[
    "bits",
    "capacity",
    "count",
    "filter",
    "filter_shift",
    "gathers",
    "key_scale",
    "key_starts",
    "keys",
    "mask",
    "matched",
    "null_keys",
    "order",
    "pairs",
    "reach_leaves",
    "reach_tree",
    "slots",
    "sorted_keys",
    "starts",
]
"""The fields of `operators.base.JoinArrays`, and ``matched`` of the run."""

RunName = OneOf["status", "counters", "selection", "compacted", "rows"]
"""What an attempt has beside the sink's own: errors, rows behind each step, the rows to look at and how many these are, and how
many rows its source has."""

SinkName = OneOf[
    "accumulators",
    "behind",
    "bits",
    "cache_f64",
    "cache_i64",
    "capacity",
    "chunk_list",
    "chunk_parts",
    "chunk_rows",
    "chunks_taken",
    "counts",
    "data",
    "ends",
    "entered",
    "contributed_f64",
    "contributed_i64",
    "filter",
    "filter_shift",
    "key",
    "key_valid",
    "keys",
    "mask",
    "out",
    "out_valid",
    "pairs",
    "part_chunks",
    "part_ends",
    "part_groups",
    "part_masks",
    "part_rows",
    "part_shift",
    "slot_of_row",
    "slots",
    "slots_in_order",
    "start",
    "starts",
    "to_partition",
    "touched",
    "twice",
    "unit",
    "validity",
    "window_high",
    "window_low",
    "words_f64",
    "words_i64",
]
"""The fields of the records of state (`operators.base.SinkState`) that kernels are given."""


@frozen
class ColumnPart:
    """One buffer of a column of the pipeline's input (``owner`` None) or of a build side (its build's number)."""

    owner: int | None
    column: int
    part: OneOf["data", "validity", "characters"]


@frozen
class Constant:
    """A scalar known while planning."""

    value: int | float


@dataclass(frozen=True, slots=True, eq=False)
class Content:
    """A small array known while planning: a lookup table, a pattern, a dictionary's characters."""

    buffer: Buffer


@dataclass(frozen=True, slots=True, eq=False)
class TextMatches:
    """The bitmap (uint32) of the rows whose text in a column of the pipeline's input, which is no NULL, is LIKE a pattern. It is
    made by a text scan (`builtin.text_scan`) before the kernel first runs."""

    column: int
    pattern: ScannedPattern


@dataclass(frozen=True, slots=True, eq=False)
class SlotConstant:
    """A `Constant`, `Content` or `TextMatches` that is made of the values of literals, of which some are slots, and of what is
    ``given``."""

    make: Callable[..., Constant | Content | TextMatches]
    literals: tuple[Literal, ...]
    given: tuple[Any, ...]

    def resolve(self, values: SlotValues) -> Constant | Content | TextMatches:
        """What it is for these values."""
        return self.make(*map(values.of, self.literals), *self.given)


@frozen
class BuildPart:
    """An array or number of the join table that stage ``build`` makes: a field of `operators.base.JoinArrays`."""

    build: int
    part: JoinName


@frozen
class StatePart:
    """An array or number of the sink's own state: a field of its record, or element ``number`` of a field that has several."""

    part: SinkName | RunName
    number: int | None = None


Binding = ColumnPart | Constant | Content | TextMatches | BuildPart | StatePart

STATUS = StatePart("status")

PARTS: dict[type, Callable[[Any], object]] = {  # what tells bindings of a class apart, of plain values
    ColumnPart: attrgetter("owner", "column", "part"), BuildPart: attrgetter("build", "part"),
    StatePart: attrgetter("part", "number"), Constant: attrgetter("value"), Content: lambda b: id(b.buffer), TextMatches: id,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ErrorSite:
    """What a set bit of the status block means."""

    error: type[DatabaseError]
    message: str
    retry: bool = False  # a table was full: grow it and run the stage again


class NeedsHostError(Exception):
    """The expression calls a function that has no kernel body; the planner moves it to the host."""

    def __init__(self, function: str) -> None:
        super().__init__(function)
        self.function = function
