"""Where expected answers come from: shipped ones, or DuckDB's over the same files, made once and kept beside the data.

Those shipped are for scale factors 0.01 and 1 with the validation parameters (README.md says how they were compared with
the published ones). DuckDB answers in a process of its own; each seed of the parameters has a folder. Above scale factor
10 it is not asked unless told, as it takes its time: answers are then unchecked.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from tpch import parameters, queries
from tpch.engines.base import Row, quoted
from tpch.generate import files, scale_text
from tpch.validate import read_answer, write_answer

SHIPPED = Path(__file__).resolve().parent / "answers"
LARGEST_ASKED = 10.0  # scale factor up to which DuckDB answers without being told


@dataclass(frozen=True)
class Oracle:
    """Expected answers of one scale factor. ``source`` is "auto", "duckdb" (even where answers are shipped, and at any
    scale factor), "none" or a folder of answer files; ``seed`` None means the validation parameters."""

    sf: float
    data: Path
    seed: int | None = None
    source: str = "auto"

    def folders(self, stream: int = 0) -> list[Path]:
        """Where answers may lie, best first."""
        made = self.made(stream)
        match self.source:
            case "none":
                return []
            case "duckdb":
                return [made]
            case "auto":
                shipped = SHIPPED / f"sf{scale_text(self.sf)}"
                return [shipped, made] if self.seed is None and shipped.exists() else [made]
            case _:
                folder = Path(self.source)
                return [folder if self.seed is None else folder / parameters.seed_text(self.seed, stream)]

    def made(self, stream: int = 0) -> Path:
        """Where DuckDB's answers for this data are kept."""
        folder = self.data / "answers"
        return folder if self.seed is None else folder / parameters.seed_text(self.seed, stream)

    def expected(self, number: int, types: Sequence[str], stream: int = 0) -> list[Row] | None:
        """The right rows of a query, as values of these SQL types; None where nobody knows them."""
        for folder in self.folders(stream):
            path = folder / f"q{number:02d}.csv"
            if path.exists():
                return read_answer(path, types)
        return None

    def prepare(self, numbers: Sequence[int], streams: int = 0) -> None:
        """Have the answers that DuckDB is to give."""
        if self.source not in ("auto", "duckdb") or (self.source == "auto" and self.sf > LARGEST_ASKED):
            return
        for stream in range(streams + 1) if self.seed is not None else (0,):
            missing = [n for n in numbers if not any((f / f"q{n:02d}.csv").exists() for f in self.folders(stream))]
            if missing:
                self._ask(missing, stream)

    def _ask(self, numbers: Sequence[int], stream: int) -> None:
        command = [
            sys.executable, "-m", "tpch", "answers", "--sf", scale_text(self.sf), "--data", str(self.data),
            "--queries", ",".join(map(str, numbers)), "--into", str(self.made(stream)),
        ]  # fmt: skip
        if self.seed is not None:
            command += ["--seed", str(self.seed), "--stream", str(stream)]
        done = subprocess.run(command, check=False)
        if done.returncode:
            raise click.ClickException("DuckDB could not give the expected answers; --answers none runs without them")


def answer_with_duckdb(
    sf: float, data: Path, numbers: Sequence[int], into: Path, seed: int | None = None, stream: int = 0
) -> None:
    """Write DuckDB's answers over the files of a folder."""
    import duckdb

    with duckdb.connect() as connection:
        for table, path in files(data).items():
            connection.execute(f"CREATE VIEW {table} AS FROM read_parquet('{quoted(path)}')")
        for number in numbers:
            text = queries.sql(number) if seed is None else parameters.sql(number, seed, sf, stream)
            cursor = connection.execute(text)
            names = [column[0] for column in cursor.description or ()]
            write_answer(into / f"q{number:02d}.csv", names, cursor.fetchall())
