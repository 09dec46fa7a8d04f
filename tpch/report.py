"""The table that a run prints, line by line as the queries finish, and its last lines."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

from tpch.run import Measurement


def milliseconds(seconds: float | None) -> str:
    """Milliseconds with as many digits as they are worth.

    >>> milliseconds(0.0123), milliseconds(1.5), milliseconds(None)
    ('12.3', '1500', '-')
    """
    if seconds is None:
        return "-"
    return f"{seconds * 1e3:.1f}" if seconds < 0.1 else f"{seconds * 1e3:.0f}"


def header(peers: Sequence[str]) -> str:
    extra = "".join(f"{p + ' ms':>12}{'faster':>9}" for p in peers)
    return f"{'query':<6}{'rows':>8}{'first ms':>11}{'hot ms':>10}{extra}  answer"


def line(m: Measurement, peers: Sequence[Measurement]) -> str:
    extra = "".join(f"{milliseconds(p.hot):>12}{_ratio(p.hot, m.hot):>9}" for p in peers)
    verdict = "right" if m.wrong is None else f"WRONG: {m.wrong}"
    return f"Q{m.number:<5}{m.rows:>8}{milliseconds(m.first):>11}{milliseconds(m.hot):>10}{extra}  {verdict}"


def _ratio(peer: float | None, own: float | None) -> str:
    return f"{peer / own:.2f}x" if peer and own else "-"


def totals(measured: Sequence[Measurement], peers: Sequence[Sequence[Measurement]]) -> str:
    """The sums under the table."""
    hot = _sum(measured)
    extra = "".join(f"{milliseconds(_sum(p)):>12}{_ratio(_sum(p), hot):>9}" for p in peers)
    first = sum(m.first for m in measured)
    return f"{'total':<6}{sum(m.rows for m in measured):>8}{milliseconds(first):>11}{milliseconds(hot):>10}{extra}"


def _sum(measured: Sequence[Measurement]) -> float | None:
    times = [m.hot for m in measured if m.hot is not None]
    return math.fsum(times) if len(times) == len(measured) and times else None


def verdict(measured: Sequence[Measurement]) -> str:
    """The last line.

    >>> verdict([Measurement(1, "gquery", 4, 0.1, None, None)])
    '1 of 1 right'
    """
    return f"{sum(m.wrong is None for m in measured)} of {len(measured)} right"


def write_json(path: Path, descriptions: Sequence[str], measured: Sequence[Measurement]) -> None:
    """The measurements as a file for plots and comparisons, times in seconds."""
    record = {"engines": list(descriptions), "measurements": [vars(m) for m in measured]}
    path.write_text(json.dumps(record, indent=1) + "\n")
