"""TPC-H data: one Parquet file a table, made by tpchgen-cli once for a scale factor and kept for the next run."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import click

from tpch.queries import TABLES

ROOT = Path(__file__).resolve().parent.parent


def scale_text(sf: float) -> str:
    """A scale factor as people write it.

    >>> scale_text(1.0), scale_text(0.01)
    ('1', '0.01')
    """
    return f"{sf:g}"


def default_folder(sf: float) -> Path:
    """``data/sf<SF>`` of a checkout; where the package is installed, a folder of the user's cache."""
    if (ROOT / "pyproject.toml").exists():
        return ROOT / "data" / f"sf{scale_text(sf)}"
    return cache_folder(sf)


def cache_folder(sf: float) -> Path:
    """Where tables are kept for a user, whatever directory the work is done in."""
    import platformdirs

    return Path(platformdirs.user_cache_dir("gquery")) / "tpch" / f"sf{scale_text(sf)}"


def files(folder: Path) -> dict[str, Path]:
    """The Parquet file of each table."""
    return {table: folder / f"{table}.parquet" for table in TABLES}


def generate(sf: float, folder: Path | None = None, echo: bool = True) -> Path:
    """The folder that holds the tables at this scale factor, generated if it is not complete.

    The files are written aside, in a folder of this process, and moved when all are there: an interrupted run leaves
    nothing half done, and two that generate at once do not meet. The default row groups (7 MiB) make readers nearly
    twice as slow as those of 128 MB.
    """
    folder = folder or default_folder(sf)
    if all(path.exists() for path in files(folder).values()):
        return folder
    program = Path(sys.executable).with_name("tpchgen-cli")
    command = str(program) if program.exists() else shutil.which("tpchgen-cli")
    if command is None:
        raise click.ClickException(
            f"{folder} holds no TPC-H data and tpchgen-cli is not installed: pip install tpchgen-cli==4.0.0"
        )
    if echo:
        click.echo(f"generating TPC-H SF{scale_text(sf)} in {folder}", err=True)
    folder.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix="partial-", dir=folder))
    arguments = [command, "parquet", "-s", scale_text(sf), "-o", str(partial), "--row-group-bytes=128MB"]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    if done.returncode:
        shutil.rmtree(partial)
        raise click.ClickException(f"{' '.join(arguments)} failed:\n{done.stderr.strip()}")
    for path in files(partial).values():
        if not (folder / path.name).exists():  # another process may be reading its own, the same, by now
            path.replace(folder / path.name)
    shutil.rmtree(partial)
    return folder
