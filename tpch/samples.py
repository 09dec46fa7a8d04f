"""Samples: one measured time each, with all that is needed to understand it later, kept as lines of JSON."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import click

Split = dict[str, float]


@dataclass(frozen=True)
class Setting:
    """What all samples of one engine in one run have in common. ``parameters`` is "validation" or the seed;
    ``copy_bandwidth`` (bytes a second, read and written) is known for gquery alone; ``description`` is the engine's."""

    time: str
    command: str
    sf: float
    io: str
    device: str
    parameters: str
    options: dict[str, Any]
    machine: dict[str, Any]
    versions: dict[str, str]
    engine: str
    description: str
    copy_bandwidth: float | None = None


@dataclass(frozen=True)
class Sample:
    """One run of one query, or an account of it.

    ``kind`` is ``cold`` (fresh process, empty caches of compiled code), ``first`` (fresh process, caches as found),
    ``warm`` (fresh process, caches that the first run filled), ``warmup``, ``hot``; ``stream`` (one query of a stream) and
    ``throughput`` (all streams together); ``traffic`` (``moved`` tells bytes; the seconds are those of the kernels);
    ``memory`` (``moved`` tells peaks); ``none`` (it did not run: ``answer`` says why). ``answer`` is ``right``, ``unchecked``
    or what is wrong. ``split`` is in seconds.
    """

    setting: Setting
    kind: str
    query: int | None = None
    number: int = 0
    stream: int = 0
    seconds: float | None = None
    rows: int | None = None
    answer: str | None = None
    split: Split | None = None
    moved: dict[str, int | None] = field(default_factory=dict)

    def as_json(self) -> str:
        values = asdict(self)
        common = values.pop("setting")
        return json.dumps(values | common)

    @staticmethod
    def from_json(line: str) -> Sample:
        values = json.loads(line)
        common = {f.name: values.pop(f.name) for f in fields(Setting)}
        return Sample(setting=Setting(**common), **values)


def append(path: Path, samples: Iterable[Sample]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.writelines(sample.as_json() + "\n" for sample in samples)


def read(path: Path) -> list[Sample]:
    """The samples of a file; a clear error for a file that is none."""
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            found.append(Sample.from_json(line))
        except (ValueError, KeyError, TypeError) as error:
            raise click.ClickException(f"{path}, line {number} is no sample: {error}") from None
    return found


def times(samples: Iterable[Sample], kind: str) -> dict[int, list[float]]:
    """The seconds of a kind by query, queries in order."""
    found: dict[int, list[float]] = {}
    for s in samples:
        if s.kind == kind and s.query is not None and s.seconds is not None:
            found.setdefault(s.query, []).append(s.seconds)
    return dict(sorted(found.items()))


def medians(samples: Iterable[Sample], kind: str) -> dict[int, float]:
    return {query: statistics.median(values) for query, values in times(samples, kind).items()}


def geometric_mean(values: Sequence[float]) -> float:
    """
    >>> geometric_mean([1.0, 4.0])
    2.0
    """
    return math.exp(math.fsum(math.log(v) for v in values) / len(values))
