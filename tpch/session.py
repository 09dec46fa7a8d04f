"""A run as the user sees it: which engines there are, the table as it grows, files of samples and checksums at the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import click

from tpch import checksum, table
from tpch.engines import ENGINES, installed
from tpch.generate import scale_text
from tpch.machine import machine
from tpch.oracle import Oracle
from tpch.run import Checker, Done, EngineError, Opened, Plan, measure
from tpch.samples import Sample, append, geometric_mean
from tpch.table import Result

NOTE = "Derived from TPC-H, not comparable to published TPC results."


class Session:
    """The first of ``engines`` is under test, the others are peers. ``answers`` is the source of an `Oracle`."""

    def __init__(
        self, plan: Plan, engines: Sequence[str], answers: str, checksums: Path | None, expected: Path | None,
        json_path: Path | None, progress: Callable[[str], None],
    ) -> None:  # fmt: skip
        self.plan, self.progress, self.json_path, self.checksums = plan, progress, json_path, checksums
        unknown = [e for e in engines if e not in ENGINES]
        if unknown:
            raise click.ClickException(f'there is no engine "{unknown[0]}"; there are {", ".join(ENGINES)}')
        self.missing = [e for e in engines if not installed(e)]
        if engines[0] in self.missing:
            raise click.ClickException(f"{engines[0]} is not installed here")
        self.engines = [e for e in engines if e not in self.missing]
        self.about = {"sf": plan.sf, "parameters": plan.parameters}
        known = checksum.read(expected, self.about) if expected else {}
        self.checker = Checker(plan, Oracle(plan.sf, plan.data, plan.seed, answers), known)
        self.samples: list[Sample] = []

    def run(self) -> bool:
        """Everything; True where an answer of the engine under test is wrong."""
        plan = self.plan
        own, *peer_names = self.engines
        click.echo(f"TPC-H SF{scale_text(plan.sf)}, {plan.parameters} parameters. {NOTE}")
        click.echo(machine_text())
        if self.missing:
            click.echo(f"not installed, left out: {', '.join(self.missing)}")
        self.checker.oracle.prepare(plan.numbers, plan.streams)
        peers = [self._peer(name) for name in peer_names]
        try:
            results = self._measure(own, [list(p.values()) for p in peers])
        except EngineError as error:
            raise click.ClickException(str(error)) from None
        if not plan.streams:
            for line in table.totals(list(results.values()), [list(p.values()) for p in peers], plan.warm):
                click.echo(line)
            hot = [r.hot for r in results.values() if r.hot is not None]
            if len(hot) == len(results):
                score = 3600 * plan.sf / geometric_mean(hot)
                click.echo(f"power-style score, 3600 x SF / geometric mean: {score:,.0f}")
        for name, peer in zip(peer_names, peers):
            by_text: dict[str, list[str]] = {}
            for r in peer.values():
                if r.is_wrong:
                    by_text.setdefault(r.verdict, []).append(f"Q{r.number}")
            for text, wrong in by_text.items():
                click.echo(f"{name} {', '.join(wrong)}: {text}")
        self._finish(own)
        click.echo(table.verdict(list(results.values())))
        return any(r.is_wrong for r in results.values())

    def _peer(self, name: str) -> dict[int, Result]:
        """The results of a peer. One that does not start has none, and the run goes on."""
        try:
            return self._measure(name, None)
        except EngineError as error:
            click.echo(str(error))
            return {n: Result(n) for n in self.plan.numbers}

    def _measure(self, name: str, peers: list[list[Result]] | None) -> dict[int, Result]:
        """The results of one engine by query. With ``peers`` each is printed beside theirs as soon as it is there."""
        plan = self.plan
        results = {n: Result(n) for n in plan.numbers}
        opened = 0
        for step in measure(name, plan, self.checker, self.progress):
            self.progress("")
            match step:
                case Opened(setting):
                    opened += 1
                    if opened == 1:
                        click.echo(setting.description)
                        if setting.copy_bandwidth:
                            click.echo(f"a copy moves {setting.copy_bandwidth / 1e9:,.0f} GB/s, read and written")
                    if peers is not None and opened == 1 + plan.warm and not plan.streams:
                        click.echo(table.header(self.engines[1:], plan.warm))
                case Done(samples):
                    self._keep(samples)
                    first = samples[0]
                    if first.query is None or first.stream:
                        continue
                    result = results[first.query].add(samples)
                    last = opened == 1 + plan.warm or (opened == 0 and first.kind == "none")
                    if peers is not None and last and not plan.streams:
                        place = plan.numbers.index(first.query)
                        click.echo(table.line(result, [p[place] for p in peers], plan.warm))
        if plan.streams:
            self._streams(name, results)
        return results

    def _streams(self, name: str, results: dict[int, Result]) -> None:
        """Says how the streams went; what was wrong in one is wrong with the query."""
        plan = self.plan
        found = [s for s in self.samples if s.setting.engine == name]
        whole = next((s.seconds for s in found if s.kind == "throughput"), None)
        done = [s for s in found if s.kind == "stream"]
        for s in found:
            if s.stream and s.query is not None:
                results[s.query].add([s])
        if whole:
            rate = len(done) / whole * 3600
            click.echo(
                f"{name}: {plan.streams} streams, {len(done)} queries in {whole:.3f} s, {rate:,.0f} queries per hour"
            )

    def _keep(self, samples: Sequence[Sample]) -> None:
        self.samples += samples
        if self.json_path:
            append(self.json_path, samples)

    def _finish(self, own: str) -> None:
        if self.checksums:
            about = {**self.about, "engine": own}
            checksum.write(self.checksums, about, self.checker.checksums.get(own, {}))


def machine_text() -> str:
    """
    >>> machine_text().count(" cores")
    1
    """
    found = machine()
    gpus: list[str] = found["gpus"]
    gpu = f"{len(gpus)} x {gpus[0]}, driver {found['driver']}" if gpus else "no GPU"
    return f"{found['cpu']}, {found['cores']} cores, {found['memory_bytes'] / 2**30:.0f} GiB; {gpu}"
