"""ASOF joins: the nearest row, in each kind and direction, with and without equal keys and residuals."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery.errors import BindError
from tests.support.harness import assert_error, assert_same

KINDS = ("JOIN", "LEFT JOIN", "SEMI JOIN", "ANTI JOIN")
CONDITIONS = (
    "p.g = b.g AND p.t >= b.t",
    "p.t > b.t",
    "p.t <= b.t AND p.s = b.s",
    "b.t > p.t AND p.g = b.g",
    "p.t + 1 >= b.t - 2 AND b.g > 0",
    "p.t >= b.t AND p.g <> b.g",
    "p.t < b.t AND p.g = 1 AND p.v <> b.v",
    "p.v = b.v AND p.f >= b.f",
)


def _table(seed: int, rows: int) -> pa.Table:
    """Keys ``t`` and ``f`` that do not repeat, as nothing says which of two equal ones is taken. No table has more than 64 rows:
    of more DuckDB takes a NULL for equal to another."""
    r = np.random.default_rng(seed)

    def some(values: list[object], kind: pa.DataType) -> pa.Array:
        missing = r.random(rows) < 0.12
        return pa.array([None if m else v for v, m in zip(values, missing, strict=True)], kind)

    floats = [*(x / 4 for x in range(rows - 3)), float("inf"), float("-inf"), float("nan")][:rows]
    return pa.table(
        {
            "id": pa.array(range(rows)),
            "t": some(r.permutation(3 * rows)[:rows].tolist(), pa.int32()),
            "g": some(r.integers(0, 4, rows).tolist(), pa.int64()),
            "s": some(r.choice(["a", "b", "c"], rows).tolist(), pa.string()),
            "f": some(r.permutation(floats).tolist(), pa.float64()),
            "v": pa.array(r.integers(0, 3, rows)),
        }
    )


def _sql(kind: str, condition: str) -> str:
    columns = "p.id, p.s" if kind in ("SEMI JOIN", "ANTI JOIN") else "p.id, b.id AS other, b.s, p.t"
    return f"SELECT {columns} FROM p ASOF {kind} b ON {condition}"


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_and_condition(kind: str) -> None:
    for n, condition in enumerate(CONDITIONS):
        tables = {"p": _table(n, 60), "b": _table(n + 50, 45)}
        assert_same(_sql(kind, condition), tables, targets=("python",), ranks=(1, 3)[: 1 + (n % 3 == 0)])


@pytest.mark.parametrize("kind", KINDS)
def test_compiled(kind: str) -> None:
    for n in (0, 5, 7):
        tables = {"p": _table(n, 60), "b": _table(n + 50, 45)}
        assert_same(_sql(kind, CONDITIONS[n]), tables, targets=("cpu",), ranks=(1,), settings={"interpret_limit": "0"})


@pytest.mark.parametrize(("probes", "builds"), [(0, 4), (4, 0), (1, 1), (9, 1)])
def test_few_rows(probes: int, builds: int) -> None:
    for kind in KINDS:
        assert_same(
            _sql(kind, CONDITIONS[1]), {"p": _table(1, probes), "b": _table(2, builds)}, targets=("python",), ranks=(1,)
        )


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM p ASOF JOIN b USING (g, t)",
        "SELECT * FROM p ASOF LEFT JOIN b USING (t)",
        "SELECT count(*) FROM p ASOF LEFT JOIN b USING (g, t)",
        "SELECT sum(b.v), count(*) FROM p ASOF JOIN b ON p.t >= b.t WHERE b.v > 0 AND p.g = 2",
        "SELECT p.id, b.id, c.id FROM p ASOF JOIN b ON p.t >= b.t JOIN p c ON c.g = b.g AND c.v = p.v",
        "SELECT p.id, b.id, c.id FROM p ASOF LEFT JOIN b ON p.t >= b.t ASOF LEFT JOIN b c ON c.t <= b.t - 1",
        "SELECT id, (SELECT max(b.id) FROM p q ASOF JOIN b ON q.t >= b.t WHERE q.g = p.g) FROM p",
        "SELECT p.id, b.id FROM p ASOF LEFT JOIN b ON p.t >= coalesce(b.t, 0) + 1 WHERE b.t IS NOT NULL OR b.id IS NULL",
        "SELECT * FROM (SELECT p.id, b.t FROM p ASOF LEFT JOIN b ON p.g = b.g AND p.t >= b.t ORDER BY p.id LIMIT 5)",
    ],
)
def test_queries(sql: str) -> None:
    assert_same(sql, {"p": _table(21, 60), "b": _table(22, 40)}, targets=("python",))


def test_errors() -> None:
    tables = {"p": _table(1, 5), "b": _table(2, 5)}
    expected: list[tuple[str, type[Exception], str]] = [
        ("SELECT * FROM p ASOF JOIN b ON p.g = b.g", BindError, "has no comparison"),
        ("SELECT * FROM p ASOF JOIN b ON p.t > b.t AND p.v < b.v", BindError, "several comparisons"),
        ("SELECT * FROM p ASOF JOIN b ON p.t BETWEEN b.t AND b.v", BindError, "several comparisons"),
        ("SELECT * FROM p ASOF JOIN (SELECT p.t FROM b) x ON p.t > x.t", BindError, "INNER or LEFT"),
    ]
    for sql, error, match in expected:
        assert_error(sql, tables, error, match.lower(), targets=("python",), ranks=(1,))


def test_the_plan_names_the_kind() -> None:
    connection = gquery.connect(device="python")
    for name, table in {"p": _table(1, 9), "b": _table(2, 9)}.items():
        connection.register(name, table)
    sql = _sql("LEFT JOIN", CONDITIONS[0])
    assert "Join asof on" in connection.explain(sql, "optimized")
    shown = connection.explain(sql, "pipelines")
    assert "sorted by t" in shown
    assert ", asof by (g#2), t <= t#2" in shown


@pytest.mark.cuda
@pytest.mark.parametrize("kind", KINDS)
def test_on_a_gpu(kind: str) -> None:
    for n, condition in enumerate(CONDITIONS):
        tables = {"p": _table(n, 60), "b": _table(n + 50, 45)}
        assert_same(_sql(kind, condition), tables, targets=("cuda",), ranks=(1,), settings={"interpret_limit": "0"})
