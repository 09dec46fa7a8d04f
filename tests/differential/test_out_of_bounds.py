"""A value that fails a check never becomes an index outside of what its bounds promised: the query raises, the process lives
and the connection answers. Tables of groups and joins are sized from bounds, before any row is looked at."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery.expression.types import Bounds
from gquery.kernels import arithmetic, checks
from gquery.kernels.targets import python
from gquery.operators import group
from tests.support.faults import break_primitives
from tests.support.harness import assert_error, assert_same
from tests.support.primitives import TARGETS, evaluate


def _table(rows: int) -> pa.Table:
    """Numbers of which the last do not fit once they are multiplied or cast."""
    s = np.arange(30_000 - rows, 30_000)
    return pa.table(
        {
            "s": pa.array(s, pa.int16()),
            "b": pa.array(s * 7, pa.int64()),
            "n": pa.array([None if v % 3 == 0 else int(v) * 7 for v in s], pa.int64()),
            "u": pa.array(s * 2, pa.uint16()),
            "f": pa.array(s * 7.25, pa.float64()),
            "m": pa.array([Decimal(int(v)) / 10 for v in s], pa.decimal128(7, 1)),
            "h": pa.array([Decimal(int(v)) * 10**20 for v in s], pa.decimal128(30, 0)),
            "d": pa.array([datetime.date(9000, 1, 1) + datetime.timedelta(int(v) % 9) for v in s], pa.date32()),
            "t": pa.array([str(v * 7) for v in s]),
            "w": pa.array([f"{v % 5 * 100}" for v in s]).dictionary_encode(),
        }
    )


SIZES = {"small": _table(40), "large": _table(30_000)}
KEYS = [
    "s * s",
    "s + s",
    "-(u::SMALLINT)",
    "CAST(b AS SMALLINT)",
    "CAST(n AS SMALLINT)",
    "CAST(n AS UTINYINT)",
    "CAST(f AS SMALLINT)",
    "CAST(m AS DECIMAL(4, 1))",
    "CAST(h AS SMALLINT)",
    "CAST(h AS DECIMAL(22, 0))",
    "(s * 1000000000000::BIGINT) * s",
    "d + (b * 10220)::INTEGER",
    "CAST(t AS SMALLINT)",
    "CAST(w AS UTINYINT)",
    "(s - 30000::SMALLINT)::UTINYINT",
]
STATEMENTS = [
    "SELECT {key}, count(*) FROM t GROUP BY 1",
    "SELECT DISTINCT {key} FROM t",
    "SELECT count(DISTINCT {key}) FROM t",
    "SELECT count(*) FROM t WHERE s IN (SELECT {key} FROM t)",
    "SELECT count(*) FROM t x, t y WHERE {key_x} = {key_y}",
]
"""How a key becomes an index: of groups, of distinct rows, of the build side of a semi-join and of a join."""


def _statement(form: str, key: str) -> str:
    columns = "s", "b", "n", "u", "f", "m", "h", "d", "t", "w"

    def of(table: str) -> str:
        words = key.replace("(", "( ").replace(")", " )").replace("::", " :: ").split()
        return " ".join(f"{table}.{w}" if w in columns else w for w in words)

    return form.format(key=key, key_x=of("x"), key_y=of("y"))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("form", range(len(STATEMENTS)))
def test_interpreted(form: int, size: str) -> None:
    for key in KEYS if size == "small" else KEYS[:4]:
        if form == 3 and key.startswith("d "):
            continue  # a number is no date
        assert_error(_statement(STATEMENTS[form], key), {"t": SIZES[size]}, gquery.DataError, targets=("python",))


@pytest.mark.parametrize("key", [KEYS[0], KEYS[3], KEYS[6], KEYS[8]])
def test_compiled(key: str) -> None:
    for form in STATEMENTS[:4]:
        for table in SIZES.values():
            assert_error(_statement(form, key), {"t": table}, gquery.DataError, targets=("cpu",))


def test_a_cast_that_may_fail_gives_null() -> None:
    tables = {"t": SIZES["large"].slice(0, 300).combine_chunks()}
    for key in ("b AS SMALLINT", "n AS UTINYINT", "f AS SMALLINT", "m AS DECIMAL(4, 1)", "h AS SMALLINT"):
        sql = f"SELECT TRY_CAST({key}), count(*), count(DISTINCT TRY_CAST({key})) FROM t GROUP BY 1"
        assert_same(sql, tables, targets=("python",))


def test_a_function_of_python_that_returns_no_date() -> None:
    @gquery.udf
    def far(b: int) -> datetime.date:
        return b * 1000000007  # type: ignore[return-value]

    for target in ("python", "cpu"):
        with gquery.connect(device=target) as connection:
            connection.sql("SET interpret_limit = 0")
            connection.register("t", SIZES["large"])
            connection.create_function("far", far.function)
            with pytest.raises(gquery.DataError, match="a function of Python"):
                connection.sql("SELECT far(b), count(*) FROM t GROUP BY 1").fetchall()
            assert connection.sql("SELECT count(*) FROM t").fetchall() == [(30_000,)]


@pytest.mark.parametrize("target", TARGETS)
def test_what_a_failed_check_returns(target: str) -> None:
    """The lower bound; 0 where there is none, which lies within every type's."""
    largest, wide = 2**63 - 1, 2**127 - 1
    found = evaluate(target, ["i64", "i128"], [(largest, wide), (-largest - 1, -wide - 1)], [
        ("range_i64(a, 5, 9, FAIL)", "i64", True),
        ("range_i128(b, 0, 5, 0, 9, FAIL)", "i128", True),
        ("mul_i64_checked(a, a, FAIL)", "i64", True),
        ("mul_i128_checked(b, b, FAIL)", "i128", True),
        ("add_i64_checked(a, a, FAIL)", "i64", True),
        ("add_i128_checked(b, b, FAIL)", "i128", True),
        ("i64_from_f64_checked(f64(a), -128, 127, FAIL)", "i64", True),
    ], failed=True)  # fmt: skip
    assert found == [[5, 5], [5, 5], [0, 0], [0, 0], [0, 0], [0, 0], [0, 0]]


