"""Window functions whose rows do not fit memory are computed in parts: DuckDB's answers, and nothing stays behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import gquery
from gquery import errors
from tests.support.cases import Case, read_cases
from tests.support.harness import compare, expect
from tests.support.in_parts import Refused, all_in_parts
from tests.support.tables import all_types

CASES = [case for case in read_cases() if case.name.startswith("windows") and "partition" in case.sql]


@pytest.fixture
def everything() -> Iterator[Refused]:
    with all_in_parts() as refused:
        yield refused


def limited(folder: Path) -> gquery.Connection:
    db = gquery.connect(device="cpu", memory_limit="1GB")
    db.set("spill_directory", str(folder))
    for name, table in all_types().items():
        db.register(name, table)
    return db


def test_windows_by_parts_are_the_windows(tmp_path: Path, everything: Refused) -> None:
    db = limited(tmp_path)
    for case in CASES[:: len(CASES) // 8]:
        check(case, db)
    assert everything.windows


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_all_windows_by_parts(case: Case, tmp_path: Path, everything: Refused) -> None:
    check(case, limited(tmp_path))


def check(case: Case, db: gquery.Connection) -> None:
    types, want = expect(case.sql, all_types())
    assert compare(db.sql(case.sql).fetchall(), want, case.ordered, types) is None, case.sql


def test_rows_of_parts_keep_their_order(tmp_path: Path, everything: Refused) -> None:
    sql = "SELECT id, rank() OVER (PARTITION BY s ORDER BY n) FROM t"
    assert [row[0] for row in limited(tmp_path).sql(sql).fetchall()] == list(range(120))
    assert everything.windows


def test_one_partition_that_does_not_fit_is_one_error() -> None:
    db = gquery.connect(device="cpu", memory_limit="20MB")
    with pytest.raises(errors.OutOfMemoryError, match="row_number over a window"):
        db.sql(
            "SELECT max(r) FROM (SELECT row_number() OVER (ORDER BY x % 1000) r FROM range(3000000) t(x))"
        ).fetchall()
    assert db.sql("SELECT 1").fetchall() == [(1,)]
