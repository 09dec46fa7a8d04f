"""Calls that the host makes over whole columns: branches that are not taken raise nothing, memory is asked for first, an
interrupt ends them, and what they give is DuckDB's answer wherever they stand."""

from __future__ import annotations

import random
import threading
import time

import numpy as np
import pyarrow as pa
import pytest

import gquery
from benchmarks import functions
from gquery import tuning
from gquery.errors import ConversionError, DataError, InterruptError, OutOfMemoryError
from gquery.functions.registry import DOCS
from tests.support.harness import assert_error, assert_same
from tests.support.tuned import Tune

_TEXTS = ["", "a", "Ab c", "ÄÖß", "e\u0301x", "🇩🇪🇫🇷", "12", "-7.5", "2024-02-29", "x" * 40, None, "12", "%a_", "İK"]


def _tables(rows: int = 60) -> dict[str, pa.Table]:
    rng = random.Random(5)
    s = [rng.choice(_TEXTS) for _ in range(rows)]
    n = [None if rng.random() < 0.2 else rng.randint(-3, 12) for _ in range(rows)]
    plain = [f"{rng.choice('abcdeé')}{k}" for k in range(rows)]
    return {"t": pa.table({"id": range(rows), "s": s, "n": pa.array(n, pa.int64()), "p": plain})}


TABLES = _tables()
CALLS = (
    "upper(s) || lower(p), concat(s, n, p), concat_ws(p, s, n, NULL), concat_ws('-', s, p)",
    "reverse(s), repeat(s, n), lpad(s, n::INTEGER, '<é>'), rpad(p, 5, s || '*'), md5(s || p)",
    "replace(s, 'a', 'bb'), replace(p, 'a', s), trim(s, 'xa'), ltrim(p, s)",
    "TRY_CAST(s AS INTEGER), TRY_CAST(s AS DOUBLE), TRY_CAST(s AS DATE), TRY_CAST(s AS DECIMAL(5,2)), n::VARCHAR",
    "CASE WHEN n > 0 THEN chr((n + 64)::INTEGER) ELSE s END, CASE WHEN s = '12' THEN s::INTEGER END",
    "s LIKE p, s ILIKE 'İ%', s ILIKE 'i%', p LIKE '%' || n || '%', upper(substring(lower(p) || s, 2, 3))",
    "coalesce(TRY_CAST(s AS INTEGER), n, 0), TRY_CAST(s AS DATE) IS NULL AND upper(p) > 'C'",
    "strftime(make_date(2000 + n, 1, 1), '%y %a')",
)


@pytest.mark.parametrize("sql", CALLS)
def test_calls_over_columns(sql: str) -> None:
    assert_same(f"SELECT id, {sql} FROM t", TABLES)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT upper(s) u, count(*), min(lower(p)) FROM t GROUP BY u",
        "SELECT a.id, b.id FROM t a JOIN t b ON upper(a.p) = upper(b.p) AND a.s || b.p LIKE '%1%'",
        "SELECT a.id, b.id FROM t a LEFT JOIN t b ON a.n = b.n AND replace(a.p, 'a', b.p) <> upper(b.s)",
        "SELECT id FROM t WHERE regexp_matches(upper(s) || p, 'A') AND n > 1 ORDER BY lower(p), id",
        "SELECT min(s), max(s), min(p), max(upper(p)), min(s) FILTER (WHERE n > 3) FROM t",
    ],
)
def test_calls_anywhere_in_a_query(sql: str) -> None:
    assert_same(sql, TABLES)


def test_a_branch_that_is_not_taken_raises_nothing() -> None:
    assert_same(
        "SELECT CASE WHEN s IN ('12') THEN CAST(s AS INTEGER) WHEN p > 'c' THEN length(chr((n + 70)::INTEGER)) END FROM t"
        " WHERE n > 0",
        TABLES,
    )
    assert_same("SELECT count(*) FROM t WHERE s = '12' AND (CAST(s AS INTEGER) = 12 OR CAST(p AS INTEGER) = 1)", TABLES)
    assert_error(
        "SELECT CASE WHEN n IS NOT NULL THEN CAST(s AS INTEGER) END FROM t",
        TABLES,
        ConversionError,
        "could not convert",
    )
    assert_error("SELECT chr((n - 100)::INTEGER) FROM t", TABLES, DataError, "code point")
    assert_error("SELECT lpad(p, 9, '') FROM t", TABLES, DataError, "padding")


