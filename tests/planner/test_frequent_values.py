"""Values that have far more rows than others: what a column's sample tells of them, and how many rows filters on them are
expected to keep."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery.columns.encode import import_column
from gquery.columns.table import Frequent
from gquery.expression.types import BIGINT, Field
from gquery.planner.logical.cardinality import Estimator
from gquery.planner.logical.nodes import Filter
from gquery.planner.logical.tree import walk

ROWS = 300_000
_RNG = np.random.default_rng(7)
_MANY = _RNG.integers(1, 100_000, ROWS)
SKEWED = np.where(_RNG.random(ROWS) < 0.3, 2**62 + 1, np.where(_RNG.random(ROWS) < 0.15, 7, _MANY))  # a double has not all of it


def _frequent(values: pa.Array) -> Frequent:
    return import_column(values, Field("x", BIGINT, True)).statistics.frequent


def _about(found: Frequent) -> list[tuple[int, float]]:
    return [(value, round(part, 1)) for value, part in found]


def test_the_most_frequent_come_first() -> None:
    assert _about(_frequent(pa.array(SKEWED))) == [(2**62 + 1, 0.3), (7, 0.1)]


def test_nulls_are_no_zeros() -> None:
    """They are 0 in the array."""
    is_null = _RNG.random(ROWS) < 0.5
    assert _frequent(pa.array(_MANY, mask=is_null)) == ()
    zeros = np.where(_RNG.random(ROWS) < 0.5, 0, _MANY)
    ((value, part),) = _frequent(pa.array(zeros, mask=is_null))
    assert value == 0 and 0.24 < part < 0.26
    assert _frequent(pa.array([None] * 10, pa.int64())) == _frequent(pa.array([], pa.int64())) == ()


@pytest.mark.parametrize("distinct", [1, 2, 10, 1000, ROWS])
def test_none_where_all_are_as_frequent(distinct: int) -> None:
    assert _frequent(pa.array(_RNG.permutation(np.arange(ROWS) % distinct))) == ()


def test_values_in_order() -> None:
    assert _about(_frequent(pa.array(np.sort(SKEWED)))) == [(2**62 + 1, 0.3), (7, 0.1)]
    assert _frequent(pa.array(np.arange(ROWS))) == ()


def test_few_are_noted() -> None:
    """Of a hundred frequent values among many the sixteen most frequent."""
    values = np.where(_RNG.random(ROWS) < 0.9, (_RNG.random(ROWS) ** 3 * 100).astype(np.int64), _MANY + 1000)
    found = _frequent(pa.array(values))
    assert len(found) == 16 and found[0][0] == 0
    assert [part for _, part in found] == sorted([part for _, part in found], reverse=True)


@pytest.fixture(scope="module")
def db() -> gquery.Connection:
    connection = gquery.connect("cpu")
    cents = [Decimal(int(v) % 1000) / 100 if v < 2**62 else Decimal("77.77") for v in SKEWED]
    small = np.where(SKEWED == 2**62 + 1, 8, SKEWED)
    table = pa.table({"x": SKEWED, "y": small, "p": pa.array(cents, pa.decimal128(7, 2))})
    connection.register("t", table)
    connection.sql("CREATE TABLE made AS SELECT x, row_number() OVER () AS n FROM t")
    connection.sql("SELECT count(x), count(p), count(y), max(x) FROM t").fetchall()
    return connection


def _kept(db: gquery.Connection, where: str, table: str = "t") -> float:
    """The rows that a filter is expected to keep, by those that it does."""
    prepared = db.sql(f"SELECT count(*) FROM {table} WHERE {where}")._prepared
    assert prepared is not None
    (node,) = [n for n in walk(prepared.query.plan) if isinstance(n, Filter)]
    assert node.sources
    ((rows,),) = db.sql(f"SELECT count(*) FROM {table} WHERE {where}").fetchall()
    return Estimator().rows(node) / int(rows)


@pytest.mark.parametrize(
    "where",
    [
        f"x = {2**62 + 1}", "x = 7", "7 = x", f"x IN (7, {2**62 + 1})", f"x <> {2**62 + 1}", f"x NOT IN ({2**62 + 1}, 7, 5)",
        "p = 77.77", "p = 77.770", "CAST(x AS DECIMAL(38, 2)) = 7", f"x = 7 OR x = {2**62 + 1}",
    ],
)  # fmt: skip
def test_estimates_of_frequent_values(where: str, db: gquery.Connection) -> None:
    assert 0.9 < _kept(db, where) < 1.1


def test_estimates_of_others(db: gquery.Connection) -> None:
    """Rare values share what frequent ones leave; those that are not there, too."""
    (rare,) = (int(v) for v in _MANY[:1])
    assert 0.1 < _kept(db, f"x = {rare}") < 10
    prepared = db.sql("SELECT count(*) FROM t WHERE x = -5")._prepared
    assert prepared is not None
    (node,) = [n for n in walk(prepared.query.plan) if isinstance(n, Filter)]
    assert Estimator().rows(node) < 10


def test_a_table_that_is_created(db: gquery.Connection) -> None:
    assert 0.9 < _kept(db, f"x = {2**62 + 1} AND n > 0", "made") < 1.1


def test_a_template_serves_values_of_about_as_many_rows(db: gquery.Connection) -> None:
    """A plan for a rare value serves other rare ones, one for a frequent value frequent ones."""
    sql = "SELECT sum(p), min(x) FROM t WHERE y = {}"
    want = {v: db.sql(f"SELECT sum(p), min(x) FROM t WHERE y + 0 = {v}").fetchall() for v in (7, 8, 11, 12)}

    def served(value: int) -> str:
        assert db.sql(sql.format(value)).fetchall() == want[value]
        prepared = db._plans.find(sql.format(value), None, db.settings)
        assert prepared is not None
        return prepared.template

    served(11)
    assert served(12) == "hit"
    assert "about as frequent" in served(8)
    assert served(7) == "hit", "of a tenth of the rows, and three tenths"
