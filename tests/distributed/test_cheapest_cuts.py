"""Small tables are cut as large ones are where that costs the ranks less; answers are those of one rank."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from gquery.device.address_space import owner_of
from gquery.device.device import Device
from gquery.operators.combined_arrays import combined
from tests.support.harness import assert_same
from tests.support.tuned import Tune

ROWS, KEYS = 60_000, 3000
NUMBERS = np.random.default_rng(2).integers(0, KEYS, ROWS)
TABLES = {
    "visits": pa.table(
        {"id": range(ROWS), "page": NUMBERS, "v": pa.array([None if n % 9 == 0 else n for n in range(ROWS)])}
    ),
    "pages": pa.table({"page": range(KEYS), "kind": [n % 7 for n in range(KEYS)]}),
    "links": pa.table(
        {"page": sorted(n * 3 // 8 for n in range(ROWS // 8)), "to_page": [n % 50 for n in range(ROWS // 8)]}
    ),
    "wide": pa.table({"page": np.repeat(np.arange(KEYS), 20), "w": np.arange(20 * KEYS)}),
}
COUNTED = """SELECT n, count(*) FROM (SELECT pages.page, count(v) AS n FROM pages LEFT JOIN visits ON pages.page = visits.page
             GROUP BY pages.page) GROUP BY n"""
JOINED = "SELECT kind, count(DISTINCT w), sum(w) FROM wide JOIN pages USING (page) GROUP BY kind"


@pytest.fixture(autouse=True)
def _few_bytes(tune: Tune) -> None:
    """Tables of 100 kB are large, and all else is as much smaller as that."""
    tune(tuning.distribution, replicated_bytes=100_000, alone_bytes=0, parted_bytes=1000, alone_rows=1000, cut_frame_rows=1000,
         gathered_rows=100, gathered_located_rows=100, exchanged_us=0.01, hashed_us=0.1, merged_slot_words=100,
         merged_ps=1.0, hashed_bytes=2**40)  # fmt: skip


def explained(sql: str, ranks: int) -> str:
    with gquery.connect(device="python", devices=ranks) as db:
        for name, rows in TABLES.items():
            db.register(name, rows)
        return str(db.sql(f"EXPLAIN {sql}").fetchall()[0][-1])


@pytest.mark.parametrize(("sql", "table"), [(COUNTED, "pages"), (JOINED, "pages")])
def test_small_tables_are_cut_where_that_is_cheaper(sql: str, table: str, tune: Tune) -> None:
    tune(tuning.distribution, joined_bytes=2**30, waited_us=0.0)
    whole = explained(sql, 2)
    tune(tuning.distribution, joined_bytes=100)
    cut = explained(sql, 2)
    assert whole != cut
    reads = [stage for stage in cut.split("\n\nstage") if f"read {table} (" in stage]
    assert reads and all("a part of the rows" in stage for stage in reads)


def test_an_exchange_has_to_save_more_than_ranks_wait(tune: Tune) -> None:
    """Keys of visits lie anywhere: pages that are cut have their table merged, for which there is nothing to gain."""
    sql = "SELECT sum(kind) FROM visits JOIN pages ON visits.page = pages.page"
    tune(tuning.distribution, joined_bytes=2**30, waited_us=0.0)
    whole = explained(sql, 2)
    tune(tuning.distribution, joined_bytes=100, waited_us=1e6)
    assert explained(sql, 2) == whole


@pytest.mark.parametrize("ranks", [2, 3, 7])
@pytest.mark.parametrize(
    "sql",
    [
        COUNTED,
        JOINED,
        COUNTED.replace("count(v) AS n", "min(v) AS n"),
        COUNTED.replace("FROM pages LEFT", "FROM (SELECT * FROM pages WHERE page < 1) pages LEFT"),
        COUNTED.replace("FROM pages LEFT", "FROM (SELECT * FROM pages WHERE page IS NULL) pages LEFT"),
        COUNTED.replace("LEFT JOIN visits", "FULL JOIN (SELECT page + 1500 AS page, v FROM visits) visits"),
        "SELECT w.page, l.to_page, w FROM wide w JOIN links l ON w.page = l.page WHERE w.w % 19 = 0",
        "SELECT page FROM pages WHERE NOT EXISTS (SELECT 1 FROM wide WHERE wide.page = pages.page + 2990)",
        "SELECT count(*) FROM pages p, (SELECT page, sum(w) AS s FROM wide GROUP BY page) x WHERE p.page = x.page AND s > 9e3",
    ],
)
def test_answers(sql: str, ranks: int, tune: Tune) -> None:
    tune(tuning.distribution, joined_bytes=1, waited_us=0.0, replicated_bytes=200_000)
    assert_same(sql, TABLES, targets=("cpu",), ranks=(ranks,))
    tune(tuning.distribution, merged_ps=1e9, placed_ps=1e9, received_ps=0.0)
    assert_same(sql, TABLES, targets=("python" if ranks == 2 else "cpu",), ranks=(ranks,))


@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
@pytest.mark.parametrize("op", ["add", "min", "max", "or"])
def test_arrays_of_ranks_are_combined_in_memory_of_ones_own(ranks: int, op: str) -> None:
    rng = np.random.default_rng(ranks)
    devices = [Device("cpu", 81 + r) for r in range(ranks)]
    host = [[rng.integers(0, 1000, n) for n in (1, 40)] for _ in range(ranks)]
    for own, device in enumerate(devices):
        parts: list[Sequence[np.ndarray]] = [
            [d.from_host(a) for a in arrays] for d, arrays in zip(devices, host, strict=True)
        ]
        made = combined(parts, [op, op], own, device)
        for n, total in enumerate(made):
            want = host[0][n]
            for other in host[1:]:
                want = {"add": np.add, "min": np.minimum, "max": np.maximum, "or": np.bitwise_or}[op](want, other[n])
            assert (total == want).all() and owner_of(total) == device.ordinal
            assert all(
                (p[n] == h[n]).all() and not np.shares_memory(p[n], total) for p, h in zip(parts, host, strict=True)
            )
