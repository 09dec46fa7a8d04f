"""The engines that run the queries: gquery and its peers, each behind the same three methods.

An engine lives in a process of its own (`tpch.worker`), so a library is imported only where it is asked for. All read the
same Parquet files. With ``resident`` data an engine may keep what it has read; with ``parquet`` it keeps nothing: every
query opens a database of its own and reads what it needs from the files, which the page cache may hold.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from tpch.engines.base import IOS, Answer, Engine, Io, NotRunError, Options
from tpch.engines.gquery_engine import GQueryEngine

__all__ = [
    "ENGINES",
    "IOS",
    "Answer",
    "Engine",
    "GQueryEngine",
    "Io",
    "NotRunError",
    "Options",
    "installed",
    "open_engine",
]

# the module and the class of each, and the packages that it needs
ENGINES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "gquery": ("gquery_engine", "GQueryEngine", ("gquery",)),
    "duckdb": ("duckdb_engine", "DuckDBEngine", ("duckdb",)),
    "polars": ("polars_engine", "PolarsEngine", ("polars",)),
    "cudf-polars": ("polars_engine", "CudfPolarsEngine", ("polars", "cudf_polars")),
}


def installed(name: str) -> bool:
    """Whether the packages of an engine are there."""
    return all(find_spec(package) is not None for package in ENGINES[name][2])


def open_engine(name: str, folder: Path, options: Options) -> Engine:
    """An engine over the files of a folder. Resident tables of peers are loaded now, gquery's when they are first used."""
    module, class_name, _ = ENGINES[name]
    made: Engine = getattr(import_module(f"tpch.engines.{module}"), class_name)(folder, options)
    return made
