"""The shell without its editor: runs statements and dot commands, writes results and errors, ends queries on Ctrl-C.

The connection is made at the first use, or in the background while the prompt waits (see `prompt`): it imports the
engine, which takes longer than a person needs to see the prompt.
"""

from __future__ import annotations

import gc
import os
import re
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from types import FrameType
from typing import TYPE_CHECKING, Any, TextIO

from gquery.api.connection import Connection, connect
from gquery.errors import Error, FileError, InterruptError
from gquery.runtime.records import dataclass
from gquery.runtime.stopwatch import Watch, watched
from gquery.shell.progress import Progress, seconds_text
from gquery.shell.script import Command, Statement, split

if TYPE_CHECKING:
    from gquery.api.relation import Relation
    from gquery.shell.modes import Format

_DIM, _RED, _PLAIN = "\x1b[2m", "\x1b[1;31m", "\x1b[0m"
_WIDTH = 120  # of a box that goes to no terminal


@dataclass
class Options:
    """What dot commands and the command line set."""

    mode: str = "box"
    headers: bool = True
    null: str | None = None  # None takes what the mode has for NULL
    max_rows: int = 40  # of a box
    timer: bool = False
    bail: bool = True  # a script stops at its first error

    @property
    def format(self) -> Format:
        from gquery.shell.modes import Format

        return Format(self.mode, self.headers, self.null)


@dataclass
class Shell:
    """One run of the shell. ``out`` takes data, ``err`` all else. ``errors`` counts what has failed."""

    device: str = "auto"
    files: Sequence[str] = ()
    options: Options = field(default_factory=Options)
    out: TextIO = field(default_factory=lambda: sys.stdout)
    err: TextIO = field(default_factory=lambda: sys.stderr)
    errors: int = 0
    interrupted: bool = False
    leaving: bool = False  # .exit was given
    reading: int = 0  # how deep scripts read each other

    def __post_init__(self) -> None:
        self._connection: Connection | None = None
        self._failure: Error | None = None
        self._lock = threading.Lock()
        self._stdout = self.out
        self._once = False

    # ---- the connection --------------------------------------------------------------------------------------------

    @property
    def connection(self) -> Connection:
        """The connection, with the files as tables; made now if it is not there yet."""
        with self._lock:
            if self._failure is not None:
                raise self._failure
            if self._connection is None:
                try:
                    made = connect(self.device)
                    for path in self.files:
                        open_file(made, path)
                except Error as error:
                    self._failure = error
                    raise
                if not gc.isenabled():  # see `main`: what the engine's modules made stays, and is not looked at again
                    gc.freeze()
                    gc.enable()
                self._connection = made
            return self._connection

    @property
    def ready(self) -> Connection | None:
        """The connection where it is there already."""
        return self._connection

    @property
    def broken(self) -> bool:
        """Whether there will be no connection: a device or a file that was asked for is not there."""
        return self._failure is not None

    # ---- running ---------------------------------------------------------------------------------------------------

    def run_text(self, text: str) -> bool:
        """Run a script; whether all of it succeeded. With `Options.bail` it stops at the first error."""
        return self.run_parts(split(text))

    def run_lines(self, lines: Iterable[str]) -> bool:
        """Run a script that comes line by line, each statement as soon as it is complete."""
        from gquery.shell.script import is_complete

        def parts() -> Iterator[Statement | Command]:
            pending, first = "", 0
            for number, line in enumerate(lines):
                if not pending:
                    first = number
                pending += line
                if (";" in line or pending == line) and is_complete(pending):
                    yield from split(pending, first)
                    pending = ""
            yield from split(pending, first)

        return self.run_parts(parts())

    def run_parts(self, parts: Iterable[Statement | Command]) -> bool:
        good = True
        for part in parts:
            good = self.run(part) and good
            if self.leaving or self.interrupted or (not good and self.options.bail):
                break
        return good

    def run(self, part: Statement | Command) -> bool:
        """Run one part of a script, its errors written to ``err``; whether it succeeded, with all that it reads."""
        before = self.errors
        try:
            with self._interruptible():
                match part:
                    case Command():
                        from gquery.shell.commands import run_command

                        run_command(self, part)
                    case Statement():
                        self._statement(part)
            return self.errors == before
        except (InterruptError, KeyboardInterrupt):
            self.interrupted = True
            self._complain("Interrupted", "")
        except BrokenPipeError:
            raise
        except Error as error:
            self.report(error)
            return False
        except OSError as error:
            self._complain("File Error", str(error))
        except Exception as error:
            import traceback

            self.err.write(traceback.format_exc())
            self._complain(
                "Internal Error", f"{type(error).__name__}: {error}\nThis is a bug of gquery, please report it."
            )
        self.errors += 1
        return False

    def _statement(self, statement: Statement) -> None:
        connection = self.connection  # what making it takes is not the statement's
        start, watch = time.perf_counter(), Watch()
        with watched(watch):
            with Progress(watch, self.err, self.draws_progress):
                relation = connection.sql(statement.located)
                result = self._result(relation)
            self._write(result)
        if self.options.timer:
            self._time(watch, time.perf_counter() - start)

    @property
    def draws_progress(self) -> bool:
        return self.err.isatty() and os.environ.get("TERM") != "dumb"

    # ---- results ---------------------------------------------------------------------------------------------------

    def _result(self, relation: Relation) -> str | Relation:
        """What is to be written: the text of a box, or rows that are there."""
        if relation._prepared is None and relation.columns in (["Success"], ["Count"]):
            return ""  # a statement that has no result
        if relation._prepared is not None and self.options.mode != "box":
            relation.to_arrow_table()  # an error of the data comes before the first row is written
            return relation
        if self.options.mode != "box":
            return relation
        if relation._show_text:
            return "\n".join(str(value) for row in relation for value in row) + "\n"
        from gquery.result.display import Box, render

        form, limit = self.options.format, self.options.max_rows
        rows, total = relation.preview(limit)
        null = "NULL" if form.null is None else form.null
        style = _dimmed if self.colours(self.out) else None
        names, types = relation.columns, relation.types
        return render(names, types, rows, total, Box(limit, self.width, null, style, form.headers)) + "\n"

    def _write(self, result: str | Relation) -> None:
        if isinstance(result, str):
            self.out.write(result)
        else:
            from gquery.api.shown import json_rows, shown_rows
            from gquery.shell.modes import write

            form, types = self.options.format, result.types
            made = json_rows if form.mode in ("json", "jsonlines") else shown_rows
            write(self.out, result.columns, types, made(result.to_arrow_table(), types), form)
        self.out.flush()
        if self._once:
            self.redirect(None)

    @property
    def width(self) -> int:
        """Columns that a box may take."""
        if not self.out.isatty():
            return int(os.environ.get("COLUMNS") or _WIDTH)
        return shutil.get_terminal_size((_WIDTH, 24)).columns

    def redirect(self, path: str | None, once: bool = False) -> None:
        """Write results to a file from now on, or for one result; None is stdout again."""
        if self.out is not self._stdout:
            self.out.close()
        self.out, self._once = self._stdout, False
        if path is not None:
            self.out = open(os.path.expanduser(path), "w", encoding="utf-8", newline="")  # noqa: SIM115  (kept open)
            self._once = once

    def _time(self, watch: Watch, total: float) -> None:
        spent = {name: seconds for name, seconds in watch.seconds.items() if seconds or name != "measure"}
        parts = [f"{name} {seconds_text(seconds)}" for name, seconds in spent.items()]
        rest = max(0.0, total - sum(watch.seconds.values()))
        self.note(f"Time: {seconds_text(total)} ({', '.join(parts)}, write {seconds_text(rest)})")

    # ---- messages --------------------------------------------------------------------------------------------------

    def note(self, text: str) -> None:
        """Tell the user something that is no data."""
        self.err.write(text + "\n")
        self.err.flush()

    def colours(self, stream: TextIO) -> bool:
        """Whether a stream takes colours: a terminal does, unless NO_COLOR is set."""
        return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"

    def report(self, error: Error) -> None:
        """Write an error, and count it."""
        self.errors += 1
        self._complain(_kind(error), str(error))

    def _complain(self, kind: str, text: str) -> None:
        self.out.flush()
        head = f"{_RED}{kind}{_PLAIN}" if self.colours(self.err) else kind
        self.note(f"{head}: {_printable(text)}" if text else head)

    # ---- Ctrl-C ----------------------------------------------------------------------------------------------------

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Ctrl-C stops the query that runs; a second one, or one where none runs, is a KeyboardInterrupt here."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        asked = False

        def stop(number: int, frame: FrameType | None) -> None:
            nonlocal asked
            running = self._connection._running.stop() if self._connection is not None else 0
            if asked or not running:
                raise KeyboardInterrupt
            asked = True

        before: Any = signal.signal(signal.SIGINT, stop)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)


