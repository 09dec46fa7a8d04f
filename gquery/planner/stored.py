"""A column of a frame, in a physical plan."""

from __future__ import annotations

from gquery.expression.expr import Column
from gquery.expression.frozen import frozen_open
from gquery.expression.types import PhysicalType
from gquery.kernels.values import ValueProperties


@frozen_open
class Stored:
    """A column of a frame: what the planner knows of its values, and the physical type that holds them."""

    column: Column
    properties: ValueProperties
    physical_type: PhysicalType
