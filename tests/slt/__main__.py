"""``python -m tests.slt PATH...``: run sqllogictest files (or all under folders), a line for each fault and one for all.

python -m tests.slt tests/slt/suite                      on the interpreter
python -m tests.slt --target cpu --compiled FILE         every query compiled
python -m tests.slt --engine duckdb FILE                 the same on DuckDB: is the file right?
python -m tests.slt --complete FILE                      write the rows that DuckDB gives behind each query's ----
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from tests.slt.compare import is_hashed, written
from tests.slt.records import FormatError, read
from tests.slt.run import DuckDB, Engine, Gquery, faults


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for; 1 where a record does not do what it should."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.slt", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", nargs="+", type=Path, help="files, or folders of .slt and .test files")
    parser.add_argument("--engine", choices=("gquery", "duckdb"), default="gquery")
    parser.add_argument("--target", default="python", help="python, cpu or cuda")
    parser.add_argument("--ranks", type=int, help="devices of the connection")
    parser.add_argument("--compiled", action="store_true", help="interpret nothing")
    parser.add_argument("--most", type=int, default=50, help="faults after which to stop")
    parser.add_argument("--complete", action="store_true", help="write expected rows, as DuckDB gives them")
    given = parser.parse_args(arguments)
    count = records = 0
    for path in _files(given.paths):
        if given.complete:
            complete(path)
        engine: Engine = DuckDB() if given.engine == "duckdb" else Gquery(given.target, given.ranks, given.compiled)
        try:
            records += len(read(path))
            for fault in faults(path, engine):
                print(fault, flush=True)
                count += 1
                if count >= given.most:
                    return 1
        except FormatError as error:
            print(error)
            count += 1
    print(f"{records} records, {count} faults")
    return int(count > 0)


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        yield from sorted(p for p in path.rglob("*") if p.suffix in (".slt", ".test")) if path.is_dir() else [path]


def complete(path: Path) -> None:
    """Write DuckDB's rows behind the ``----`` of each query; in loops what is there stays, and so do hashes."""
    found: dict[int, list[list[str]]] = {}
    with closing(DuckDB()) as engine:
        for record in read(path):
            if record.kind == "error" or not record.is_for(engine.name):
                continue
            rows = engine.run(record.sql)
            if record.kind == "query" and not is_hashed(record):
                found.setdefault(int(record.place.rpartition(":")[2]), []).append(written(record, rows))
    once = {line: several[0] for line, several in found.items() if len(several) == 1}
    path.write_text("\n".join(_with_rows(path.read_text(encoding="utf-8").splitlines(), once)) + "\n", encoding="utf-8")


def _with_rows(lines: Sequence[str], rows: Mapping[int, Sequence[str]]) -> Iterator[str]:
    """The lines of a file with other rows behind the queries that begin at some of them, counted from 1."""
    query: int | None = None  # whose ---- comes next
    is_old = False  # within the rows that are replaced
    for number, line in enumerate(lines, 1):
        is_old = is_old and line != ""
        if is_old:
            continue
        if number in rows:
            query = number
        yield line
        if line.strip() == "----" and query is not None:
            yield from rows[query]
            query, is_old = None, True


if __name__ == "__main__":
    sys.exit(main())
