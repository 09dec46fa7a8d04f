"""Templates over Parquet files that were not read yet: a plan that scans all of a file serves any constants.

One that scans a part serves those that the part was chosen for.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gquery
from tests.support.templates import answer, fresh

ROWS, GROUP = 12_000, 500
SHAPES = {
    "a range": ("SELECT count(*), sum(v) FROM '{}' WHERE day >= {{}} AND day < {{}}", "0|12000", "6000|6010", "-5|3"),
    "several": ("SELECT sum(v) FROM '{}' WHERE day IN ({{}}, {{}}, {{}})", "1|6000|11999", "5|6|7", "2|8000|10000"),
    "text": ("SELECT count(*) FROM '{}' WHERE s LIKE '{{}}%' AND v > {{}}", "|3", "a|3", "k|100"),
    "text after all": ("SELECT count(*) FROM '{}' WHERE s >= '{{}}'", "", "l", "b"),
    "a disjunction": ("SELECT sum(v) FROM '{}' WHERE day < {{}} OR v = {{}}", "11900|7", "3|7", "50|8"),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "t.parquet"
    table = pa.table(
        {
            "day": range(ROWS),
            "v": [n * 7 % 501 for n in range(ROWS)],
            "s": [chr(97 + 12 * n // ROWS) for n in range(ROWS)],
        }
    )
    pq.write_table(table, made, row_group_size=GROUP)
    return made


def _texts(name: str, path: Path) -> list[str]:
    shape, *constants = SHAPES[name]
    return [shape.format(path).format(*c.split("|")) for c in constants]


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("order", [(0, 1, 2), (1, 2, 0), (2, 0, 1), (1, 0, 2)])
def test_parts_and_wholes(name: str, order: tuple[int, ...], path: Path) -> None:
    texts = _texts(name, path)
    with gquery.connect(device="python") as served, gquery.connect(device="python") as alone:
        for n in (*order, *reversed(order)):
            assert answer(served, texts[n])[1] == fresh(alone, texts[n]), texts[n]


def test_a_whole_scan_rests_on_no_constant(path: Path) -> None:
    """A join as the queries of benchmarks have it: the filter leaves out no row group."""
    shape = f"SELECT s, sum(v) AS v FROM '{path}' WHERE v = {{}} AND s <> '{{}}' GROUP BY s ORDER BY s"
    with gquery.connect(device="python") as served, gquery.connect(device="python") as alone:
        served.sql(shape.format(3, "a")).fetchall()
        for v, s in ((5, "b"), (400, "zz"), (4, "")):
            sql = shape.format(v, s)
            assert answer(served, sql) == ("hit", fresh(alone, sql))


def test_a_scan_of_a_part_serves_no_other(path: Path) -> None:
    shape = f"SELECT sum(v) FROM '{path}' WHERE day = {{}}"
    with gquery.connect(device="python") as served, gquery.connect(device="python") as alone:
        served.sql(shape.format(10)).fetchall()
        for day in (11_900, 11, 6_000):
            sql = shape.format(day)
            template, got = answer(served, sql)
            assert template.startswith("miss") and got == fresh(alone, sql)
