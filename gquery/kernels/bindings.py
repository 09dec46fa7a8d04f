"""Bindings: what a kernel's parameter stands for at launch, and what a bit of its status block means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gquery.device.buffer import Buffer
from gquery.errors import DatabaseError
from gquery.kernels.frozen import frozen


@frozen
class ColumnPart:
    """One buffer of a column of the pipeline's input (``owner`` None) or of a build side (its build's number)."""

    owner: int | None
    column: int
    part: Literal["data", "validity", "characters"]


@frozen
class Constant:
    """A scalar known while planning."""

    value: int | float


@dataclass(frozen=True, slots=True, eq=False)
class Content:
    """A small array known while planning: a lookup table, a pattern, a dictionary's characters."""

    buffer: Buffer


@frozen
class BuildPart:
    """An array or size of a join table: ``rows``, ``starts``, ``base``, ``size``, ..."""

    build: int
    part: str


@frozen
class StatePart:
    """An array or number of the sink's own state; ``part`` is the name that the sink gave it."""

    part: str


Binding = ColumnPart | Constant | Content | BuildPart | StatePart

STATUS = StatePart("status")


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
