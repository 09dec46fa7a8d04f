"""The command ``gquery``: reads the command line, then runs scripts, a pipe, or the prompt."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterable

import click

from gquery.errors import Error
from gquery.shell.shell import Options, Shell, check_file

_MODES = ("box", "table", "csv", "json", "jsonlines", "markdown", "line", "html")
_ERROR, _INTERRUPTED = 1, 130


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("files", nargs=-1, type=click.Path())
@click.option("-c", "commands", multiple=True, metavar="SQL", help="Run statements and leave; may be repeated.")
@click.option("-f", "scripts", multiple=True, type=click.Path(), metavar="FILE", help="Run a script and leave.")
@click.option("--csv", "mode", flag_value="csv", help="Write results as CSV.")
@click.option("--json", "mode", flag_value="json", help="Write results as JSON.")
@click.option("--markdown", "mode", flag_value="markdown", help="Write results as Markdown.")
@click.option("--mode", "mode", type=click.Choice(_MODES), help="Write results in this mode.")
@click.option("--device", default="auto", metavar="NAME", help="auto, cpu, cuda, cuda:1, python.", show_default=True)
@click.version_option(package_name="gquery", message="gquery %(version)s")
def cli(
    files: tuple[str, ...], commands: tuple[str, ...], scripts: tuple[str, ...], mode: str | None, device: str
) -> None:
    """SQL on a GPU or a CPU. FILES (Parquet, CSV, ...) become tables of their names.

    Without -c and -f, statements come from a pipe on stdin, or from you at a prompt. Results go to stdout, all else to
    stderr; the exit code is 1 where a statement failed.

    "gquery tpch" is the benchmark; "gquery tpch --help" tells about it.
    """
    shell = Shell(device, files, Options(mode=mode or "box"))
    try:
        for path in files:
            check_file(path)
    except Error as error:
        shell.report(error)
        sys.exit(_ERROR)
    if commands or scripts or not sys.stdin.isatty():
        good = _run(shell, commands, scripts)
    else:
        from gquery.shell.prompt import run_prompt

        good = run_prompt(shell)
    sys.exit(_INTERRUPTED if shell.interrupted and not good else 0 if good else _ERROR)


def _run(shell: Shell, commands: Iterable[str], scripts: Iterable[str]) -> bool:
    """Run what the command line names, or stdin; whether all of it succeeded."""
    texts = [*(_script(path) for path in scripts), *commands]
    if not texts:
        return shell.run_lines(sys.stdin)
    for text in texts:
        if not shell.run_text(text) and shell.options.bail:
            return False
        if shell.leaving:
            break
    return not shell.errors


def _script(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise click.ClickException(f"cannot read {path}: {error}") from None


def _benchmark(arguments: list[str]) -> None:
    """``gquery tpch ...``: the benchmark is a package of its own, which knows the engine and not the other way round."""
    try:
        from tpch.commands import main as tpch
    except ModuleNotFoundError as error:
        if error.name != "tpch":
            raise
        click.echo("Error: the package tpch, which gquery's own wheel carries, is not installed", err=True)
        sys.exit(_ERROR)
    tpch(arguments, prog_name="gquery tpch")


def main() -> None:
    """The console script."""
    if sys.argv[1:2] == ["tpch"]:
        _benchmark(sys.argv[2:])
    gc.disable()  # the engine's modules make many objects that all stay
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        cli()
    except BrokenPipeError:  # the reader of our output has left
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(_ERROR)
