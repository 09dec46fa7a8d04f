"""Polars and cudf-polars through `polars.SQLContext`: data frames in the host's memory, or scans of the files.

cudf-polars is Polars' plan collected on the GPU. It is asked to fail where a plan needs the CPU, so that no time of the
CPU is reported as the GPU's; frames in memory are copied to the GPU by every query, as its public interface knows no
tables that stay there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from tpch.engines.base import Answer, NotRunError, Options
from tpch.generate import files
from tpch.machine import versions


class PolarsEngine:
    """Frames by table name, eager where they are resident, lazy scans made anew for each query where they are not."""

    name = "polars"

    def __init__(self, folder: Path, options: Options, frames: dict[str, pl.DataFrame] | None = None) -> None:
        self.folder, self.options = folder, options
        self.frames: dict[str, pl.DataFrame] = frames or {}
        if options.io == "resident" and frames is None:
            self.frames = {table: pl.read_parquet(path) for table, path in files(folder).items()}
        where = "frames in memory" if options.io == "resident" else "reading the files for every query"
        self.description = f"Polars {pl.__version__}, SQLContext, {where}, {pl.thread_pool_size()} threads"

    def run(self, sql: str) -> Answer:
        scans = {table: pl.scan_parquet(path) for table, path in files(self.folder).items()}
        tables: dict[str, Any] = dict(self.frames) if self.frames else dict(scans)
        try:
            with pl.SQLContext(frames=tables) as context:
                frame = self._collect(context.execute(sql))
        except (pl.exceptions.PolarsError, NotImplementedError) as error:
            raise NotRunError(f"{type(error).__name__}: {str(error).splitlines()[0]}") from None
        table = frame.to_arrow()
        return Answer(table, tuple(_sql_type(field.type) for field in table.schema))

    def _collect(self, query: Any) -> Any:
        return query.collect()

    def stream(self) -> PolarsEngine:
        return type(self)(self.folder, self.options, self.frames)

    def close(self) -> None:
        self.frames = {}


class CudfPolarsEngine(PolarsEngine):
    name = "cudf-polars"

    def __init__(self, folder: Path, options: Options, frames: dict[str, pl.DataFrame] | None = None) -> None:
        super().__init__(folder, options, frames)
        where = "frames in the host's memory" if options.io == "resident" else "reading the files for every query"
        own = next((v for name, v in versions().items() if name.startswith("cudf-polars")), "of an unknown version")
        self.description = f"cudf-polars {own}, Polars {pl.__version__}, SQLContext, {where}"

    def _collect(self, query: Any) -> Any:
        return query.collect(engine=pl.GPUEngine(raise_on_fail=True))


def _sql_type(kind: pa.DataType) -> str:
    """The SQL name of an Arrow type, as `tpch.validate` knows them."""
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if pa.types.is_integer(kind):
        return "BIGINT"
    if pa.types.is_floating(kind):
        return "DOUBLE"
    if pa.types.is_date(kind):
        return "DATE"
    return "TIMESTAMP" if pa.types.is_timestamp(kind) else "VARCHAR"
