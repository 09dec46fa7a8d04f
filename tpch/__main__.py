"""``python -m tpch``: generate, run, validate, cubins. Tables go to stdout, progress to stderr."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from gquery.errors import Error
from tpch import queries, report
from tpch.generate import default_folder, generate, scale_text
from tpch.run import ENGINES, Measurement, Options, measure
from tpch.validate import prepare_answers

NOTE = "Derived from TPC-H, not comparable to published TPC results."


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """TPC-H on gquery: data, runs, answers."""


@main.command("generate")
@click.option("--sf", type=float, default=1.0, show_default=True, help="Scale factor; 1 is about 1 GB of text.")
@click.option("--data", type=click.Path(path_type=Path), help="Folder for the Parquet files [default: data/sf<SF>].")
def generate_command(sf: float, data: Path | None) -> None:
    """Make the tables, unless they are there."""
    click.echo(generate(sf, data))


@main.command("run")
@click.option("--sf", type=float, default=1.0, show_default=True, help="Scale factor.")
@click.option("--data", type=click.Path(path_type=Path), help="Folder of the Parquet files [default: data/sf<SF>].")
@click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda, cuda:1 or python.")
@click.option("--partitions", type=int, default=1, show_default=True, help="Row ranges that tables are split into.")
@click.option("--threads", type=int, help="Workers of the cpu device, and DuckDB's [default: all cores].")
@click.option("--interpret-limit", type=int, help="Row-steps up to which work is interpreted; 0 compiles everything.")
@click.option("--queries", "which", default="1-22", show_default=True, help="As in 1,3-5.")
@click.option("--runs", type=int, default=3, show_default=True, help="Hot runs a query; 0 for the first run alone.")
@click.option("--engines", default="gquery", show_default=True, help="gquery first, then peers: gquery,duckdb.")
@click.option("--json", "json_path", type=click.Path(path_type=Path, dir_okay=False), help="Write the times to a file.")
def run_command(
    sf: float, data: Path | None, device: str, partitions: int, threads: int | None, interpret_limit: int | None,
    which: str, runs: int, engines: str, json_path: Path | None,
) -> None:  # fmt: skip
    """Run the queries, check every answer, print a table. The exit code is 0 if all answers are right."""
    options = Options(device, partitions, threads, interpret_limit)
    sys.exit(_run(sf, data, options, which, runs, engines.split(","), json_path))


@main.command("validate")
@click.option("--sf", type=float, default=1.0, show_default=True, help="Scale factor.")
@click.option("--data", type=click.Path(path_type=Path), help="Folder of the Parquet files [default: data/sf<SF>].")
@click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda, cuda:1 or python.")
@click.option("--partitions", type=int, default=1, show_default=True, help="Row ranges that tables are split into.")
@click.option("--queries", "which", default="1-22", show_default=True, help="As in 1,3-5.")
def validate_command(sf: float, data: Path | None, device: str, partitions: int, which: str) -> None:
    """Run each query once with kernels and not the interpreter, and check its answer."""
    sys.exit(_run(sf, data, Options(device, partitions, None, 0), which, 0, ["gquery"], None))


@main.command("cubins")
@click.option("--sf", type=float, default=0.01, show_default=True, help="Scale factor; it decides carriers and tables.")
@click.option("--queries", "which", default="1-22", show_default=True, help="As in 1,3-5.")
def cubins_command(sf: float, which: str) -> None:
    """Compile the queries' kernels for sm_75, sm_80 and sm_90, without a GPU; print registers and spills."""
    from tpch import cubins
    from tpch.run import GQueryEngine

    engine = GQueryEngine(generate(sf), Options(device="cpu"))
    found = []
    for usage in cubins.usages(engine.connection, queries.parse_numbers(which), cubins.ARCHITECTURES):
        _progress(f"Q{usage.query}, kernel {usage.kernel}, {usage.architecture}")
        found.append(usage)
    _progress("")
    click.echo("\n".join(cubins.table(found)))


def _run(
    sf: float, data: Path | None, options: Options, which: str, runs: int, engines: list[str], json_path: Path | None
) -> int:
    unknown = [e for e in engines if e not in ENGINES]
    if unknown:
        raise click.ClickException(f'there is no engine "{unknown[0]}"; there are {", ".join(ENGINES)}')
    try:
        numbers = queries.parse_numbers(which)
        folder = generate(sf, data or default_folder(sf))
        click.echo(f"TPC-H SF{scale_text(sf)}. {NOTE}")
        prepare_answers(sf, folder)
        descriptions, peers = [], []
        for name in engines[1:]:
            description, measured = _measure(name, numbers, sf, folder, options, runs)
            descriptions.append(description)
            peers.append(measured)
            click.echo(description)
        description, own = _measure(engines[0], numbers, sf, folder, options, runs, engines[1:], peers)
    except Error as error:
        raise click.ClickException(str(error)) from None
    click.echo(report.totals(own, peers))
    if json_path:
        report.write_json(json_path, [description, *descriptions], [m for part in [own, *peers] for m in part])
    click.echo(report.verdict(own))
    return int(any(m.wrong is not None for m in own))


def _measure(
    name: str, numbers: tuple[int, ...], sf: float, folder: Path, options: Options, runs: int,
    peer_names: list[str] | None = None, peers: list[list[Measurement]] | None = None,
) -> tuple[str, list[Measurement]]:  # fmt: skip
    """All measurements of one engine; with ``peers`` each is printed beside theirs as soon as it is there."""
    _progress(f"{name} opens the tables")
    engine = ENGINES[name](folder, options)
    if peers is not None:
        _progress("")
        click.echo(f"{engine.description}\n{report.header(peer_names or [])}")
    measured: list[Measurement] = []
    for m in measure(engine, numbers, sf, folder, runs, _progress):
        _progress("")
        if peers is not None:
            click.echo(report.line(m, [p[len(measured)] for p in peers]))
        measured.append(m)
    engine.close()
    return engine.description, measured


def _progress(text: str) -> None:
    """Show what runs now, on a terminal alone, in a line that the next output overwrites."""
    if sys.stderr.isatty():
        click.echo(f"\r\033[K{text}", nl=False, err=True)


if __name__ == "__main__":
    main(prog_name="python -m tpch")
