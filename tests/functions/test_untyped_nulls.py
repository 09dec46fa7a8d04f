"""An untyped NULL as an argument: DuckDB's value and type, or an error in both.

The cases (`untyped_nulls`) are made of what gquery declares, so that a new function is among them by itself. What is left is
listed by its reason, and documented.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import pytest

import gquery
from tests import duckdb_overloads
from tests.functions import untyped_nulls as cases

# a pattern, and why what it means differs: docs/reference/duckdb.md
KNOWN = (
    r"hash\(.*",  # its values are gquery's own
    r"(nvl|logical_(and|or)|geomean|geometric_mean|count_star|json_group_(array|object))\(.*",  # no aggregates there, or macros
    r"ifnull\(NULL(, NULL, NULL.*)?\)",  # any number of arguments
    r"factorial\(NULL\)",  # a DECIMAL for HUGEINT
    r"timezone\((NULL|s|'.*'), NULL\)|.*NULL.* AT TIME ZONE .*|'a' AT TIME ZONE NULL",  # times with a zone, zones of columns
    r"regexp_(extract|extract_all|full_match|matches)\((NULL, NULL, NULL(, NULL)?|.*\bs\b.*)\)",  # constants are asked for there
    r"(try_)?strptime\(NULL, l?s\)",  # formats that are columns
    r"(j|bl)\[.*", r"\(NULL\)\[b:b\]",  # [] of JSON and BLOB; places that are truth values
    r".*[ {\[,](bl|iv)\b.*",  # in lists, structs and maps
    r"\[(NULL, j|j, NULL)\]",  # texts of JSON in a list are quoted
    r"approx_top_k\(NULL, (NULL|i8)\)|histogram(_exact)?\(NULL, NULL\)|histogram_exact\(NULL, .*",  # what is no constant
    r"(entropy|mad)\(NULL\) OVER \(ORDER BY i.*",  # over parts of partitions
    r"(lag|lead)\(NULL, 1, 0\) OVER .*",  # refused there
)


def answer(engine: Any, sql: str, parameters: list[None] | None = None) -> Any:
    """The rows, in an order, as text; None for an error."""
    try:
        rows = engine.sql(sql, *([] if parameters is None else [parameters])).fetchall()
    except gquery.InternalError as error:
        raise AssertionError(sql) from error
    except (gquery.Error, duckdb.Error):
        return None
    return re.sub(r"U?HUGEINT", "BIGINT", str(sorted(map(str, rows))))


def value(e: str) -> str:
    return f"SELECT CAST({e} AS VARCHAR), typeof({e}) FROM t"


def aggregate(e: str) -> str:
    return f"SELECT CAST(v AS VARCHAR), typeof(v) FROM (SELECT {e} AS v FROM t)"


def statement(sql: str) -> str:
    return sql


@pytest.fixture(scope="module")
def engines() -> Iterator[tuple[Any, Any]]:
    with gquery.connect(device="python") as mine, duckdb.connect(config={"threads": 1}) as theirs:
        theirs.execute("SET TimeZone = 'UTC'")
        mine.execute(cases.TABLE)
        theirs.execute(cases.TABLE)
        yield mine, theirs


def test_signatures_are_those_of_duckdb() -> None:
    """What ``python -m tests.duckdb_overloads`` writes."""
    assert duckdb_overloads.text() == duckdb_overloads.FILE.read_text()


@pytest.mark.parametrize("made", [cases.scalars, cases.operators])
def test_parameters_are_as_constants(made: Callable[[], Iterator[str]], engines: tuple[Any, Any]) -> None:
    """``?`` bound to None, in a share of the cases."""
    mine, _ = engines
    found = [c for c in dict.fromkeys(made()) if "AT TIME ZONE" not in c][::13]
    assert len(found) > 150
    for case in found:
        sql = value(case)
        with_parameters = re.sub(r"(?<!IS )(?<!NOT )\bNULL\b(?!::|\[)", "?", sql)
        got = answer(mine, with_parameters, [None] * with_parameters.count("?"))
        assert got == answer(mine, sql), case


@pytest.mark.parametrize("count", [1, 2, 3])
def test_none_in_frames_is_as_in_sql(count: int, engines: tuple[Any, Any]) -> None:
    mine, _ = engines
    frame = mine.sql("SELECT 1 AS i")
    found = 0
    names = {*duckdb_overloads.public_names()} & {*dir(gquery.fn)} - {"position"}  # which SQL has a form for
    for name in sorted(names):
        want = answer(mine, f"SELECT typeof({name}({', '.join(['NULL'] * count)}))")
        try:
            made = getattr(gquery.fn, name)(*[gquery.lit(None)] * count)
            got = str([str(row) for row in frame.select(gquery.fn.typeof(made)).fetchall()])
        except gquery.Error:
            got = None
        assert got == want, name
        found += got is not None
    assert found > 50


def test_columns_of_no_type_in_joins_and_groups(engines: tuple[Any, Any]) -> None:
    nothing = "(SELECT NULL AS x UNION ALL SELECT NULL)"
    for sql in (
        f"SELECT a.x FROM {nothing} a JOIN {nothing} b ON a.x = b.x",
        f"SELECT a.x FROM {nothing} a JOIN {nothing} b ON a.x IS NOT DISTINCT FROM b.x",
        f"SELECT x, count(*) FROM {nothing} GROUP BY x",
        f"SELECT DISTINCT x FROM {nothing}",
        f"SELECT x FROM {nothing} ORDER BY x LIMIT 1",
        f"SELECT i FROM t WHERE i NOT IN (SELECT x FROM {nothing})",
        f"SELECT count(*) OVER (PARTITION BY x) FROM {nothing}",
        f"SELECT x FROM {nothing} UNION SELECT 'a'",
        f"SELECT i FROM t LEFT JOIN {nothing} u ON t.i = u.x",
        "SELECT x || 'a', list_sort(x), 1 + x FROM (SELECT i, min(NULL) AS x FROM t GROUP BY i)",
        "SELECT min(NULL) FROM t WHERE FALSE",
        "SELECT count(*) FROM t HAVING min(NULL)",
        "SELECT CAST(min(i, 2) AS VARCHAR), CAST(arg_max(i, NULL, 2) AS VARCHAR) FROM t WHERE FALSE",
        "SELECT json_object(s, NULL, s, 1), json_object('a', i) FROM t",
        "SELECT [1] + [2], l + NULL, NULL + l, [i] + l FROM t",
        "SELECT regexp_extract(s, 'a', NULL), regexp_extract(s, NULL, NULL) FROM t",
    ):
        got, want = (answer(e, sql) for e in engines)
        assert got == want is not None, sql


SWEEPS = [
    (cases.scalars, value, 3000), (cases.operators, value, 2000), (cases.forms, value, 1000), (cases.aggregates, aggregate, 1000),
    (cases.windows, aggregate, 100), (cases.statements, statement, 300),
]  # fmt: skip


@pytest.mark.parametrize("share", [8, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("made", "asked", "least"), SWEEPS, ids=[s[0].__name__ for s in SWEEPS])
def test_null_is_what_it_is_in_duckdb(
    made: Callable[[], Iterator[str]], asked: Callable[[str], str], least: int, share: int, engines: tuple[Any, Any]
) -> None:
    found = list(dict.fromkeys(made()))
    assert len(found) >= least
    wrong = []
    for case in found[::share]:
        got, want = (answer(e, asked(case)) for e in engines)
        if got != want and not any(re.fullmatch(k, case) for k in KNOWN):
            wrong.append(f"{case}: {got}, in DuckDB {want}")
    assert not wrong, "\n".join(wrong)
