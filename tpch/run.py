"""Run queries on engines, each in a process of its own, time them, check their answers, hand out samples.

Engines run one after another, so that they see the same machine in the same state; the first that is named is the one
under test and runs last, beside the times of its peers. What the runs of a query are called stands at `samples.Sample`.
*Hot* is the median of the runs after one to warm up.
"""

from __future__ import annotations

import datetime
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from tpch import parameters, queries, streams
from tpch.checksum import Checksum, checksum, mismatch
from tpch.engines import Answer, Options
from tpch.job import Event, Job, Text, cold_environment, events
from tpch.machine import machine, versions
from tpch.oracle import Oracle
from tpch.samples import Sample, Setting
from tpch.validate import difference, order_columns

RIGHT, UNCHECKED = "right", "unchecked"


@dataclass(frozen=True)
class Plan:
    """A whole run: what is measured, on which data. ``warm`` adds a second fresh process to the first runs; ``cold`` has
    the first start with empty caches of compiled code; ``streams`` > 0 makes it a throughput run."""

    sf: float
    data: Path
    numbers: tuple[int, ...]
    options: Options = field(default_factory=Options)
    runs: int = 3
    seed: int | None = None
    cold: bool = False
    warm: bool = False
    measures: bool = False
    streams: int = 0
    command: str = ""

    def text(self, number: int, stream: int = 0) -> Text:
        """A query with its parameters, those of a stream where there is a seed."""
        return Text(number, self.sql(number, stream))

    def sql(self, number: int, stream: int = 0) -> str:
        return queries.sql(number) if self.seed is None else parameters.sql(number, self.seed, self.sf, stream)

    @property
    def parameters(self) -> str:
        return "validation" if self.seed is None else f"seed {self.seed}"


@dataclass
class Checker:
    """Judges answers by expected rows, by checksums of another run, or both; keeps the checksums of right and unchecked
    ones."""

    plan: Plan
    oracle: Oracle
    expected_checksums: dict[int, Checksum] = field(default_factory=dict)
    checksums: dict[str, dict[int, Checksum]] = field(default_factory=dict)  # by engine

    def verdict(self, engine: str, number: int, stream: int, answer: Answer) -> str:
        """``right``, ``unchecked``, or what is wrong. Polars rounds quotients of decimals, and is judged by that."""
        lenient = "polars" in engine
        order = order_columns(self.plan.sql(number, stream), answer.table.column_names)
        rows = answer.rows
        try:
            want = self.oracle.expected(number, answer.types, stream)
        except ValueError as error:  # other columns, or other types than the values can be read as
            return str(error)
        wrong = None if want is None else difference(rows, want, order, lenient)
        checked = want is not None
        if stream == 0:
            found = checksum(rows, order)
            if number in self.expected_checksums and not lenient:
                wrong = wrong or mismatch(found, self.expected_checksums[number])
                checked = True
            if wrong is None:
                self.checksums.setdefault(engine, {})[number] = found
        return wrong or (RIGHT if checked else UNCHECKED)


@dataclass(frozen=True)
class Opened:
    """An engine is ready."""

    setting: Setting


@dataclass(frozen=True)
class Done:
    """A query is done in one process: its samples. The first of them carries the verdict on the answers."""

    samples: tuple[Sample, ...]


class EngineError(Exception):
    """An engine does not start; the text says which and why."""


Progress = Callable[[str], None]


def measure(engine: str, plan: Plan, checker: Checker, progress: Progress) -> Iterator[Opened | Done]:
    """All samples of one engine, query by query. Where there is a process for first runs alone, its queries come first.
    EngineError where the engine does not open the tables."""
    with tempfile.TemporaryDirectory(prefix="gquery-tpch-") as folder:
        answers = Path(folder)
        environment = cold_environment(answers) if plan.cold else {}
        texts = tuple(plan.text(n) for n in plan.numbers)
        job = Job(engine, plan.data, plan.options, texts, answers, environment=environment)
        first = "cold" if plan.cold else "first"
        if plan.streams:
            work = tuple(tuple(plan.text(n, s) for n in streams.order(s) if n in plan.numbers) for s in _streams(plan))
            jobs = [replace(job, first=first, streams=work)]
        elif plan.warm:
            jobs = [replace(job, first=first), replace(job, first="warm", runs=plan.runs, measures=plan.measures)]
        else:
            jobs = [replace(job, first=first, runs=plan.runs, measures=plan.measures)]
        for each in jobs:
            yield from _one_process(each, plan, checker, progress)


