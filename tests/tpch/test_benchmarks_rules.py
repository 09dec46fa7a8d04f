"""The table of rules: what it counts, what it says of a rule, and that the page of the docs knows every rule."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa

import gquery
from benchmarks.rules.measure import Firing, Refused, firings
from benchmarks.rules.random_tables import Described, constants, random_tables
from benchmarks.rules.report import KEPT, markdown
from benchmarks.rules.workloads import Workload
from gquery.planner.optimizer import RULES
from tests.support.paths import ROOT

TEXTS = {
    "top": "SELECT x, y FROM t WHERE x > 3 ORDER BY y LIMIT 2",
    "subquery": "SELECT x FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.x = t.x)",
    "not there": "SELECT nothing FROM t",
}


def connected() -> gquery.Connection:
    connection = gquery.connect(device="cpu")
    numbers = pa.array(np.arange(1000) % 7)
    return connection.register("t", pa.table({"x": numbers, "y": numbers})).register("u", pa.table({"x": numbers}))


def test_what_fires_is_counted_and_run() -> None:
    small = Workload("small", TEXTS, "1,000 rows", connected)
    found = list(firings(small, 1, ["limit_into_sort"]))
    (refused,) = [f for f in found if isinstance(f, Refused)]
    assert refused.query == "not there" and "'nothing'" in refused.reason
    fired = {(f.query, f.rule): f for f in found if isinstance(f, Firing)}
    assert ("subquery", "decorrelate") in fired and ("top", "decorrelate") not in fired
    top = fired["top", "limit_into_sort"]
    assert top.matters and top.rows_without is not None and top.rows_without > top.rows
    assert top.cost is not None and top.cost_without is not None and top.cost.bytes > 0
    assert all(f.cost is None for f in fired.values() if f.rule != "limit_into_sort")
    page = markdown([small], found, "small")
    line = next(line for line in page.splitlines() if line.startswith("|`limit_into_sort`"))
    assert line.split("|")[2:4] == ["1", "1"]
    assert "2 of 3 queries" in page


def test_the_page_of_the_docs_has_every_rule() -> None:
    page = (ROOT / "docs" / "reference" / "rules.md").read_text()
    assert re.findall(r"^\|`(\w+)`", page, re.M) == [r.name for r in RULES]
    unused = re.findall(r"^- `(\w+)`: none$", page, re.M)
    assert set(unused) == set(KEPT), "a rule that no query needs has a reason, and no other"


def test_random_tables_hold_what_queries_compare_with() -> None:
    text = (
        "SELECT * FROM title AS t, kind_type AS k WHERE t.kind_id = k.id AND k.kind = 'movie' AND t.title LIKE '%The%'"
    )
    tables = [
        Described("title", 5_000, {"id": "integer", "title": "character varying", "kind_id": "integer"}),
        Described("kind_type", 7, {"id": "integer", "kind": "character varying"}),
    ]
    known = constants([text], {"title", "kind_type"})
    assert known["kind_type", "kind"] == ["movie"] and known["title", "title"] == ["The"]
    made = random_tables(tables, known)
    connection = gquery.connect(device="python")
    for name, table in made.items():
        connection.register(name, table)
    assert connection.sql("SELECT count(*) FROM title, kind_type k WHERE kind_id = k.id").fetchall() == [(5_000,)]
    assert len(connection.sql(text).fetchall()) > 50
