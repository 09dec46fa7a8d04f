"""The oracle assertion: gquery's answer is DuckDB 1.5.5's, on every target and number of ranks.

    assert_same("SELECT a, sum(b) FROM t GROUP BY a", {"t": table})

compares values and types. The cpu and cuda targets run with ``interpret_limit = 0``, so that kernels answer and not the
interpreter. One deviation is meant: sums of integers are BIGINT, HUGEINT in DuckDB. ``GQUERY_TARGETS=cuda`` runs all that
name no target on others, where there is a GPU.
"""

from __future__ import annotations

import itertools
import math
import os
import sys
from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from functools import cache
from operator import eq
from types import ModuleType
from typing import Any
from unittest import mock
from zlib import crc32
from zoneinfo import ZoneInfo

import duckdb
import pyarrow as pa

import gquery
from gquery import tuning
from gquery.device.device import available_devices

Tables = Mapping[str, pa.Table]
Row = tuple[Any, ...]
TARGETS = tuple(os.environ.get("GQUERY_TARGETS", "python,cpu").split(","))
RANKS = (1, 3)
ALL_RANKS = os.environ.get("GQUERY_RANKS") == "all"
_DRAFTS = {"interpret_limit": str(2**40)}  # no kernel is worth more than a draft
_KEEP = 12  # connections with registered tables that are kept for the next assertion
_connections: OrderedDict[tuple[str, int, int, tuple[tuple[str, str], ...]], tuple[Any, Tables]] = OrderedDict()
_oracles: OrderedDict[int, tuple[Any, Tables]] = OrderedDict()
_numbers = itertools.count()


def connect(target: str, ranks: int, tables: Tables, settings: Mapping[str, str] | None = None) -> gquery.Connection:
    """A connection with the tables registered; kept, as many assertions share their tables and settings."""
    options = tuple(sorted((settings or {}).items()))
    key = (target, ranks, id(tables), options)
    if key not in _connections:
        connection = gquery.connect(device=target, devices=devices_of(target, ranks))
        if target != "python":
            connection.sql("SET interpret_limit = 0")
        for name, value in options:
            connection.sql(f"SET {name} = '{value}'")
        for name, table in tables.items():
            connection.register(name, table)
        _connections[key] = (connection, tables)
        _trim(_connections)
    _connections.move_to_end(key)
    found: gquery.Connection = _connections[key][0]
    return found


def devices_of(target: str, ranks: int) -> int | list[int] | None:
    """The devices of so many ranks; GPUs have several where there are few."""
    if ranks == 1:
        return None
    gpus = sum(d.is_cuda for d in available_devices()) if target == "cuda" else 0
    return [n % gpus for n in range(ranks)] if gpus else ranks


def oracle(tables: Tables) -> duckdb.DuckDBPyConnection:
    """A DuckDB connection with the tables."""
    if id(tables) not in _oracles:
        connection = _database().cursor()
        schema = f"tables_{next(_numbers)}"
        connection.execute(f"CREATE SCHEMA {schema}")
        connection.execute(f"USE {schema}")
        for name, table in tables.items():
            connection.register("registered", table)
            connection.execute(f'CREATE TABLE "{name}" AS FROM registered')
            connection.unregister("registered")
        _oracles[id(tables)] = (connection, tables)
        while len(_oracles) > _KEEP:
            old = _oracles.popitem(last=False)[1][0]
            old.execute("USE main; DROP SCHEMA " + old.execute("SELECT current_schema()").fetchall()[0][0] + " CASCADE")
            old.close()
    found: duckdb.DuckDBPyConnection = _oracles[id(tables)][0]
    return found


