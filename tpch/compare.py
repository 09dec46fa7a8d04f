"""Two runs side by side: medians of each query, their ratio, and what has become slower.

Runs are comparable where engine, scale factor, io and parameters agree; all else (device, machine, version, settings) may
be what is compared. A query counts as slower if its median grew by more than the threshold and even the fastest new run
is slower than the old median, so that one odd sample makes no regression; faster is the same the other way round.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tpch.generate import scale_text
from tpch.samples import Sample, geometric_mean, times

Key = tuple[str, float, str, str]  # engine, scale factor, io, parameters


@dataclass(frozen=True)
class Row:
    """One query in both runs, seconds of each run."""

    query: int
    before: tuple[float, ...]
    after: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """Below 1 where it became faster."""
        return statistics.median(self.after) / statistics.median(self.before)

    def change(self, threshold: float) -> str:
        """
        >>> Row(1, (1.0, 1.1), (1.3, 1.4)).change(1.1), Row(1, (1.0, 1.1), (1.0, 1.6)).change(1.1)
        ('slower', '')
        >>> Row(1, (1.0, 1.1), (0.5, 0.6)).change(1.1)
        'faster'
        """
        before, after = statistics.median(self.before), statistics.median(self.after)
        if after > before * threshold and min(self.after) > before:
            return "slower"
        return "faster" if after * threshold < before and max(self.after) < before else ""


@dataclass(frozen=True)
class Comparison:
    key: Key
    rows: tuple[Row, ...]
    only_before: tuple[int, ...]
    only_after: tuple[int, ...]

    def slower(self, threshold: float) -> list[int]:
        return [r.query for r in self.rows if r.change(threshold) == "slower"]


def compare(before: Sequence[Sample], after: Sequence[Sample], kind: str) -> list[Comparison]:
    """What both runs have of a kind of sample, by engine, scale factor, io and parameters."""
    old, new = _by_key(before), _by_key(after)
    found = []
    for key in sorted(old.keys() & new.keys()):
        a, b = times(old[key], kind), times(new[key], kind)
        rows = tuple(Row(q, tuple(a[q]), tuple(b[q])) for q in sorted(a.keys() & b.keys()))
        if rows:
            found.append(Comparison(key, rows, tuple(sorted(a.keys() - b.keys())), tuple(sorted(b.keys() - a.keys()))))
    return found


def lines(found: Comparison, threshold: float, kind: str) -> Iterator[str]:
    """The table of a comparison."""
    engine, sf, io, parameters = found.key
    yield f"{engine}, SF{scale_text(sf)}, {io}, {parameters} parameters, {kind}: medians in milliseconds"
    yield f"{'query':<15}{'before':>10}{'after':>10}{'ratio':>8}"
    for row in found.rows:
        before, after = statistics.median(row.before), statistics.median(row.after)
        yield _line(f"Q{row.query}", before, after, row.change(threshold))
    before = math.fsum(statistics.median(r.before) for r in found.rows)
    after = math.fsum(statistics.median(r.after) for r in found.rows)
    yield _line("total", before, after)
    before = geometric_mean([statistics.median(r.before) for r in found.rows])
    after = geometric_mean([statistics.median(r.after) for r in found.rows])
    yield _line("geometric mean", before, after)
    for text, queries in (("before", found.only_before), ("after", found.only_after)):
        if queries:
            yield f"only {text}: {_names(queries)}"
    slower = found.slower(threshold)
    yield f"{len(slower)} slower by more than {threshold - 1:.0%}" + (f": {_names(slower)}" if slower else "")


def keys_text(samples: Sequence[Sample]) -> str:
    """What a file has, for the message that two have nothing in common."""
    return "; ".join(f"{e}, SF{scale_text(sf)}, {io}, {p}" for e, sf, io, p in sorted(_by_key(samples))) or "nothing"


def _line(name: str, before: float, after: float, change: str = "") -> str:
    return f"{name:<15}{before * 1e3:>10.2f}{after * 1e3:>10.2f}{after / before:>8.2f}  {change}".rstrip()


def _names(queries: Sequence[int]) -> str:
    return ", ".join(f"Q{q}" for q in queries)


def _by_key(samples: Sequence[Sample]) -> dict[Key, list[Sample]]:
    found: dict[Key, list[Sample]] = {}
    for s in samples:
        key = (s.setting.engine, s.setting.sf, s.setting.io, s.setting.parameters)
        found.setdefault(key, []).append(s)
    return found