def _streams(plan: Plan) -> range:
    return range(1, plan.streams + 1)


def _one_process(job: Job, plan: Plan, checker: Checker, progress: Progress) -> Iterator[Opened | Done]:
    """Turns the events of a worker into samples."""
    setting = _setting(job.engine, "", None, plan)
    pending: dict[tuple[int, int], Pending] = {}
    missing = {(q.number, 0) for q in job.queries}
    for event in events(job):
        place = (event.get("query", 0), event.get("stream", 0))
        match event["event"]:
            case "doing":
                progress(event["text"])
            case "engine":
                setting = _setting(job.engine, event["description"], event["copy_bandwidth"], plan)
                yield Opened(setting)
            case "answer":
                answer = _read(event)
                verdict = checker.verdict(job.engine, *place, answer)
                pending[place].verdicts.append(verdict)
            case "failed":
                pending.setdefault(place, Pending()).verdicts.append(event["reason"])
            case "done":
                missing.discard(place)
                yield Done(pending.pop(place).finished(setting, *place))
            case "broken":
                raise EngineError(f"{job.engine} does not open the tables: {event['reason']}")
            case "end":
                if event["code"] != 0:
                    for number, stream in sorted(missing):
                        reason = f"failed: the process ended with code {event['code']}"
                        yield Done((Sample(setting, "none", number, stream=stream, answer=reason),))
            case "throughput":
                yield Done((Sample(setting, "throughput", seconds=event["seconds"]),))
            case "memory":
                peaks = {name: event[name] for name in ("host_peak_bytes", "device_peak_bytes")}
                yield Done((Sample(setting, "memory", moved=peaks),))
            case "sample" | "traffic":
                pending.setdefault(place, Pending()).samples.append(_sample(event, setting))
            case unknown:
                raise AssertionError(f"a worker sends no {unknown}")


@dataclass
class Pending:
    """A query that is not done yet."""

    samples: list[Sample] = field(default_factory=list)
    verdicts: list[str] = field(default_factory=list)

    def finished(self, setting: Setting, number: int, stream: int) -> tuple[Sample, ...]:
        """The samples; the first carries the verdict, the worst of all answers'. Without any, one that says why."""
        verdict = next((v for v in self.verdicts if v not in (RIGHT, UNCHECKED)), None) or self.verdicts[0]
        if not self.samples:
            return (Sample(setting, "none", number, stream=stream, answer=verdict),)
        return replace(self.samples[0], answer=verdict), *self.samples[1:]


def _sample(event: Event, setting: Setting) -> Sample:
    if event["event"] == "traffic":
        moved = {name: event[name] for name in ("read", "written", "columns")}
        return Sample(setting, "traffic", event["query"], seconds=event["kernel_seconds"], moved=moved)
    split = {part: seconds for part, seconds in event["split"].items() if seconds} if event["split"] else None
    return Sample(
        setting, event["kind"], event["query"], event["number"], event["stream"], event["seconds"], event["rows"],
        split=split,
    )  # fmt: skip


def _setting(engine: str, description: str, bandwidth: float | None, plan: Plan) -> Setting:
    options = plan.options.as_dict()
    io, device = options.pop("io"), options.pop("device")
    return Setting(
        time=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        command=plan.command,
        sf=plan.sf,
        io=io,
        device=device,
        parameters=plan.parameters,
        options=options,
        machine=machine(),
        versions=versions(),
        engine=engine,
        description=description,
        copy_bandwidth=bandwidth,
    )


def _read(event: Event) -> Answer:
    with pa.memory_map(event["path"]) as file:
        return Answer(pa.ipc.open_file(file).read_all(), tuple(event["types"]))