def check_file(path: str) -> None:
    """FileError where a file is plainly not there. Needs no engine."""
    if "://" not in path and not any(c in path for c in "*?[") and not os.path.exists(os.path.expanduser(path)):
        raise FileError(f'There is no file "{path}"')


def open_file(connection: Connection, path: str) -> str:
    """Make a file, directory or pattern a table of its name; the name."""
    check_file(path)
    catalog = connection.catalog
    name = _free(table_name(path), catalog.names())
    assert catalog.open_file is not None
    catalog.register(name, catalog.open_file(os.path.expanduser(path)))
    return name


def table_name(path: str) -> str:
    """The name that a file has as a table.

    >>> table_name("data/yellow-trips.parquet"), table_name("sales/*.parquet"), table_name("2024.csv.gz")
    ('yellow_trips', 'sales', '_2024')
    """
    for part in reversed(path.rstrip("/").split("/")):
        name = re.sub(r"\W+", "_", part.split(".")[0]).strip("_")
        if name:
            return name if not name[0].isdigit() else f"_{name}"
    return "data"


def _free(name: str, taken: Iterable[str]) -> str:
    names, number = {t.lower() for t in taken}, 1
    made = name
    while made.lower() in names:
        number += 1
        made = f"{name}_{number}"
    return made


def _kind(error: Error) -> str:
    """An error's class as words.

    >>> _kind(InterruptError()), _kind(FileError())
    ('Interrupt Error', 'File Error')
    """
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(error).__name__)


def _printable(text: str) -> str:
    """Text without what a terminal would obey; lines stay."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode("ascii") for c in text)


def _dimmed(text: str) -> str:
    return f"{_DIM}{text}{_PLAIN}"
