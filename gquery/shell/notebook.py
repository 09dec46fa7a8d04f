"""Jupyter: ``%load_ext gquery`` gives ``%gquery`` and ``%%gquery``, which run SQL on the default connection or one by name.

::

    %%gquery out <<
    SELECT kind, sum(price) FROM sales GROUP BY kind

runs the query and leaves its Relation in ``out``; without ``name <<`` the cell shows it. Variables of the notebook are tables
by their names. Work that takes long shows how far it is. Only `gquery.load_ipython_extension` imports this module.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_cell_magic, magics_class
from IPython.display import HTML, display

from gquery.api.connection import Connection
from gquery.errors import Error, InternalError
from gquery.runtime.stopwatch import Watch, watched

_LINE = re.compile(r"\s*(?:--connection\s+(?P<connection>\w+)\s*)?(?:(?P<name>[^\W\d]\w*)\s*<<)?(?P<sql>.*)", re.S)
LONG_SECONDS = 1.0  # what takes longer shows a bar
REDRAW_SECONDS = 0.25


@magics_class
class GqueryMagics(Magics):  # type: ignore[misc]
    """The magics of one notebook; ``default`` gives the connection of cells that name none."""

    def __init__(self, shell: Any, default: Callable[[], Connection]) -> None:
        super().__init__(shell)
        self._default = default

    @line_cell_magic  # type: ignore[untyped-decorator]
    def gquery(self, line: str, cell: str | None = None) -> Any:
        """``%gquery [--connection NAME] [OUT <<] SQL``, or the SQL in the cell of ``%%gquery``."""
        match = _LINE.fullmatch(f"{line}\n{cell or ''}")
        assert match is not None
        sql = match["sql"].strip()
        if not sql:
            raise UsageError("There is no SQL: %gquery SELECT 1, or %%gquery and the text below it")
        connection = self._connection(match["connection"])
        with _progress(), _plain_errors():
            # run where the notebook's variables are globals: a name that is no table means one of them
            names = {"sql": connection.sql, "text": sql}
            relation = eval("sql(text)", self.shell.user_ns, names)
            if match["name"] is None:
                return _shown(relation)
            relation.table()
        self.shell.user_ns[match["name"]] = relation
        return None

    def _connection(self, name: str | None) -> Connection:
        if name is None:
            return self._default()
        found = self.shell.user_ns.get(name)
        if not isinstance(found, Connection):
            raise UsageError(f"{name} is no connection; make one with {name} = gquery.connect()")
        return found


def _shown(relation: Any) -> Any:
    """The relation, with the rows that its table shows already made; nothing for a statement that gives none."""
    if relation.columns in (["Success"], ["Count"]):
        return None
    relation._repr_html_()
    return relation


@contextmanager
def _plain_errors() -> Iterator[None]:
    """An error of the SQL is shown as its text alone: our frames say nothing to who wrote the cell."""
    try:
        yield
    except InternalError:
        raise
    except Error as error:
        lines = [f"{type(error).__name__}: {error}"]
        error._render_traceback_ = lambda: lines  # type: ignore[attr-defined]  # IPython asks for it
        raise error from None


@contextmanager
def _progress() -> Iterator[None]:
    """A bar under the cell while something takes long; it goes when that has ended."""
    watch, done = Watch(), threading.Event()
    handle = display(HTML(""), display_id=True)
    drawn = threading.Thread(target=_draw, args=(watch, handle, done), daemon=True)
    drawn.start()
    try:
        with watched(watch):
            yield
    finally:
        done.set()
        drawn.join()


def _draw(watch: Watch, handle: Any, done: threading.Event) -> None:
    start = time.perf_counter()
    if done.wait(LONG_SECONDS):
        return
    while True:
        handle.update(HTML(bar(watch, time.perf_counter() - start)))
        if done.wait(REDRAW_SECONDS):
            handle.update(HTML(""))
            return


def bar(watch: Watch, spent: float) -> str:
    """How far a query is.

    >>> watch = Watch()
    >>> watch.begin([1.0, 3.0]); watch.stage(1)
    >>> bar(watch, 2.0)
    '<progress max="1" value="0.250"></progress> stage 2 of 2, 2 s'
    """
    left = watch.remaining()
    doing = f"stage {watch.at} of {watch.stages}" if watch.stages else watch.doing or "starting"
    rest = f", about {left:.0f} s left" if left is not None and left >= 1 else ""
    return f'<progress max="1" value="{watch.share:.3f}"></progress> {escape(doing)}, {spent:.0f} s{rest}'


def load(shell: Any, default: Callable[[], Connection]) -> None:
    """Register the magics."""
    shell.register_magics(GqueryMagics(shell, default))
