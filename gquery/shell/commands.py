"""The dot commands. One is a function with the decorator `command`: its name, arguments and docstring are its help."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from gquery.errors import CatalogError, FileError, InterfaceError, did_you_mean
from gquery.runtime.records import dataclass
from gquery.shell.modes import MODES
from gquery.shell.script import Command

if TYPE_CHECKING:
    from gquery.shell.shell import Shell

Run = Callable[["Shell", Sequence[str]], None]


@dataclass(frozen=True)
class DotCommand:
    """A command: its name, its arguments as help shows them, what it does, and the function."""

    name: str
    arguments: str
    help: str
    run: Run
    least: int
    most: int


COMMANDS: dict[str, DotCommand] = {}


def command(name: str, arguments: str = "") -> Callable[[Run], Run]:
    """Declares a command. Arguments in brackets may be left out."""

    def declare(run: Run) -> Run:
        words = arguments.split()
        least = sum(not w.startswith("[") for w in words)
        COMMANDS[name] = DotCommand(name, arguments, (run.__doc__ or "").strip(), run, least, len(words))
        return run

    return declare


def run_command(shell: Shell, line: Command) -> None:
    """Run a dot command; a name may be shortened as far as it stays clear. InterfaceError for a wrong one."""
    found = COMMANDS.get(line.name)
    if found is None:
        close = [n for n in COMMANDS if line.name and n.startswith(line.name)]
        if len(close) != 1:
            hint = f" It may be {' or '.join('.' + n for n in close)}." if close else did_you_mean(line.name, COMMANDS)
            raise InterfaceError(f"There is no command .{line.name}.{hint} .help lists all")
        found = COMMANDS[close[0]]
    if not found.least <= len(line.words) <= found.most:
        raise InterfaceError(f"Usage: .{found.name} {found.arguments}".rstrip())
    found.run(shell, line.words)


def _switch(name: str, word: str) -> bool:
    match word.lower():
        case "on" | "true" | "yes" | "1":
            return True
        case "off" | "false" | "no" | "0":
            return False
        case _:
            raise InterfaceError(f"Usage: .{name} on|off")


# ---- the shell ------------------------------------------------------------------------------------------------------


@command("help", "[COMMAND]")
def _help(shell: Shell, words: Sequence[str]) -> None:
    """This list"""
    wanted = words[0].lstrip(".") if words else ""
    shown = [c for n, c in sorted(COMMANDS.items()) if n.startswith(wanted)]
    if not shown:
        raise InterfaceError(f"There is no command .{wanted}.{did_you_mean(wanted, COMMANDS)}")
    width = max(len(f".{c.name} {c.arguments}") for c in shown)
    for c in shown:
        shell.out.write(f"{f'.{c.name} {c.arguments}':<{width}}  {c.help}\n")


@command("exit")
def _exit(shell: Shell, words: Sequence[str]) -> None:
    """Leave; Ctrl-D does it too"""
    shell.leaving = True


@command("quit")
def _quit(shell: Shell, words: Sequence[str]) -> None:
    """Leave"""
    shell.leaving = True


@command("mode", "[MODE]")
def _mode(shell: Shell, words: Sequence[str]) -> None:
    """How results are written: box, table, csv, json, jsonlines, markdown, line, html"""
    if not words:
        shell.out.write(f"{shell.options.mode}\n")
    elif words[0] not in MODES:
        hint = did_you_mean(words[0], MODES)
        raise InterfaceError(f"There is no mode {words[0]}.{hint} There are {', '.join(MODES)}")
    else:
        shell.options.mode = words[0]


@command("timer", "on|off")
def _timer(shell: Shell, words: Sequence[str]) -> None:
    """Show where a query's time goes: parse, plan, compile, read, copy, run, fetch"""
    shell.options.timer = _switch("timer", words[0])


@command("maxrows", "[COUNT]")
def _maxrows(shell: Shell, words: Sequence[str]) -> None:
    """The most rows that a box shows"""
    if not words:
        shell.out.write(f"{shell.options.max_rows}\n")
    elif not words[0].isdecimal() or int(words[0]) < 1:
        raise InterfaceError("Usage: .maxrows COUNT, a number from 1 on")
    else:
        shell.options.max_rows = int(words[0])


