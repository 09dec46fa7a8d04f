"""The commands of ``gquery tpch`` and ``python -m tpch``. Tables go to stdout, progress to stderr."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, get_args

import click

from gquery import Error
from tpch import queries
from tpch.engines import ENGINES, Io, Options
from tpch.generate import default_folder, generate

DATA = click.option(
    "--data", type=click.Path(path_type=Path), help="Folder of the Parquet files [default: data/sf<SF>]."
)
SF = click.option("--sf", type=float, default=1.0, show_default=True, help="Scale factor; 1 is about 1 GB of text.")
QUERIES = click.option("--queries", "which", default="1-22", show_default=True, help="As in 1,3-5.")
DEVICE = click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda, cuda:1 or python.")
DEVICES = click.option(
    "--devices", type=int, default=1, show_default=True, help="So many share the rows of each query."
)
ANSWERS = click.option(
    "--answers", default="auto", show_default=True, metavar="auto|duckdb|none|FOLDER",
    help="Expected answers: shipped or DuckDB's where they are quickly there, DuckDB's, none, or files of a folder.",
)  # fmt: skip
FILE = click.Path(path_type=Path, dir_okay=False)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """TPC-H on gquery and its peers: data, runs, answers, comparisons, a page of plots.

    Results are derived from TPC-H and not comparable to published TPC results.
    """


@main.command("generate")
@SF
@DATA
def generate_command(sf: float, data: Path | None) -> None:
    """Make the tables, unless they are there."""
    click.echo(generate(sf, data))


@main.command("run")
@SF
@DATA
@QUERIES
@click.option("--engines", default="gquery", show_default=True, help=f"First the one under test; {', '.join(ENGINES)}.")
@DEVICE
@click.option("--runs", type=int, default=3, show_default=True, help="Hot runs a query; 0 for first runs alone.")
@click.option(
    "--io", type=click.Choice(get_args(Io)), default="resident", show_default=True,
    help="parquet: nothing is kept, every query reads the files.",
)  # fmt: skip
@click.option("--cold", is_flag=True, help="Start with empty caches of compiled code; implies --warm.")
@click.option("--warm", is_flag=True, help="A second fresh process, for first runs with a warm cache.")
@click.option("--seed", type=int, help="Random parameters from this seed [default: the validation parameters].")
@click.option(
    "--streams", type=int, default=0, help="Throughput: so many streams at once, after one run of each query."
)
@ANSWERS
@click.option("--checksums", type=FILE, help="Write a checksum of each answer of the engine under test.")
@click.option("--expect-checksums", "expected", type=FILE, help="Compare with the checksums of another run.")
@click.option("--json", "json_path", type=FILE, help="Append every sample as a line of JSON; measures bytes as well.")
@DEVICES
@click.option("--threads", type=int, help="Threads of every engine on the CPU [default: all cores].")
@click.option("--interpret-limit", type=int, help="Row-steps up to which gquery interprets; 0 compiles everything.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A setting of gquery; may be repeated.")
def run_command(
    sf: float, data: Path | None, which: str, engines: str, device: str, runs: int, io: Io, cold: bool, warm: bool,
    seed: int | None, streams: int, answers: str, checksums: Path | None, expected: Path | None, json_path: Path | None,
    devices: int, threads: int | None, interpret_limit: int | None, settings: tuple[str, ...],
) -> None:  # fmt: skip
    """Run the queries, check every answer, print a table. The exit code is 0 if no answer is wrong."""
    pairs = tuple((name, value) for name, _, value in (s.partition("=") for s in settings))
    options = Options(device, devices, threads, interpret_limit, io, pairs)
    _run(
        sf, data, which, engines.split(","), options, answers, checksums, expected, json_path, runs=runs, seed=seed,
        cold=cold, warm=warm or cold, streams=streams, measures=json_path is not None and not streams,
    )  # fmt: skip


@main.command("compare")
@click.argument("before", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.argument("after", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option(
    "--kind", type=click.Choice(["hot", "first", "warm", "cold", "stream"]), default="hot", show_default=True,
    help="Which runs.",
)  # fmt: skip
@click.option("--threshold", type=float, default=1.1, show_default=True, help="Ratio from which a query is slower.")
@click.option("--fail", is_flag=True, help="Exit with 1 if a query is slower.")
def compare_command(before: Path, after: Path, kind: str, threshold: float, fail: bool) -> None:
    """Two files of `run --json` side by side: medians of each query, ratios, and what became slower."""
    from tpch import compare, samples

    old, new = samples.read(before), samples.read(after)
    found = compare.compare(old, new, kind)
    if not found:
        raise click.ClickException(
            f"the files have no {kind} runs in common. {before}: {compare.keys_text(old)}. {after}: "
            f"{compare.keys_text(new)}"
        )
    click.echo("\n\n".join("\n".join(compare.lines(c, threshold, kind)) for c in found))
    sys.exit(int(fail and any(c.slower(threshold) for c in found)))


@main.command("report")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("-o", "--output", type=FILE, default=Path("tpch.html"), show_default=True, help="The page.")
@click.option("--title", default="TPC-H on gquery", show_default=True, help="Its headline.")
@click.option("--svg", "svg_path", type=FILE, help="Write the main plot to a file of its own as well.")
def report_command(files: tuple[Path, ...], output: Path, title: str, svg_path: Path | None) -> None:
    """One page of HTML with the plots and tables of what `run --json` wrote. It holds all that it needs."""
    try:
        import altair  # noqa: F401  (whether it is there)
        import vl_convert  # noqa: F401  (whether it is there)
    except ImportError as error:
        raise click.ClickException(f"{error.name} makes the plots: pip install 'gquery[bench]'") from None
    from tpch.report.page import page, svg
    from tpch.samples import read

    samples = [sample for path in files for sample in read(path)]
    if not any(s.seconds for s in samples):
        raise click.ClickException("the files hold no times")
    output.write_text(page(samples, title), encoding="utf-8")
    if svg_path:
        svg_path.write_text(svg(samples), encoding="utf-8")
    click.echo(output)


@main.command("validate")
@SF
@DATA
@DEVICE
@DEVICES
@QUERIES
@ANSWERS
@click.option("--seed", type=int, help="Random parameters from this seed [default: the validation parameters].")
def validate_command(
    sf: float, data: Path | None, device: str, devices: int, which: str, answers: str, seed: int | None
) -> None:
    """Run each query once with kernels and not the interpreter, and check its answer."""
    options = Options(device, devices, None, 0)
    _run(sf, data, which, ["gquery"], options, answers, None, None, None, runs=0, seed=seed)


@main.command("answers")
@SF
@DATA
@QUERIES
@click.option("--seed", type=int, help="Random parameters from this seed [default: the validation parameters].")
@click.option("--stream", type=int, default=0, show_default=True, help="The stream whose parameters these are.")
@click.option("--into", type=click.Path(path_type=Path), required=True, help="Folder for the answers.")
def answers_command(sf: float, data: Path | None, which: str, seed: int | None, stream: int, into: Path) -> None:
    """Write DuckDB's answers, a file each: what --answers FOLDER reads."""
    from tpch.oracle import answer_with_duckdb

    answer_with_duckdb(sf, generate(sf, data), queries.parse_numbers(which), into, seed, stream)


