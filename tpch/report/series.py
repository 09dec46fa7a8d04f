"""Samples sorted for drawing: a series is one engine in one configuration, a panel the series that answer the same question.

A panel holds what is comparable: one scale factor, one io, one set of parameters. Within it the name of a series says no
more than tells it from the others: the engine, and device, threads, machine or version where the files differ in these.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from tpch.generate import scale_text
from tpch.samples import Sample, Setting, geometric_mean, medians

OWN = "gquery"
PARTS = {
    "parse": "plan",
    "plan": "plan",
    "compile": "compile",
    "read": "read",
    "copy": "copy",
    "run": "run",
    "fetch": "run",
}
SPLIT = ("plan", "compile", "read", "copy", "run")
FIRST_KINDS = ("cold", "first", "warm")


@dataclass(frozen=True)
class Series:
    """One engine in one configuration; all its samples, oldest first."""

    name: str
    samples: tuple[Sample, ...]

    @property
    def setting(self) -> Setting:
        """The last run's; one that knows the copy bandwidth, where there is one."""
        settings = [s.setting for s in self.samples]
        return next((s for s in reversed(settings) if s.copy_bandwidth), settings[-1])

    @property
    def is_own(self) -> bool:
        return self.setting.engine == OWN

    def medians(self, kind: str = "hot") -> dict[int, float]:
        return medians(self.samples, kind)

    def total(self, kind: str = "hot") -> float | None:
        found = self.medians(kind)
        return math.fsum(found.values()) if found else None

    def geometric_mean(self, kind: str = "hot") -> float | None:
        found = self.medians(kind)
        return geometric_mean(list(found.values())) if found else None

    def kinds(self) -> list[str]:
        """The kinds of runs of single queries that it has, in the order of a run."""
        have = {s.kind for s in self.samples if s.seconds is not None}
        return [kind for kind in (*FIRST_KINDS, "hot") if kind in have]

    def split(self, kind: str) -> dict[int, dict[str, float]]:
        """Median seconds of each part by query; what no part accounts for counts as run."""
        runs: dict[int, list[dict[str, float]]] = {}
        for s in self.samples:
            if s.kind == kind and s.query is not None and s.split is not None and s.seconds is not None:
                parts = dict.fromkeys(SPLIT, 0.0)
                for name, seconds in s.split.items():
                    parts[PARTS[name]] += seconds
                parts["run"] += max(s.seconds - sum(s.split.values()), 0.0)
                runs.setdefault(s.query, []).append(parts)
        return {
            query: {part: statistics.median(r[part] for r in each) for part in SPLIT}
            for query, each in sorted(runs.items())
        }

    def traffic(self) -> dict[int, Sample]:
        """The last account of the bytes of each query."""
        return {s.query: s for s in self.samples if s.kind == "traffic" and s.query is not None}

    def share(self, query: int, what: str) -> float | None:
        """Bytes of a query ("moved": read and written by kernels; "columns": what its columns take) over its hot time, as a
        share of the copy bandwidth."""
        account, hot, bandwidth = self.traffic().get(query), self.medians().get(query), self.setting.copy_bandwidth
        if account is None or hot is None or not bandwidth:
            return None
        return account_bytes(account, what) / hot / bandwidth

    def wrong(self) -> dict[int, str]:
        """What was wrong with answers, by query."""
        return {
            s.query: s.answer
            for s in self.samples
            if s.query is not None and s.answer is not None and s.answer not in ("right", "unchecked")
        }

    def unchecked(self) -> int:
        """How many queries' answers nobody checked."""
        checked = {s.query for s in self.samples if s.answer == "right"}
        return len({s.query for s in self.samples if s.answer == "unchecked"} - checked)


@dataclass(frozen=True)
class Panel:
    """What may be drawn together."""

    sf: float
    io: str
    parameters: str
    series: tuple[Series, ...]

    @property
    def title(self) -> str:
        what = {"resident": "data resident", "parquet": "every query reads the Parquet files"}[self.io]
        random = "" if self.parameters == "validation" else f", parameters of {self.parameters}"
        return f"SF{scale_text(self.sf)}, {what}{random}"

    @property
    def queries(self) -> list[int]:
        return sorted({q for s in self.series for kind in s.kinds() for q in s.medians(kind)})

    @property
    def kind(self) -> str:
        """The kind of runs that engines are compared by."""
        return "hot" if any(s.medians() for s in self.series) else "first"

    @property
    def own(self) -> Series | None:
        """The series that the others are held against: gquery's first."""
        return next((s for s in self.series if s.is_own), None)


def account_bytes(account: Sample, what: str) -> int:
    moved = account.moved
    return (moved["read"] or 0) + (moved["written"] or 0) if what == "moved" else (moved["columns"] or 0)


def panels(samples: Sequence[Sample]) -> list[Panel]:
    """The panels of all samples: those with hot runs first, resident before files, the largest scale factor first."""
    sorted_: dict[tuple[float, str, str], list[Sample]] = {}
    for s in samples:
        sorted_.setdefault((s.setting.sf, s.setting.io, s.setting.parameters), []).append(s)
    made = [Panel(*key, tuple(_series(found))) for key, found in sorted_.items()]
    return sorted(made, key=lambda p: (p.kind != "hot", p.io != "resident", -p.sf, p.parameters))


def _series(samples: Sequence[Sample]) -> list[Series]:
    names = _names(samples)
    found: dict[str, list[Sample]] = {}
    for s in samples:
        found.setdefault(names[_identity(s.setting)], []).append(s)
    return [Series(name, tuple(of)) for name, of in sorted(found.items(), key=_own_first)]


def _own_first(item: tuple[str, object]) -> tuple[bool, str]:
    return not item[0].startswith(OWN), item[0]


def _identity(setting: Setting) -> tuple[str, ...]:
    """What makes samples belong to different series: engine, then the parts that may tell in a name."""
    machine = setting.machine
    place = machine["gpus"][0] if machine["gpus"] and setting.engine in (OWN, "cudf-polars") else machine["cpu"]
    version = setting.versions.get("commit") or setting.versions["gquery"] if setting.engine == OWN else ""
    device = setting.device if setting.engine == OWN else ""
    threads = str(setting.options["threads"] or machine["cores"])
    others = "".join(
        f" {name.replace('_', ' ')} {value}"
        for name, value in (("devices", setting.options.get("devices", 1)), *setting.options["settings"])
        if setting.engine == OWN and (name, value) != ("devices", 1)
    )
    return setting.engine, device, place, f"{threads} threads", others.strip(), version


def _names(samples: Sequence[Sample]) -> dict[tuple[str, ...], str]:
    """The shortest names that tell the identities apart: parts are named where they differ within an engine."""
    identities = list(dict.fromkeys(_identity(s.setting) for s in samples))
    names = {}
    for identity in identities:
        same = [i for i in identities if i[0] == identity[0]]
        told = [part for n, part in enumerate(identity) if n and part and len({i[n] for i in same}) > 1]
        names[identity] = ", ".join([identity[0], *told])
    return names
