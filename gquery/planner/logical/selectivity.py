"""How many rows a range of a column keeps: from comparisons with constants, and the column's bounds.

Constants that are slots are looked at, and not pinned: an estimate may be wrong. But a plan that was made for a day serves no
text that asks for ten years: that a range keeps about as many rows is a guard.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log, sqrt

from gquery import tuning
from gquery.columns.table import Frequent
from gquery.expression.expr import Literal
from gquery.expression.facts import MICROS_PER_DAY, power_of_ten
from gquery.expression.frozen import frozen
from gquery.expression.slots import decided, shown
from gquery.expression.types import DType


@frozen
class RangeEnd:
    """A comparison of a column with a constant: ``factor`` is what a unit of the constant is in the column's, ``low`` and
    ``width`` are the column's bounds."""

    function: str
    factor: float
    low: int
    width: int

    def interval(self, constant: float) -> tuple[float, float]:
        """Where the values lie that pass, as fractions of the column's bounds."""
        value = float(constant) * self.factor
        at = min(1.0, max(0.0, (value - self.low) / self.width))
        above = min(1.0, max(0.0, (value + 1 - self.low) / self.width))
        match self.function:
            case "lt":
                return 0.0, at
            case "le":
                return 0.0, above
            case "gt":
                return above, 1.0
            case _:
                return at, 1.0


def factor(constant: DType, column: DType) -> float:
    """What one unit of a constant is in units of the column, where the comparison was made in a wider type."""
    if constant == column:
        return 1.0
    if constant.scale != column.scale:
        return power_of_ten(column.scale) / power_of_ten(constant.scale)
    if constant.is_float and column.is_decimal:
        return float(power_of_ten(column.scale))
    if constant.is_temporal and column.is_temporal:
        return 1 / MICROS_PER_DAY if column.kind.value == "DATE" else float(MICROS_PER_DAY)
    return 1.0


def selectivity_of(ends: Sequence[tuple[Literal, RangeEnd]]) -> float:
    """The share of rows that pass all comparisons of one column."""
    constants, given = tuple([c for c, _ in ends]), tuple([e for _, e in ends])
    kept = _kept(given, [shown(c) for c in constants])
    decided(_keeps_about_as_many, constants, given, kept)
    return kept


def _kept(ends: tuple[RangeEnd, ...], constants: Sequence[float]) -> float:
    low, high = 0.0, 1.0
    for end, constant in zip(ends, constants, strict=True):
        begins, behind = end.interval(constant)
        low, high = max(low, begins), min(high, behind)
    return max(high - low, tuning.cardinality.least_range)


def _keeps_about_as_many(*given: float | tuple[RangeEnd, ...]) -> bool:
    """Whether the constants keep about the share of rows that a plan was made for, which comes last: the one is in the middle of
    those that the plan serves, so that no constant a little greater or less is beyond them."""
    *constants, ends, planned = given
    assert isinstance(ends, tuple) and not isinstance(planned, tuple)
    kept = _kept(ends, [c for c in constants if not isinstance(c, tuple)])
    return abs(log(kept / planned)) <= log(tuning.cardinality.served_selectivities) / 2


@frozen
class Frequencies:
    """The rows of a column by value: those of values that are frequent, by physical integer, and those of any other, as shares;
    ``factor`` is what a unit of a constant is in the column's."""

    frequent: Frequent
    other: float
    factor: float

    def of(self, constants: Sequence[float]) -> float:
        """The share of rows that have one of some values."""
        known: dict[float, float] = dict(self.frequent)
        values = constants if self.factor == 1 else [c * self.factor for c in constants]  # a float has not all BIGINTs
        return min(1.0, sum(known.get(v, self.other) for v in values))


def selectivity_of_values(constants: tuple[Literal, ...], known: Frequencies) -> float:
    """The share of rows that equal one of some constants."""
    planned = known.of([shown(c) for c in constants])
    decided(_are_about_as_frequent, constants, known, planned)
    return planned


def _are_about_as_frequent(*given: float | Frequencies) -> bool:
    """Whether other constants have about as many rows as those that a plan was made for, whose share comes last."""
    *constants, known, planned = given
    assert isinstance(known, Frequencies) and not isinstance(planned, Frequencies)
    kept = known.of([c for c in constants if not isinstance(c, Frequencies)])
    return abs(log(kept / planned)) <= log(tuning.cardinality.served_selectivities) / 2


def distinct_counts(rows: float, groups: float) -> int:
    """Estimated distinct values of a count of rows by group: no more than k of them fit into k * (k - 1) / 2 rows, and of rows
    that are spread evenly, all lie near their mean."""
    limits = tuning.cardinality
    near = limits.counts_a_mean * rows / max(groups, 1.0) + limits.least_counts
    return int(max(1.0, min(near, sqrt(2 * rows) + 1, groups / 2)))


def weight(raw: float, filtered: float) -> float:
    """How strongly a relation asks to be the one that is streamed: large before and after its filters."""
    return sqrt(max(raw, 1.0) * max(filtered, 1.0))
