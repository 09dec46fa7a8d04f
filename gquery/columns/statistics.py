"""What is found out about values besides their bounds: order, uniqueness, and how many distinct ones there are."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from gquery import tuning
from gquery.columns.loops import loops
from gquery.columns.page_values import CHANGES, FALLS, LONGEST, ROWS
from gquery.columns.table import Frequent
from gquery.expression.types import Bounds
from gquery.runtime.records import dataclass


def minimum_and_maximum(parts: list[Any]) -> tuple[int, int]:
    """Of all values; (0, 0) for none."""
    filled = [p for p in parts if len(p)]
    if not filled:
        return 0, 0
    return min(int(p.min()) for p in filled), max(int(p.max()) for p in filled)


@dataclass(frozen=True)
class Order:
    """Whether values never fall, and where that is so, how many runs of equal values they are made of, and a number of rows that
    no run exceeds (see `longest_run`)."""

    is_sorted: bool
    runs: int = 0
    longest_run: int | None = None


UNORDERED = Order(False)


def order_of(values: Any, nulls: int) -> Order:
    """The order of an array; ends where one value falls."""
    if nulls:
        return UNORDERED
    runs, at, step = min(1, len(values)), 0, tuning.encoding.first_step
    while at < len(values) - 1:
        a, b = values[at : at + step], values[at + 1 : at + step + 1]
        changes = count_changes(a[: len(b)], b)
        if changes is None:
            return UNORDERED
        runs += changes
        at += step
        step = tuning.encoding.step
    return Order(True, runs, 1 if runs == len(values) else longest_run(values))


def longest_run(values: Any, known: int = 1) -> int | None:
    """A power of two, ``known`` at least, that no run of equal values exceeds, the least there is; None where that is more than
    `tuning.encoding.longest_run`. The values are sorted, so those of one length apart differ where no run is longer."""
    length, step = known, tuning.encoding.step
    while length <= tuning.encoding.longest_run:
        ahead = values[length:]
        starts = range(0, len(ahead), step)
        if not any(bool((ahead[at : at + step] == values[at : at + step][: len(ahead) - at]).any()) for at in starts):
            return length
        length *= 2
    return None


def count_changes(a: Any, b: Any) -> int | None:
    """How often the value behind (``b``) differs from the one before (``a``); None where it is less."""
    return int(np.count_nonzero(a != b)) if bool((a <= b).all()) else None


class OrderOfParts:
    """The order of an array that threads look at part by part."""

    def __init__(self, possible: bool = True) -> None:
        self.possible = possible  # once a part is out of order, nobody need look at the others
        self._changes: list[int] = []
        self._longest: list[int | None] = []
        self._ends: dict[int, tuple[Any, int]] = {}  # of each group, by its first row: its ends, and how many rows it has

    def see(self, part: Any, seen: int = 0) -> None:
        """Take a part into account, of which the first ``seen`` values belong to those before it: `tuning.encoding.longest_run`
        of them, or as many as there are. A look at its first values spares most arrays the rest."""
        if not self.possible:
            return
        longer, part = part, part[max(seen - 1, 0) :]
        found: int | None = 0
        if len(part) > 4096:
            found = count_changes(part[:4095], part[1:4096])
        if found is not None:
            found = count_changes(part[:-1], part[1:])
        if found is None:
            self.possible = False
        else:
            self._changes.append(found)
            self._see_runs(longer)

    def _see_runs(self, part: Any) -> None:
        known = self._longest[-1] if self._longest else 1
        self._longest.append(None if known is None else longest_run(part, known))

    def end(self, first: int, values: Any) -> None:
        """Keep the ends of a group, the rows from row ``first`` on that some parts one behind another had: the next group, which
        another thread looks at, is compared with them."""
        if not self.possible or not len(values):
            return
        size = tuning.encoding.longest_run
        ends = values.copy() if len(values) <= 2 * size else np.concatenate((values[:size], values[-size:]))
        self._ends[first] = ends, len(values)

    def end_places(self, rows: Any) -> Any:
        """The rows (int64) whose values `take` wants of groups that have so many ``rows`` each, one behind another: those of each
        that `end` keeps."""
        size, starts = tuning.encoding.longest_run, np.cumsum(rows) - rows
        kept = np.minimum(rows, 2 * size)
        number = np.arange(kept.sum()) - np.repeat(np.cumsum(kept) - kept, kept)  # of each of them in its group
        is_late = (np.repeat(rows, kept) > 2 * size) & (number >= size)
        places: Any = np.repeat(starts, kept) + number + np.where(is_late, np.repeat(rows - 2 * size, kept), 0)
        return places

    def take_held(self, found: Any, pick: Callable[[Any], Any], dtype: Any) -> None:
        """Take groups into account that a device has decoded, one behind another: what was found of them
        (`page_values.FOUND`), and who gives values of some rows (int64) as words, of which the low bytes count."""
        self.possible = not found[:, FALLS].any()
        if self.possible:
            unsigned = np.dtype(f"u{dtype.itemsize}")
            self.take(found, pick(self.end_places(found[:, ROWS])).astype(unsigned).view(dtype))

    def take(self, found: Any, ends: Any) -> None:
        """Take groups into account, one behind another, of which others found what `page_values.FOUND` has; with the values of
        `end_places`."""
        rows = found[:, ROWS]
        last = np.cumsum(np.minimum(rows, 2 * tuning.encoding.longest_run)).tolist()
        values = [ends[start:end] for start, end in zip([0, *last], last, strict=False)]  # `np.split` takes ten times as long
        self._changes += found[:, CHANGES].tolist()
        self._longest += [n if n <= tuning.encoding.longest_run else None for n in found[:, LONGEST].tolist()]
        parts = zip((np.cumsum(rows) - rows).tolist(), values, rows.tolist(), strict=True)
        self._ends |= {first: (some, count) for first, some, count in parts}

    def order(self) -> Order:
        """The order of the array, whose parts were all seen, and whose groups have all ended."""
        if not self.possible:
            return UNORDERED
        groups = [self._ends[first] for first in sorted(self._ends)]
        if not groups:
            return Order(True, 0, 1)
        values, rows = np.concatenate([ends for ends, _ in groups]), sum(count for _, count in groups)
        later = np.cumsum([len(ends) for ends, _ in groups])[:-1]
        across = count_changes(values[later - 1], values[later])
        if across is None:
            return UNORDERED
        runs = sum(self._changes) + across + 1
        return Order(True, runs, 1 if runs == rows else self._longest_run(values, later))

    def _longest_run(self, values: Any, starts: Any) -> int | None:
        """That of all parts, and of the runs that lie across their starts."""
        if None in self._longest:
            return None
        length = max((n for n in self._longest if n is not None), default=1)
        while length <= tuning.encoding.longest_run:
            behind = (
                starts[:, None] + np.arange(length)[None, :]
            ).ravel()  # each is one length ahead of a row before a start
            behind = behind[(behind < len(values)) & (behind >= length)]
            if not bool((values[behind] == values[behind - length]).any()):
                return length
            length *= 2
        return None


def may_all_differ(rows: int, bounds: Bounds) -> bool:
    """Whether `all_differ` looks at so many integers."""
    return rows <= bounds.width <= 8 * rows


def all_differ(values: Any, bounds: Bounds) -> bool:
    """Proves integers unique that are dense but in no order; False where they repeat, or are too sparse to look. Each is marked
    in a bitmap of at most `tuning.encoding.marked` bits: values are read once for each so many integers between their bounds."""
    if not may_all_differ(len(values), bounds):
        return len(values) == 0
    known = loops() if len(values) >= tuning.encoding.compiled_rows and values.itemsize >= 4 else None
    differ = _differ_within if known is None else known.all_differ
    width = min(bounds.width, tuning.encoding.marked)
    return all(differ(values, low, width) for low in range(bounds.low, bounds.high + 1, width))


def _differ_within(values: Any, low: int, width: int) -> bool:
    """See `columns.loops.Loops.all_differ`; by NumPy, in bytes."""
    marks, rows = np.zeros(width, np.bool_), 0
    for at in range(0, len(values), tuning.encoding.step):
        places = values[at : at + tuning.encoding.step].astype(np.int64) - low
        places = places[(places >= 0) & (places < width)]
        marks[places] = True
        rows += len(places)
    return int(np.count_nonzero(marks)) == rows


def estimate_distinct(values: Any, rows: int) -> int:
    """Distinct values, estimated by Chao from how many are seen once and twice in a sample over the whole column."""
    return sampled(values, rows).distinct


def sampled(values: Any, rows: int, nulls: int = 0) -> Sampled:
    """What a sample of ``values`` tells of a column of so many ``rows`` that have a value, and ``nulls`` that have none."""
    sample = SampleOfParts(len(values))
    sample.see(0, values)
    return sample.estimate(rows, nulls)


@dataclass(frozen=True)
class Sampled:
    """What a sample tells of a column: about how many values differ, and which have far more rows than others."""

    distinct: int
    frequent: Frequent = ()


class SampleOfParts:
    """A sample over the whole of an array of so many rows, which threads look at part by part."""

    def __init__(self, rows: int) -> None:
        size = tuning.encoding.sample
        self._rows = rows
        self._places = None if rows <= size else _places(rows, size)
        self._parts: list[Any] = []

    @property
    def places(self) -> Any:
        """The rows of the sample (int64)."""
        return np.arange(self._rows) if self._places is None else self._places

    def take(self, values: Any) -> None:
        """The values of all those rows."""
        self._parts.append(values)

    def see(self, at: int, values: Any) -> None:
        """Take the rows from ``at`` on into account, which nobody else does."""
        if self._places is None:
            self._parts.append(values.copy())
        else:
            low, high = np.searchsorted(self._places, (at, at + len(values)))
            self._parts.append(values[self._places[low:high] - at])

    def estimate(self, rows: int, nulls: int = 0) -> Sampled:
        """What is known of ``rows`` rows that have a value, and of ``nulls`` that are 0 here, once all were seen."""
        if rows == 0:
            return Sampled(0)
        sample = np.concatenate(self._parts)
        values, counts = np.unique(sample, return_counts=True)
        distinct = chao(len(counts), int((counts == 1).sum()), int((counts == 2).sum()), len(sample), rows)
        if values.dtype.kind not in "iu":
            return Sampled(distinct)
        return Sampled(distinct, frequent_among(values, counts, nulls / (rows + nulls)))


def frequent_among(values: Any, counts: Any, nulls: float) -> Frequent:
    """The integers of a sample that come far more often than its values do on average; ``nulls`` is the share of rows that are 0
    because they are NULL."""
    limits, size = tuning.encoding, int(counts.sum())
    if nulls > 0:
        counts = np.maximum(counts - np.where(values == 0, round(nulls * size), 0), 0)
    least = max(limits.frequent_times * size / max(len(counts), 1), limits.frequent_share * size)
    found = np.flatnonzero(counts >= least)
    found = found[np.argsort(-counts[found], kind="stable")][: limits.frequent_values]
    return tuple((int(values[n]), int(counts[n]) / size) for n in found.tolist())


@lru_cache(maxsize=8)  # of tables whose columns are read together
def _places(rows: int, size: int) -> Any:
    """The rows of a sample (int64): one of each stretch of equal length, anywhere in it. Steps of one length could fall in with
    a period of the data, whose values would then seem to be few, or to differ all. The same rows each time."""
    step = -(-rows // size)
    starts = np.arange(0, rows, step, dtype=np.uint64)
    mixed = (starts + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)  # the constants of SplitMix64
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    found = (starts + (mixed ^ (mixed >> np.uint64(31))) % np.uint64(step)).astype(np.int64)
    return found[found < rows]


def chao(distinct: int, once: int, twice: int, sample: int, rows: int) -> int:
    """An estimate of the distinct values of ``rows`` rows from those in a sample.

    >>> chao(100, 0, 10, 1000, 50_000), chao(1000, 1000, 0, 1000, 50_000)
    (100, 50000)
    """
    if sample >= rows or once == 0:
        return min(distinct, rows)
    if once == sample:
        return rows
    return min(rows, int(distinct + once * once / (2 * max(twice, 1))))