def test_long_text_asks_for_its_memory() -> None:
    texts = pa.table({"s": [f"{k:020d}" for k in range(20_000)]})
    with gquery.connect(device="cpu", memory_limit="8MB") as connection:
        connection.register("t", texts)
        for call in ("repeat(s, 200)", "lpad(s, 5000, 'x')", "replace(s, '0', repeat('y', 500))"):
            with pytest.raises(OutOfMemoryError, match="memory_limit"):
                connection.sql(f"SELECT {call} FROM t").fetchall()
        assert connection.sql("SELECT max(length(repeat(s, 2))) FROM t").fetchall() == [(40,)]


def test_an_interrupt_ends_calls() -> None:
    rows = 1_500_000
    table = pa.table({"n": np.arange(rows)})
    with gquery.connect(device="cpu") as connection:
        connection.register("t", table)
        timer = threading.Timer(0.3, connection.interrupt)
        timer.start()
        start = time.perf_counter()
        with pytest.raises(InterruptError):
            connection.sql(
                "SELECT sum(length(md5(n::VARCHAR) || md5('x' || n) || md5('y' || n) || md5('z' || n))) FROM t"
            ).fetchall()
        assert time.perf_counter() - start < 20
        timer.join()
        assert connection.sql("SELECT count(*) FROM t").fetchall() == [(rows,)]


def test_rows_of_several_chunks_keep_their_places() -> None:
    rows = 200_000
    numbers = np.arange(rows)
    table = pa.table({"n": numbers, "s": pa.array(numbers).cast(pa.string())})
    with gquery.connect(device="cpu") as connection:
        connection.register("t", table)
        made = connection.sql("SELECT n, s::BIGINT, n::VARCHAR, 'x' || s FROM t").to_arrow_table()
        assert made.column(1).equals(made.column(0)) and made.column(2).cast(pa.string()).equals(table.column("s"))
        assert made.column(3)[199_999].as_py() == "x199999"


def test_the_benchmark_has_every_function() -> None:
    names = {
        n
        for n, (m, _) in DOCS.items()
        if m.rpartition(".")[2] in ("strings", "new_strings", "regex", "dates", "date_names")
    }
    aliases = {
        "len", "char_length", "character_length", "octet_length", "ord", "prefix", "suffix", "instr", "position", "substr",
        "lcase", "ucase", "dayofmonth", "weekofyear", "weekday", "datepart", "datetrunc", "datediff",
    }  # fmt: skip
    measured = " ".join(sql for _, _, sql in functions.chosen(""))
    missing = [n for n in names - aliases if not n.startswith("_") and f"{n}(" not in measured]
    assert not missing


def test_the_benchmark_finds_the_same_answers() -> None:
    assert functions.run(300, 2, "", 1) == 0


@pytest.mark.parametrize("sizes", [(0, 50, 1), (50, 0, 400), (7, 7, 7), (0, 0, 0)], ids=str)
def test_chunks_of_text_of_any_length(sizes: tuple[int, int, int], tune: Tune) -> None:
    """How much text there will be is judged by the first chunks: what follows may be longer or shorter, or nothing."""
    tune(tuning.host_functions, chunk_rows=100)
    tune(tuning.host_functions, spare_bytes=1)
    ids = np.arange(1000)
    counts = np.array(sizes)[ids * 3 // 1000] + ids % 2 * (sizes[0] > 0)
    tables = {"t": pa.table({"id": ids, "n": counts, "s": [None if k % 7 == 3 else f"é{k}" for k in range(1000)]})}
    for sql in ("SELECT id, repeat(s, n) FROM t", "SELECT id, repeat(s || 'x', n) r, upper(s) FROM t WHERE id > 150"):
        assert_same(sql, tables, targets=("python",))


def test_dates_as_text() -> None:
    """Days are printed once where there are few: those at the ends of what Arrow prints, NULLs and slices among them."""
    for low, high in ((-719162, -719100), (2932800, 2932896), (-400, 400), (-719300, -719100), (2932800, 2933000)):
        days = np.random.default_rng(1).integers(low, high, 2000).astype(np.int32)
        null = np.arange(2000) % 5 == 2
        d, e = (pa.array(days, mask=mask).view(pa.date32()) for mask in (None, null))
        table = pa.table({"id": range(2000), "d": d, "e": e}).slice(3, 1900)
        assert_same(
            "SELECT id, d::VARCHAR, e::VARCHAR, concat(e, '.'), monthname(d), monthname(e::TIMESTAMP) FROM t",
            {"t": table},
            targets=("python",),
        )