@main.command("cubins")
@SF
@QUERIES
def cubins_command(sf: float, which: str) -> None:
    """Compile the queries' kernels for sm_75, sm_80 and sm_90, without a GPU; print registers and spills."""
    from tpch import cubins
    from tpch.engines import GQueryEngine

    engine = GQueryEngine(generate(sf), Options(device="cpu"))
    found = []
    for usage in cubins.usages(engine.connection, queries.parse_numbers(which), cubins.ARCHITECTURES):
        progress(f"Q{usage.query}, kernel {usage.kernel}, {usage.architecture}")
        found.append(usage)
    progress("")
    click.echo("\n".join(cubins.table(found)))


@main.command("worker", hidden=True)
def worker_command() -> None:
    """Run one engine as the job on stdin says: what `run` starts for each."""
    from tpch.worker import main as work

    work()


def progress(text: str) -> None:
    """Show what runs now, on a terminal alone, in a line that the next output overwrites."""
    if sys.stderr.isatty():
        click.echo(f"\r\033[K{text}", nl=False, err=True)


def command_line() -> str:
    """What the user typed, as near as it can be told; of absolute paths the last part, since samples are shown to others."""
    import shlex

    program = "python -m tpch" if Path(sys.argv[0]).name == "__main__.py" else Path(sys.argv[0]).name
    arguments = [Path(a).name if a.startswith("/") else a for a in sys.argv[1:]]
    return shlex.join([*program.split(), *arguments])


def _run(
    sf: float, data: Path | None, which: str, engines: list[str], options: Options, answers: str,
    checksums: Path | None, expected: Path | None, json_path: Path | None, **plan: Any,
) -> None:  # fmt: skip
    from tpch.run import Plan
    from tpch.session import Session

    try:
        folder = generate(sf, data or default_folder(sf))
        numbers = tuple(dict.fromkeys(queries.parse_numbers(which)))
        made = Plan(sf, folder, numbers, options, command=command_line(), **plan)
        wrong = Session(made, engines, answers, checksums, expected, json_path, progress).run()
    except Error as error:
        raise click.ClickException(str(error)) from None
    sys.exit(int(wrong))
