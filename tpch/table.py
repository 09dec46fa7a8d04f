"""The table that a run prints, line by line as the queries finish, and its last lines."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from tpch.run import RIGHT, UNCHECKED
from tpch.samples import Sample, geometric_mean


@dataclass
class Result:
    """One query on one engine, all its samples put together. Seconds; ``verdict`` as `Sample.answer`."""

    number: int
    verdict: str = UNCHECKED
    rows: int = 0
    times: dict[str, list[float]] = field(default_factory=dict)  # by kind

    def add(self, samples: Sequence[Sample]) -> Result:
        for s in samples:
            if s.answer is not None and not self.is_wrong:
                self.verdict = s.answer
            if s.seconds is not None and s.kind != "traffic":
                self.times.setdefault(s.kind, []).append(s.seconds)
            self.rows = self.rows if s.rows is None else s.rows
        return self

    @property
    def first(self) -> float | None:
        return next((self.times[kind][0] for kind in ("cold", "first", "warm") if kind in self.times), None)

    @property
    def warm(self) -> float | None:
        return self.times["warm"][0] if "warm" in self.times else None

    @property
    def hot(self) -> float | None:
        return statistics.median(self.times["hot"]) if "hot" in self.times else None

    @property
    def is_wrong(self) -> bool:
        return self.verdict not in (RIGHT, UNCHECKED)


def milliseconds(seconds: float | None) -> str:
    """Milliseconds with as many digits as they are worth.

    >>> milliseconds(0.0123), milliseconds(1.5), milliseconds(0.00123), milliseconds(None)
    ('12.3', '1500', '1.23', '-')
    """
    if seconds is None:
        return "-"
    return f"{seconds * 1e3:.{0 if seconds >= 0.1 else 1 if seconds >= 0.01 else 2}f}"


def header(peers: Sequence[str], warm: bool) -> str:
    extra = "".join(f"{p + ' ms':>16}{'faster':>9}" for p in peers)
    return (
        f"{'query':<6}{'rows':>8}{'first ms':>11}{'warm ms' if warm else '':>{10 * warm}}{'hot ms':>10}{extra}  answer"
    )


def line(result: Result, peers: Sequence[Result], warm: bool) -> str:
    extra = "".join(f"{milliseconds(p.hot):>16}{_ratio(p.hot, result.hot):>9}" for p in peers)
    verdict = f"WRONG: {result.verdict}" if result.is_wrong else result.verdict
    middle = f"{milliseconds(result.warm):>10}" if warm else ""
    first, hot = milliseconds(result.first), milliseconds(result.hot)
    return f"Q{result.number:<5}{result.rows:>8}{first:>11}{middle}{hot:>10}{extra}  {verdict}"


def _ratio(peer: float | None, own: float | None) -> str:
    return f"{peer / own:.2f}x" if peer and own else "-"


def totals(results: Sequence[Result], peers: Sequence[Sequence[Result]], warm: bool) -> list[str]:
    """The lines under the table: sums of medians, of minima, and geometric means. A peer that left out a query has none."""
    first = milliseconds(_sum([r.first for r in results]))
    middle = f"{milliseconds(_sum([r.warm for r in results])):>10}" if warm else ""
    hot = _sum([r.hot for r in results])
    sums = [_sum([r.hot for r in peer]) for peer in peers]
    extra = "".join(f"{milliseconds(s):>16}{_ratio(s, hot):>9}" for s in sums)
    lines = [f"{'total':<6}{sum(r.rows for r in results):>8}{first:>11}{middle}{milliseconds(hot):>10}{extra}"]
    if hot is None:
        return lines
    blank = " " * (25 + 10 * warm)
    least = [_sum([min(r.times.get("hot", [math.nan])) for r in each]) for each in (results, *peers)]
    extra = "".join(f"{milliseconds(s):>16}{_ratio(s, least[0]):>9}" for s in least[1:])
    lines.append(f"{'fastest':<8}{blank[8:]}{milliseconds(least[0]):>10}{extra}")
    means = [_mean([r.hot for r in each]) for each in (results, *peers)]
    extra = "".join(f"{milliseconds(m):>16}{_ratio(m, means[0]):>9}" for m in means[1:])
    lines.append(f"{'geometric mean':<15}{blank[15:]}{milliseconds(means[0]):>10}{extra}")
    return lines


def _sum(seconds: Sequence[float | None]) -> float | None:
    known = [s for s in seconds if s is not None and not math.isnan(s)]
    return math.fsum(known) if len(known) == len(seconds) and known else None


def _mean(seconds: Sequence[float | None]) -> float | None:
    known = [s for s in seconds if s is not None]
    return geometric_mean(known) if len(known) == len(seconds) and known else None


def verdict(results: Sequence[Result]) -> str:
    """The last line.

    >>> verdict([Result(1, "right"), Result(2, "right")]), verdict([Result(1, "right"), Result(2, "unchecked")])
    ('2 of 2 right', '1 of 2 right, 1 unchecked')
    """
    right = sum(r.verdict == RIGHT for r in results)
    unchecked = sum(r.verdict == UNCHECKED for r in results)
    return f"{right} of {len(results)} right" + (f", {unchecked} unchecked" if unchecked else "")
