"""What pipelines read: the rows of a table, a range or the frame of an earlier stage, and how columns are stored there."""

from __future__ import annotations

from gquery.columns.table import TableSource
from gquery.expression.expr import Column
from gquery.expression.frozen import frozen_open
from gquery.kernels.values import ValueProperties
from gquery.planner.stored import Stored


@frozen_open
class ReadTable:
    """The rows of a table; ``fields`` are positions in its schema. Loaded (and so encoded) when the plan was made."""

    source: TableSource
    fields: tuple[int, ...]
    columns: tuple[Stored, ...]


@frozen_open
class ReadRange:
    """``start + i * step`` for ``rows`` rows; nothing is stored."""

    column: Column
    properties: ValueProperties
    start: int
    step: int
    rows: int


@frozen_open
class ByHash:
    """Of several ranks each reads the rows of a frame that belong to it by the hash of ``keys``, ids of columns of the source.
    In a join the same is done to the rows of stage ``probed``, or they are these; its ``probed_keys``, ids there, say which keys
    are heavy: rows of those are shared among the ranks evenly, and all ranks have the rows that they are joined with. Rows that
    are grouped (None) have no heavy keys: all rows of one are on one rank."""

    keys: tuple[int, ...]
    probed: int | None = None
    probed_keys: tuple[int, ...] = ()


@frozen_open
class ReadStage:
    """The frame that an earlier stage made. ``origins[i]`` is the id that ``columns[i]`` has there: a frame may be read
    several times, and its columns are renamed where they are read. ``numbered`` is a column that is not stored: its value
    is the row's number plus ``base`` (the key of sparse groups). ``by_hash``: which of the rows each of several ranks reads."""

    stage: int
    columns: tuple[Stored, ...]
    origins: tuple[int, ...]
    numbered: Stored | None = None
    base: int = 0
    by_hash: ByHash | None = None


@frozen_open
class ReadOne:
    """One row without columns: what SELECT without FROM reads."""


Source = ReadTable | ReadRange | ReadStage | ReadOne