@command("nullvalue", "[TEXT]")
def _nullvalue(shell: Shell, words: Sequence[str]) -> None:
    """What stands for NULL; without TEXT what the mode has for it"""
    shell.options.null = words[0] if words else None


@command("headers", "on|off")
def _headers(shell: Shell, words: Sequence[str]) -> None:
    """Write the names of columns"""
    shell.options.headers = _switch("headers", words[0])


@command("bail", "on|off")
def _bail(shell: Shell, words: Sequence[str]) -> None:
    """Stop a script at its first error"""
    shell.options.bail = _switch("bail", words[0])


@command("read", "FILE")
def _read(shell: Shell, words: Sequence[str]) -> None:
    """Run the statements of a file"""
    path = os.path.expanduser(words[0])
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"cannot read {path}: {error}") from None
    if shell.reading >= 16:
        raise InterfaceError("Scripts that .read each other are nested too deeply")
    shell.reading += 1
    try:
        shell.run_text(text)  # its errors are written already
    finally:
        shell.reading -= 1


@command("output", "[FILE]")
def _output(shell: Shell, words: Sequence[str]) -> None:
    """Write results to a file; without FILE to stdout again"""
    shell.redirect(words[0] if words else None)


@command("once", "FILE")
def _once(shell: Shell, words: Sequence[str]) -> None:
    """Write the next result to a file"""
    shell.redirect(words[0], once=True)


# ---- tables ---------------------------------------------------------------------------------------------------------


@command("open", "FILE")
def _open(shell: Shell, words: Sequence[str]) -> None:
    """Make a file, or a pattern in quotes, a table of its name"""
    from gquery.shell.shell import open_file

    name = open_file(shell.connection, words[0])
    shell.note(f"{words[0]} is the table {name}")


@command("tables", "[PATTERN]")
def _tables(shell: Shell, words: Sequence[str]) -> None:
    """The names of tables and views; PATTERN has * or %"""
    for name in _matching(shell, words):
        shell.out.write(f"{name}\n")


@command("schema", "[PATTERN]")
def _schema(shell: Shell, words: Sequence[str]) -> None:
    """The columns of tables, as CREATE statements"""
    from gquery.shell.reports import create_text

    names = _matching(shell, words)
    if words and not names:
        known = shell.connection.catalog.names()
        raise CatalogError(f"table {words[0]!r} does not exist.{did_you_mean(words[0], known)}")
    for name in names:
        shell.out.write(create_text(shell.connection, name) + "\n")


def _matching(shell: Shell, words: Sequence[str]) -> list[str]:
    pattern = (words[0] if words else "*").replace("%", "*").lower()
    return [n for n in shell.connection.catalog.names() if fnmatch.fnmatchcase(n.lower(), pattern)]


@command("tpch", "[SF]")
def _tpch(shell: Shell, words: Sequence[str]) -> None:
    """Generate the tables of TPC-H at a scale factor (1 is 1 GB) and attach them"""
    from tpch.attach import attach

    try:
        scale = float(words[0]) if words else 1.0
    except ValueError:
        raise InterfaceError("Usage: .tpch SF, a number such as 0.1") from None
    attach(shell.connection, scale, shell.note)


# ---- the engine -----------------------------------------------------------------------------------------------------


@command("gpu")
def _gpu(shell: Shell, words: Sequence[str]) -> None:
    """Devices, their memory, and the columns that are kept there"""
    from gquery.shell.reports import devices_text

    shell.out.write(devices_text(shell.connection))


@command("kernels", "[NUMBER]")
def _kernels(shell: Shell, words: Sequence[str]) -> None:
    """The kernels that were compiled and how long that took; with NUMBER the source of one"""
    from gquery.shell.reports import kernel_source, kernels_text

    shell.out.write(kernel_source(words[0]) if words else kernels_text())
