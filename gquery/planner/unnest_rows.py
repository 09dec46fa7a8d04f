"""The node of a physical plan that makes rows of the elements of lists: part of `physical.PipelineBreaker`."""

from __future__ import annotations

from gquery.expression.expr import Column
from gquery.expression.frozen import frozen_open
from gquery.planner.stored import Stored


@frozen_open
class UnnestRows:
    """The rows of a frame, each as often as the longest of its lists has elements, with these beside it. ``lists``: what elements
    become, and the columns of the frame that they lie in; ``ordinal`` counts them from 1. A row without elements comes once, with
    NULLs, where it is ``kept``. ``columns``: those that are passed on, and the new ones."""

    stage: int
    lists: tuple[tuple[Stored, Column], ...]
    ordinal: Stored | None
    kept: bool
    columns: tuple[Stored, ...]
