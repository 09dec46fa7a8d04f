"""The tables of TPC-H for trying things out: generated once a scale factor, kept in the user's cache folder."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from gquery.errors import InterfaceError, OperationalError
from gquery.session import Connection

TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")


def attach(connection: Connection, scale: float, note: Callable[[str], None]) -> None:
    """Have the eight tables at a scale factor, generated if they are not there."""
    if not 0 < scale <= 10_000:
        raise InterfaceError("A scale factor lies above 0 and up to 10000")
    folder = generate(scale, note)
    catalog = connection._catalog
    assert catalog.open_file is not None
    for table in TABLES:
        catalog.register(table, catalog.open_file(str(folder / f"{table}.parquet")))
    note(f"TPC-H SF{scale:g}: {', '.join(TABLES)}")


def generate(scale: float, note: Callable[[str], None]) -> Path:
    """The folder of the tables. What an interrupted run made is thrown away."""
    folder = _folder(scale)
    if all((folder / f"{table}.parquet").exists() for table in TABLES):
        return folder
    beside = Path(sys.executable).with_name("tpchgen-cli")
    program = str(beside) if beside.exists() else shutil.which("tpchgen-cli")
    if program is None:
        raise OperationalError("tpchgen-cli is not installed: pip install 'gquery[demo]'")
    note(f"Generating TPC-H SF{scale:g} in {folder}")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="partial-", dir=folder) as partial:
        arguments = [program, "parquet", "-s", f"{scale:g}", "-o", partial, "--row-group-bytes=128MB"]
        done = subprocess.run(arguments, capture_output=True, text=True, check=False)
        if done.returncode:
            raise OperationalError(f"tpchgen-cli failed: {done.stderr.strip()}")
        for path in Path(partial).glob("*.parquet"):
            path.replace(folder / path.name)
    return folder


def _folder(scale: float) -> Path:
    import platformdirs

    return Path(platformdirs.user_cache_dir("gquery")) / "tpch" / f"sf{scale:g}"
