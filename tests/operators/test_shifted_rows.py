"""`lag` and `lead` by a constant over rows in their order: columns in pieces, of every type, and what takes them further."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery.device.buffer import Buffer, InPieces
from gquery.device.device import cpu_device
from gquery.kernels import checks
from tests.support.harness import assert_same

ROWS = 50
_NULLS = np.arange(ROWS) % 7 == 3
T = {
    "t": pa.table(
        {
            "o": np.arange(ROWS),
            "i": pa.array(np.arange(ROWS) * 37 % 101, mask=_NULLS),
            "n": np.arange(ROWS) * 11 % 17,
            "x": np.arange(ROWS) / 4,
            "s": pa.array([f"text {k * k}" for k in range(ROWS)], mask=_NULLS),
            "d": pa.array([f"{k % 3}" for k in range(ROWS)]).dictionary_encode(),
            "b": np.arange(ROWS) % 3 == 0,
            "w": pa.array([k << 70 for k in range(ROWS)], pa.decimal128(38, 0), mask=_NULLS),
        }
    ),
    "one": pa.table({"o": [1], "x": [2.5]}),
}
OVER = "OVER (ORDER BY o)"
CASES = [
    "lag(i)", "lead(i, 3)", "lag(i, 60)", "lead(i, 0)", "lag(s)", "lead(s, 3)", "lead(s, 60)", "lag(d)", "lead(b)", "lag(w, 2)",
    "lag(x, -2)", "lead(x, 2, -1.5)", "lag(n, 3, 5)", "lag(i, 3, 5)", "lag(n, 3, 100000)", "lead(n, 2, x::INT)",
    "lag(s, 2, 'none')", "lag(d, 2, '1')", "lag(d, 2, 'none')", "lag(x, NULL)", "lag(x, n % 3)", "lag(b, 2, true)",
    "lead(w, 4, 7)", "lag(i IGNORE NULLS)", "lead(x, 2 IGNORE NULLS)", "lag(s IGNORE NULLS)",
]  # fmt: skip


def test_all_types_and_defaults() -> None:
    calls = ", ".join(f"{call} {OVER}" for call in CASES)
    assert_same(f"SELECT o, {calls} FROM t", T)
    assert_same(f"SELECT o, lag(x) {OVER}, lead(x, 1, 7) {OVER} FROM one", T)
    assert_same(f"SELECT o, lag(x) {OVER}, lag(o, 2) {OVER} FROM t WHERE o < 0", T)


def test_stages_behind_read_them() -> None:
    inner = f"SELECT o, lag(x) {OVER} AS a, lead(s, 2) {OVER} AS s, lag(n, 2, 9) {OVER} AS n FROM t"
    assert_same(f"SELECT n, sum(a), min(s), count(s) FROM ({inner}) q GROUP BY n", T)
    assert_same(f"SELECT a, s || '!', n + 1 FROM ({inner}) q WHERE a > 3 ORDER BY n, o", T)
    assert_same(f"SELECT q.o, p.o FROM ({inner}) q JOIN ({inner}) p ON q.n = p.o", T)
    assert_same(f"SELECT o, lag(a) {OVER}, avg(a) OVER (ORDER BY o ROWS 2 PRECEDING) FROM ({inner}) q", T)
    assert_same(f"SELECT * FROM ({inner}) q ORDER BY o LIMIT 4", T)


@pytest.mark.parametrize("made", [False, True])
def test_no_value_is_copied(made: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "ENABLED", False)  # they look at all values
    rows = 200_000  # so many that the statistics of a table that is made are left for later
    source = pa.table({"o": np.arange(rows), "x": np.arange(rows) / 2})
    connection = gquery.connect("cpu").register("t", source)
    query = f"SELECT o, lag(x, 2) {OVER} AS a, lead(x) {OVER} AS b FROM t"
    if made:
        connection.sql(f"CREATE TABLE m AS {query}")
        assert connection.sql("SELECT sum(a), count(b), max(b) FROM m").fetchall() == [
            (sum(range(rows - 2)) / 2, rows - 1, (rows - 1) / 2)
        ]
        query = "SELECT * FROM m"
    relation = connection.sql(query)
    columns = relation.table().columns
    if not made:
        assert [c.data.lengths for c in columns[1:] if isinstance(c.data, InPieces)] == [[2, rows - 2], [rows - 1, 1]]
    answer = relation.to_arrow_table()
    assert answer.column("a").num_chunks == (1 if made else 2)
    expected = np.arange(rows) / 2
    assert answer.column("a").to_pylist() == [None, None, *expected[:-2]]
    assert answer.column("b").to_pylist() == [*expected[1:], None]


def test_pieces_of_a_buffer() -> None:
    def pieces() -> InPieces:
        return InPieces([np.broadcast_to(np.ones(1), 3), np.arange(4.0), np.zeros(1)], cpu_device())

    whole = [1, 1, 1, 0, 1, 2, 3, 0]
    for low in range(9):
        for high in range(low, 9):
            assert list(pieces().slice(low, high).host) == whole[low:high]
    made = pieces()
    assert (
        made.nbytes == 64 and made.lengths == [3, 4, 1] and made.devices == (cpu_device(),) and made.is_on(cpu_device())
    )
    assert type(made.slice(3, 6)) is Buffer and made.lengths == [3, 4, 1]
    assert list(made.window(2, 5).host) == whole[2:5] and made.lengths == [] and made.holds() == 0
    found = pieces().cpu
    assert found is not None and list(found) == whole