# ---- the interpreter's own checks, which find such values in every other test ------------------------------------


def test_views_refuse_every_index_outside() -> None:
    view = checks.View(memoryview(bytearray(3)), "c0")
    view[2] = 7
    assert [view[0], view[2]] == [0, 7]
    for index in (-1, -3, 3, 2**40):
        with pytest.raises(checks.OutOfBoundsError, match="is read, and it has 3 elements"):
            view[index]
        with pytest.raises(checks.OutOfBoundsError, match="is written"):
            view[index] = 0


def test_text_is_read_from_its_own_buffer() -> None:
    buffer = np.frombuffer(b"abcdef", np.uint8)
    start = checks.span_of(int(buffer.ctypes.data), 4)
    assert [checks.string_at(start + 1, 3), checks.string_at(2 + start, 0), start + 3 - start] == [b"bcd", b"", 3]
    for address, size in ((start + 1, 4), (start - 1, 2), (start, -1), (int(start), -1), (start + 5 - 1, 1)):
        with pytest.raises(checks.OutOfBoundsError, match="are read"):
            checks.string_at(address, size)


@pytest.mark.faulty
@pytest.mark.parametrize("rows", [3, 30_000])
def test_a_broken_promise_is_seen(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As kernels run as they are, and with primitives inlined: a check that keeps a bad value, a wrong bound, a place before
    the first one."""
    assert checks.ENABLED
    tables = {"t": SIZES["large"].slice(0, rows).combine_chunks().append_column("one", pa.array([1] * rows))}

    def refused(sql: str) -> None:
        with (
            gquery.connect(device="python") as connection,
            pytest.raises(gquery.InternalError, match="OutOfBoundsError"),
        ):
            connection.register("t", tables["t"])
            connection.sql(sql).fetchall()

    with monkeypatch.context() as patch:
        break_primitives(patch, {"range_i64": lambda v, *_: v})
        refused("SELECT (-one)::UTINYINT FROM t")
        refused("SELECT (-one)::UTINYINT, count(*) FROM t GROUP BY 1")
    with monkeypatch.context() as patch:
        break_primitives(patch, {})
        patch.setattr(arithmetic, "interval_arithmetic", lambda *_: Bounds(0, 0))
        refused("SELECT one + 1 FROM t")
    with monkeypatch.context() as patch:
        stores = [name for name in python.primitives() if name.startswith("store_")]
        break_primitives(patch, {name: lambda pointer, i, v: pointer.__setitem__(i - 1, v) for name in stores})
        refused("SELECT one + 2 FROM t")


def test_columns_lie_as_kernels_know_them() -> None:
    """Of wide columns, too, of which the bounds ask for less; see `execution.verify_frame`."""
    few = SIZES["large"].slice(0, 50).combine_chunks().select(["s", "b", "n", "t", "w"])
    tables = {"t": few, "u": few.slice(20, 30).append_column("e", pa.array(range(30)))}
    for sql in (
        "SELECT * FROM t FULL JOIN u ON t.b = u.b",
        "SELECT t.s, u.n, u.w, e + 1 FROM t FULL JOIN u ON t.b = u.b AND t.s % 2 = 0 WHERE e IS NULL OR e > 3",
        "SELECT n FROM t UNION ALL SELECT e FROM u",
        "SELECT b, x.n FROM (SELECT b, n FROM t ORDER BY n, b LIMIT 9) x JOIN u USING (b)",
    ):
        assert_same(sql, tables, targets=("python",), settings={"narrow": "false"})
        assert_same(sql, tables, targets=("python",))


@pytest.mark.faulty
def test_a_column_that_breaks_its_promise_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever made it: here an array function, that of the groups of a sum."""
    monkeypatch.setattr(group, "finalize_aggregate", lambda plan, words, xp: (words[0] + 2**22, None))
    with gquery.connect(device="python") as connection:
        connection.register("t", SIZES["small"])
        with pytest.raises(gquery.InternalError, match="OutOfBoundsError: stage .* has values from"):
            connection.sql("SELECT s % 7, sum(u) FROM t GROUP BY 1").fetchall()
