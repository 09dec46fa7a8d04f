"""Nothing but gquery's own errors leaves it: what libraries raise is told as a fault, or foreseen."""

from __future__ import annotations

import sys
from typing import Any

import pyarrow as pa
import pytest

import gquery
from gquery.runtime.boundary import boundary

STRANGE = ["SELECT interval 1 dayy", "SELECT '1 dayy'::interval", "SELECT CAST(1 AS DECIMAL(a,2)) FROM t"]
STRANGE += ["\ud800", "SELECT '\ud800'"]
STRANGE += ['SELECT "\ud800" FROM t', "SELECT " + "(" * 30_000 + "1" + ")" * 30_000]


@pytest.fixture
def db() -> gquery.Connection:
    return gquery.connect(device="python").register("t", pa.table({"a": [1, 2, 3], "s": ["x", "y", "z"]}))


@pytest.mark.parametrize("sql", STRANGE, ids=lambda sql: ascii(sql)[:40])
def test_strange_statements(sql: str, db: gquery.Connection) -> None:
    with pytest.raises(gquery.Error):
        db.sql(sql).fetchall()
    assert db.sql("SELECT count(*) FROM t").fetchall() == [(3,)]


@pytest.mark.parametrize("text", [5, None, b"SELECT 1", ["SELECT 1"]])
def test_no_text(text: Any, db: gquery.Connection) -> None:
    with pytest.raises(gquery.InterfaceError, match="a statement is a str, not a"):
        db.sql(text)


def test_half_a_character_as_a_parameter(db: gquery.Connection) -> None:
    with pytest.raises(gquery.InterfaceError, match="a parameter holds no valid character"):
        db.sql("SELECT $1", ["a\udcff"])


@pytest.mark.faulty
def test_a_fault_says_what_to_report(db: gquery.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ValueError("the flux\ncapacitor")

    monkeypatch.setattr("gquery.planner.optimizer.optimize", broken)
    with pytest.raises(gquery.InternalError) as caught:
        db.sql("SELECT a FROM t")
    assert "This is a fault of gquery: ValueError: the flux capacitor (in " in str(caught.value)
    assert "Please report it" in str(caught.value)
    assert f"pyarrow {pa.__version__}" in str(caught.value)
    assert isinstance(caught.value.__cause__, ValueError)
    monkeypatch.undo()
    assert db.sql("SELECT count(*) FROM t").fetchall() == [(3,)], "the connection can be used on"


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (MemoryError("of NumPy"), gquery.OperationalError),
        (RecursionError(), gquery.NotSupportedError),
        (ModuleNotFoundError("No module named 'polars'", name="polars"), gquery.InterfaceError),
        (gquery.DataError("it is"), gquery.DataError),
    ],
)
def test_what_can_be_foreseen(raised: Exception, told: type[Exception]) -> None:
    with pytest.raises(told):
        _raising(raised)


@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_the_end_of_a_program_passes(raised: type[BaseException]) -> None:
    with pytest.raises(raised):
        _raising(raised())


@boundary
def _raising(error: BaseException) -> None:
    raise error


def test_a_library_that_is_not_there(db: gquery.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(gquery.InterfaceError, match="polars is not installed"):
        db.sql("SELECT 1").pl()
