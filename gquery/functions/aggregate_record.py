"""What a declaration of an aggregate says. `functions.aggregates` holds the table; to add an aggregate is to add a row.

An aggregate is of one of three kinds. One that is *accumulated* has words of state for each group (`planner.aggregates` says
which), so the results of parts of a group merge. One that is *made of parts* is an expression over such (`aggregate_parts`).
One that is *ordered* is computed over the rows of a group in an order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from gquery.expression.expr import Expr, SortKey
from gquery.expression.types import INTEGER, DType
from gquery.runtime.records import dataclass

Resolved = tuple[Sequence[DType], DType]
Checked = tuple[tuple[Expr, ...], tuple[Expr, ...], tuple[SortKey, ...]]
"""Arguments, constants and an order, as they are computed."""
OverFrame = Literal["sums", "extremes", "rows", "parts"]


@dataclass(frozen=True)
class AggregateFunction:
    """An aggregate: ``resolve`` gives (argument types, result type), or None for arguments that it does not take. Over
    no row ``of_nothing`` is the result, NULL where that is None; that of parts follows from theirs.

    ``parts``: the result over aggregates that it is made of. ``stands_for``: it is another aggregate under a name of its own.
    ``merged_by``: the aggregate that makes one result of those of parts of a group; None where they do not tell.
    ``repeats_count``: it matters how often a value is there, so DISTINCT changes the result. ``null_type``: what an argument
    NULL of no type is. ``over_frame``: how windows may compute it: *sums* as differences of running ones, *extremes* as least
    or greatest of parts of a frame, *rows* of the frame's rows in order (a whole partition is a group), *parts* from those of its
    parts. ``skips_null``: rows
    without a value are none to it. ``is_ordered``: it is computed over the rows of a group in an order
    (`operators.ordered_groups`), which is that of its argument where it ``orders_itself``. ``takes_order``: an ORDER BY in the
    call changes its result. ``checked``: takes apart arguments, constants and the order. ``is_of_bits``: of integers it makes
    others within the powers of two around them. ``picks``: it is the value of the row with the least or the greatest number."""

    name: str
    resolve: Callable[[Sequence[DType]], Resolved | None]
    signatures: tuple[str, ...]
    doc: str
    example: tuple[str, str]
    aliases: tuple[str, ...] = ()
    parts: Callable[..., Expr] | None = None
    stands_for: str | None = None
    merged_by: str | None = None
    of_nothing: int | None = None
    repeats_count: bool = True
    null_type: DType = INTEGER
    skips_null: bool = True
    is_ordered: bool = False
    orders_itself: bool = False
    takes_order: bool = False
    checked: Callable[[str, Sequence[Expr], tuple[SortKey, ...]], Checked] | None = None
    is_of_bits: bool = False
    picks: Literal["min", "max"] | None = None
    over_frame: OverFrame = "parts"