@cache
def _database() -> duckdb.DuckDBPyConnection:
    """The one that oracles have a schema in each: to open another takes 11 ms."""
    database = duckdb.connect(config={"threads": 1})
    database.execute("SET GLOBAL TimeZone = 'UTC'")
    # DuckDB 1.5.5 answers wrongly with them: the first drops rows below ORDER BY ... LIMIT, before it picks those with the
    # keys of a join above; the second takes copies of a subplan with a condition like c = c for different things
    database.execute("SET disabled_optimizers = 'join_filter_pushdown, common_subplan'")
    zones = ModuleType("pytz")  # which DuckDB asks for the zone of a moment, and keeps: Python's zones do here
    vars(zones)["timezone"] = _Zone
    with mock.patch.dict(sys.modules, {"pytz": zones}):
        database.execute("SELECT now()").fetchall()
    return database


class _Zone(ZoneInfo):
    """A zone with the one method of pytz that DuckDB calls."""

    def localize(self, at: datetime) -> datetime:
        return at.replace(tzinfo=self)


def _trim(kept: OrderedDict[Any, tuple[Any, Tables]]) -> None:
    while len(kept) > _KEEP:
        kept.popitem(last=False)[1][0].close()


def expect(sql: str, tables: Tables) -> tuple[list[str], list[Row]]:
    """DuckDB's types and rows."""
    cursor = oracle(tables).execute(sql)
    types = [str(column[1]) for column in cursor.description or ()]
    return types, cursor.fetchall()


def assert_same(
    sql: str,
    tables: Tables,
    ordered: bool = False,
    targets: Sequence[str] = TARGETS,
    ranks: Sequence[int] = RANKS,
    settings: Mapping[str, str] | None = None,
) -> None:
    """gquery gives DuckDB's types and rows; in DuckDB's order if ``ordered``. Where no ranks are named, the statement is
    interpreted on one number of ranks and compiled on the other, which its text decides: a plan of each is run, and by each
    target. `make ranks` takes all. On a CPU half of the statements, by their text too, run drafts of their kernels, a sixth of
    the compiler's work; those with settings of their own run kernels proper."""
    types, want = expect(sql, tables)
    is_named = ALL_RANKS or ranks is not RANKS
    turn = crc32(sql.encode())
    for target in targets:
        for count in ranks if is_named else (ranks[(turn + (target == "python")) % len(ranks)],):
            drafts = target == "cpu" and settings is None and not ALL_RANKS and turn % 256 < 128
            where = f"{target}, {count} rank{'s' if count > 1 else ''}{', drafts' if drafts else ''}"
            connection = connect(target, count, tables, _DRAFTS if drafts else settings)
            with tuning.using(replace(tuning.interpreting, draft_limits=0.0)) if drafts else nullcontext():
                result = connection.sql(sql)
                got_types = [str(t) for t in result.types]
                assert _types_agree(got_types, types), f"[{where}] types {got_types}, expected {types}\n{sql}"
                wrong = compare(result.fetchall(), want, ordered, types)
            assert wrong is None, f"[{where}] {wrong}\n{sql}"


def assert_error(
    sql: str,
    tables: Tables,
    error: type[Exception],
    match: str = "",
    targets: Sequence[str] = TARGETS,
    ranks: Sequence[int] = RANKS,
) -> str:
    """The query raises this error, whose text holds ``match``, and the connection stays usable. Returns the text."""
    text = ""
    for target in targets:
        for count in ranks:
            connection = connect(target, count, tables)
            try:
                connection.sql(sql).fetchall()
            except error as raised:
                text = str(raised)
            else:
                raise AssertionError(f"[{target}, {count}] no {error.__name__}\n{sql}")
            assert match.lower() in text.lower(), f"[{target}, {count}] {match!r} is not in: {text}\n{sql}"
            assert connection.sql("SELECT 1").fetchall() == [(1,)]
    return text


def _types_agree(got: Sequence[str], want: Sequence[str]) -> bool:
    return [w if w != "HUGEINT" else "BIGINT" for w in want] == list(got)


