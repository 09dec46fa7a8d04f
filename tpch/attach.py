"""The tables of TPC-H in a connection, for trying things out: generated once a scale factor, kept in the user's cache
folder. The shell's ``.tpch`` calls it."""

from __future__ import annotations

from collections.abc import Callable

import click

from gquery import InterfaceError, OperationalError
from gquery.api.connection import Connection
from tpch.generate import cache_folder, files, generate, scale_text


def attach(connection: Connection, scale: float, note: Callable[[str], None]) -> None:
    """Have the eight tables at a scale factor as views of their files, generated if they are not there."""
    if not 0 < scale <= 10_000:
        raise InterfaceError("A scale factor lies above 0 and up to 10000")
    folder = cache_folder(scale)
    if not all(path.exists() for path in files(folder).values()):
        note(f"Generating TPC-H SF{scale_text(scale)} in {folder}")
    try:
        generate(scale, folder, echo=False)
    except click.ClickException as error:
        raise OperationalError(error.format_message()) from None
    for table, path in files(folder).items():
        quoted = str(path).replace("'", "''")
        connection.sql(f"CREATE OR REPLACE VIEW {table} AS SELECT * FROM '{quoted}'")
    note(f"TPC-H SF{scale_text(scale)}: {', '.join(files(folder))}")