def compare(got: Sequence[Row], want: Sequence[Row], ordered: bool, types: Sequence[str]) -> str | None:
    """The first difference, in a line; None if there is none."""
    tolerances = [1e-6 if t == "FLOAT" else 1e-9 for t in types]
    if len(got) != len(want):
        return f"{len(got)} rows, expected {len(want)}: {_some(got)} against {_some(want)}"
    if _are_written_alike(got, want, ordered):
        return None
    digits = [6 if t == "FLOAT" else 9 for t in types]
    if _are_written_alike(_rounded(got, digits), _rounded(want, digits), ordered):
        return None
    if not ordered:
        return _unpaired(sorted(got, key=_sort_key), sorted(want, key=_sort_key), tolerances)
    for number, (g, w) in enumerate(zip(got, want, strict=True)):
        if not _are_same(g, w, tolerances):
            return f"row {number}: {g}, expected {w}"
    return None


def _are_same(a: Row, b: Row, tolerances: Sequence[float]) -> bool:
    return len(a) == len(b) and all(same(x, y, t) for x, y, t in zip(a, b, tolerances, strict=True))


def _unpaired(got: Sequence[Row], want: Sequence[Row], tolerances: Sequence[float]) -> str | None:
    """The first of sorted rows that is none of the others, in a line. Rows that differ in floats alone are paired in any order:
    the digits that tell two of them apart need not be those that they are sorted by."""
    left: deque[Row] = deque()  # with the exact values of the row at hand
    at = 0
    for number, row in enumerate(got):
        exact = _sort_key(row)[:2]
        while at < len(want) and (not left or _sort_key(want[at])[:2] == exact):
            left.append(want[at])
            at += 1
        found = next((n for n, other in enumerate(left) if _are_same(row, other, tolerances)), None)
        if found is None:
            return f"row {number}: {row}, expected {left[0]}"
        del left[found]
    return None


def _are_written_alike(got: Sequence[Row], want: Sequence[Row], ordered: bool) -> bool:
    """Whether rows are the same to the last bit: most are, and that takes a tenth of the time of comparing value by value."""
    a, b = map(repr, got), map(repr, want)
    return all(map(eq, a, b)) if ordered else sorted(a) == sorted(b)


def _rounded(rows: Sequence[Row], digits: Sequence[int]) -> list[Row]:
    """Rows with floats as texts of one digit more than has to agree: two that are the same are within the tolerance. Few that
    differ in their last bits are rounded apart; these are compared value by value."""

    def written(values: Sequence[Any], n: int) -> Sequence[Any]:
        return [f"\0{v:.{n}e}" if type(v) is float else v for v in values] if float in set(map(type, values)) else values

    columns = zip(*rows, strict=True)
    return list(zip(*(written(values, n + 1) for values, n in zip(columns, digits, strict=True)), strict=True))


def _some(rows: Sequence[Row]) -> str:
    return f"{list(rows[:5])}{' ...' if len(rows) > 5 else ''}"


def same(a: Any, b: Any, tolerance: float) -> bool:
    """Equal values of one Python type; floats within the tolerance, NaN equal to NaN."""
    if isinstance(a, float) and isinstance(b, float):
        if math.isnan(a) or math.isnan(b) or math.isinf(a) or math.isinf(b):
            return a == b or (math.isnan(a) and math.isnan(b))
        return abs(a - b) <= tolerance * max(abs(a), abs(b), 1e-300)
    if isinstance(a, list | tuple) and type(a) is type(b):
        return len(a) == len(b) and all(same(x, y, tolerance) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(same(a[k], b[k], tolerance) for k in a)
    return type(a) is type(b) and bool(a == b)


def _sort_key(row: Row) -> tuple[Any, ...]:
    """Exact values first, so that floats that differ in the last bits do not decide the order; NULL before values."""
    exact = tuple((v is not None, _comparable(v)) for v in row if not isinstance(v, float))
    floats = tuple(f"{v:.5e}" for v in row if isinstance(v, float))
    kinds = tuple(isinstance(v, float) for v in row)
    return exact, kinds, floats


def _comparable(value: Any) -> Any:
    match value:
        case None:
            return (0, 0)
        case bool() | int() | Decimal():
            return (1, value)
        case str():
            return (2, value)
        case _:
            return (3, str(value))
