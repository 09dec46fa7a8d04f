"""Every operator, function and cast at the edges of its types: the cases, and how one is compared with DuckDB.

A `Case` is an expression over columns ``a``, ``b``, ``c`` of given types. Its rows are all combinations of the types'
edge values. DuckDB says for each row what it is worth, or that it raises; gquery has to give the same values over the
rows that have one, and an error on each of the others, with columns and with constants.
"""

from __future__ import annotations

import itertools
import math
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa

import gquery

EDGES: dict[str, tuple[str, ...]] = {
    "BOOLEAN": ("true", "false"),
    "TINYINT": ("0", "1", "-1", "7", "100", "127", "-128"),
    "SMALLINT": ("0", "1", "-1", "255", "32767", "-32768"),
    "INTEGER": ("0", "1", "-1", "2", "46341", "2147483647", "-2147483648"),
    "BIGINT": ("0", "1", "-1", "3", "3037000500", "9007199254740993", "9223372036854775807", "-9223372036854775808"),
    "UTINYINT": ("0", "1", "200", "255"),
    "USMALLINT": ("0", "1", "65535"),
    "UINTEGER": ("0", "1", "4294967295"),
    "UBIGINT": ("0", "1", "9223372036854775807", "9223372036854775808", "18446744073709551615"),
    "DECIMAL(4,1)": ("0", "0.5", "-0.5", "1.5", "-2.5", "999.9", "-999.9"),
    "DECIMAL(3,3)": ("0", "0.5", "-0.001", "0.999"),
    "DECIMAL(18,3)": ("0", "0.001", "-1.500", "2.5", "999999999999999.999", "-999999999999999.999"),
    "DECIMAL(38,0)": ("0", "1", "-7", "9223372036854775808", "9" * 38, "-" + "9" * 38),
    "DECIMAL(38,10)": ("0", "0.5", "-1.4999999999", "123456789.0123456789", "9" * 28 + "." + "9" * 10),
    "FLOAT": ("0", "-0.0", "1", "-1.5", "0.1", "2.5", "16777217", "3.4e38", "1e-45", "inf", "-inf", "nan"),
    "DOUBLE": (
        "0", "-0.0", "1", "-1", "0.5", "-2.5", "0.1", "1e15", "9007199254740993", "9.3e18", "1e300", "-1e300", "5e-324",
        "inf", "-inf", "nan",
    ),
    "DATE": (
        "1970-01-01", "1969-12-31", "2000-02-29", "1900-03-01", "2024-12-31", "0001-01-01", "0001-12-31 (BC)",
        "0101-02-28 (BC)", "9999-12-31", "10000-01-01", "294247-01-10", "5881580-07-10", "5877642-06-25 (BC)",
    ),
    "TIMESTAMP": (
        "1970-01-01 00:00:00", "1969-12-31 23:59:59.999999", "2000-02-29 12:34:56.789", "2024-12-31 23:59:59.5",
        "0001-01-01 00:00:00.000001", "0001-12-31 (BC) 01:02:03", "10000-01-01 00:00:00",
        "294247-01-10 04:00:54.775806", "290309-12-22 (BC) 00:00:00",
    ),
    "VARCHAR": (
        "", " ", "a", "Ab c", "äöü ß", "日本語", "e\u0301", "😀x", "12", "-7.5", "1e3", "0x1F", "true", "2000-02-29",
        "2000-02-29 10:00:00", "aXbXc", "%_", "'",
    ),
}  # fmt: skip
INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")
DECIMALS = ("DECIMAL(4,1)", "DECIMAL(3,3)", "DECIMAL(18,3)", "DECIMAL(38,0)", "DECIMAL(38,10)")
FLOATS = ("FLOAT", "DOUBLE")
NUMBERS = (*INTEGERS, *DECIMALS, *FLOATS)
TEMPORALS = ("DATE", "TIMESTAMP")
COUNTS = ("0", "1", "-1", "2", "-3", "100", "9223372036854775807", "-9223372036854775808")


@dataclass(frozen=True)
class Case:
    """An expression over columns of types; ``given`` are values in place of a type's edges."""

    sql: str
    types: tuple[str, ...]
    given: tuple[tuple[str, ...], ...] = ()

    def __str__(self) -> str:
        return f"{self.sql} [{', '.join(self.types)}]"


ARITHMETIC = tuple(f"a {op} b" for op in ("+", "-", "*", "/", "//", "%"))
COMPARISONS = tuple(f"a {op} b" for op in ("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"))
CONDITIONAL = (
    "coalesce(a, b)", "nullif(a, b)", "greatest(a, b)", "least(a, b)", "if(a IS NULL, b, a)", "CASE WHEN a < b THEN a ELSE b END",
    "a BETWEEN b AND b",
)  # fmt: skip
ROUNDING = (
    "-a", "abs(a)", "sign(a)", "floor(a)", "ceil(a)", "round(a)", "trunc(a)",
    *(f"{f}(a, {n})" for f in ("round", "trunc") for n in (-20, -2, -1, 0, 1, 2, 5, 20)),
)  # fmt: skip
REAL_FUNCTIONS = (
    "sqrt", "cbrt", "ln", "log10", "log", "log2", "exp", "sin", "cos", "tan", "cot", "asin", "acos", "atan", "degrees",
    "radians", "isnan", "isinf", "isfinite", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "gamma", "lgamma", "signbit",
)  # fmt: skip
PARTS = (
    "year", "month", "day", "quarter", "week", "dayofweek", "isodow", "dayofyear", "decade", "century", "hour", "minute",
    "second", "millisecond", "microsecond", "epoch", "epoch_ms", "epoch_us", "julian", "nanosecond", "isinf",
)  # fmt: skip
UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond")
INTERVALS = (
    "1 DAY",
    "1 MONTH",
    "13 MONTH",
    "1 YEAR",
    "300000 YEAR",
    "1 MICROSECOND",
    "36 HOUR",
    "6000000 YEAR",
    "3 WEEK",
)
FORMATS = (
    "%Y-%m-%d %H:%M:%S", "%a %A %w %u", "%b %B %-m %-d %y %-y", "%I %p %-H %-I %-M %-S", "%f %g %n", "%j %-j %U %W %V %G",
    "%z|%Z|%%", "%c|%x|%X", "a", "",
)  # fmt: skip
TEXT_UNARY = (
    "length",
    "strlen",
    "ascii",
    "unicode",
    "ord",
    "lower",
    "upper",
    "reverse",
    "trim",
    "ltrim",
    "rtrim",
    "md5",
)
TEXT_BINARY = (
    "contains(a, b)", "starts_with(a, b)", "ends_with(a, b)", "strpos(a, b)", "a || b", "concat(a, b)", "concat_ws('-', a, b)",
    "replace(a, b, 'z')", "trim(a, b)", "ltrim(a, b)", "rtrim(a, b)", "a LIKE b", "a ILIKE b", "a LIKE '%X%'", "a GLOB b",
)  # fmt: skip
AGGREGATES = (
    "count(a)",
    "sum(a)",
    "avg(a)",
    "min(a)",
    "max(a)",
    "any_value(a)",
    "count(DISTINCT a)",
    "bool_and(a)",
    "bool_or(a)",
)


def cases() -> Iterator[Case]:
    """All cases. The same ones in the same order at each call."""
    for source, target in itertools.product(EDGES, EDGES):
        yield Case(f"CAST(a AS {target})", (source,))
        yield Case(f"TRY_CAST(a AS {target})", (source,))
    for x, y in itertools.product(NUMBERS, NUMBERS):
        yield from (Case(sql, (x, y)) for sql in ARITHMETIC)
    for x, y in itertools.product(EDGES, EDGES):
        if (x in TEMPORALS) == (y in TEMPORALS) or "VARCHAR" in (x, y):  # a date and a number do not compare
            yield from (Case(sql, (x, y)) for sql in (*COMPARISONS, *CONDITIONAL))
    for x in NUMBERS:
        yield from (Case(sql, (x,)) for sql in ROUNDING)
        yield from (Case(f"{f}(a)", (x,)) for f in REAL_FUNCTIONS)
    for x, y in itertools.product((*FLOATS, "INTEGER", "UBIGINT", "DECIMAL(18,3)"), repeat=2):
        yield from (
            Case(sql, (x, y))
            for sql in ("pow(a, b)", "a ** b", "atan2(a, b)", "log(a, b)", "fmod(a, b)", "mod(a, b)", "nextafter(a, b)")
        )
    for x, y in itertools.product(INTEGERS, INTEGERS):
        yield from (Case(sql, (x, y)) for sql in ("a & b", "a | b", "xor(a, b)", "a << b", "a >> b"))
    yield from (Case(sql, (x,)) for x in INTEGERS for sql in ("bit_count(a)", "factorial(a)"))
    yield from (Case(f"round_even(a, {n})", (x,)) for x in NUMBERS for n in (-1, 0, 1))
    yield from _temporal()
    yield from _text()
    for x in EDGES:
        yield from (Case(sql, (x,)) for sql in AGGREGATES)


def _temporal() -> Iterator[Case]:
    for x in TEMPORALS:
        yield from (Case(f"{part}(a)", (x,)) for part in PARTS)
        yield from (
            Case(f"date_trunc('{unit}', a)", (x,)) for unit in (*UNITS, "decade", "century", "yearweek", "doy", "epoch")
        )
        yield from (Case(f"{f}(a)", (x,)) for f in ("last_day", "dayname", "monthname", "isfinite"))
        yield from (Case(f"a {op} INTERVAL {i}", (x,)) for op in "+-" for i in INTERVALS)
        yield from (Case(f"strftime(a, '{f}')", (x,)) for f in FORMATS)
        for y in TEMPORALS:
            yield from (Case(f"date_diff('{unit}', a, b)", (x, y)) for unit in (*UNITS, "decade", "century"))
            near = tuple(tuple(v for v in EDGES[t] if not v.startswith("58")) for t in (x, y))  # that are TIMESTAMPs
            yield from (Case(f"date_sub('{unit}', a, b)", (x, y), near) for unit in (*UNITS, "decade", "century"))
        yield from (Case(f"a {op} b", (x, y)) for op in "+-" for y in (*TEMPORALS, "INTEGER", "TINYINT", "BIGINT"))
    years, small = (
        ("0", "1", "-1", "2000", "1900", "9999", "10000", "5881580", "9223372036854775807"),
        ("0", "1", "2", "12", "29", "32", "-1"),
    )
    yield Case("make_date(a, b, c)", ("BIGINT", "BIGINT", "BIGINT"), (years, small, small))
    seconds = ("0", "59.9999996", "60.5", "61", "-0.5", "-1", "1e18", "nan", "inf")
    yield Case(
        "make_timestamp(2020, 2, 29, a, b, c)",
        ("BIGINT", "BIGINT", "DOUBLE"),
        (("0", "23", "24", "25", "-1"), ("0", "59", "60", "-1"), seconds),
    )
    yield Case(
        "make_timestamp(a, 1, 10, 4, 0, b)",
        ("BIGINT", "DOUBLE"),
        (("294247", "-290307", "0"), ("0", "54.7758")),
    )
    yield from (
        Case(f"{f}(a)", ("BIGINT",), (COUNTS[:-1],)) for f in ("make_timestamp_ms", "epoch_ms", "make_timestamp")
    )
    yield Case("make_date(a)", ("INTEGER",), (("0", "-1", "20000", "2147483646", "-2147483646"),))


def _text() -> Iterator[Case]:
    yield from (Case(f"{f}(a)", ("VARCHAR",)) for f in TEXT_UNARY)
    yield from (Case(sql, ("VARCHAR", "VARCHAR")) for sql in TEXT_BINARY)
    some = ("", "a", "äöü ß", "日本語", "😀x", "e\u0301b", "a b c d")
    for sql in ("left(a, b)", "right(a, b)", "substring(a, b)"):
        yield Case(sql, ("VARCHAR", "BIGINT"), (some, COUNTS))
    yield Case("substring(a, b, c)", ("VARCHAR", "BIGINT", "BIGINT"), (some, COUNTS, COUNTS))
    yield Case("repeat(a, b)", ("VARCHAR", "BIGINT"), (some, ("0", "1", "-1", "3")))
    few = ("0", "1", "-1", "5")
    yield from (
        Case(sql, ("VARCHAR", "BIGINT", "VARCHAR"), (some, few, ("", "x", "äß")))
        for sql in ("lpad(a, b::INT, c)", "rpad(a, b::INT, c)")
    )
    yield Case("chr(a)", ("INTEGER",), (("0", "-1", "65", "255", "1114111", "1114112", "55296", "128512"),))
    yield from (Case(sql, ("BIGINT",), (COUNTS,)) for sql in ("a::VARCHAR || 'x'", "concat(a, NULL, 1.50, true)"))


# ---- what DuckDB says ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Expected:
    """DuckDB's answer: by row the value, ``RAISES`` where it raises; None where it refuses the expression."""

    dtype: str
    values: tuple[Any, ...]


# What differs on purpose, by expression, types and arguments as text: see docs/reference/values.md.
KNOWN = (  # the first: true is .001 there
    r"(TRY_)?CAST\(a AS DECIMAL\(3,3\)\) \[BOOLEAN\]|\[(BOOLEAN, DECIMAL\(3,3\)|DECIMAL\(3,3\), BOOLEAN)\]",
    r"round\(a, -\d+\) \[[A-Z]*INT(EGER)?\]: .*(raises, DuckDB|92233)",  # the nearest multiple does not fit: it wraps there
    r"round\(a, -\d+\) \[DECIMAL\(38.*raises, DuckDB Decimal\('-?10+'\)",  # a digit more than the type has
    r"(round|trunc)\(a, -\d+\) \[DECIMAL.*NULL gives? None, DuckDB Decimal\('0'\)",
    r"round_even\(a, -1\) \[([A-Z]*INT(EGER)?|DECIMAL).*(raises|gives None), DuckDB",  # as round does
    r"-a \[U[A-Z]*INT(EGER)?\]: .* raises, DuckDB \d+",  # wraps there
    r"sum\(a\) \[(U?BIGINT|DECIMAL\(38,10\))\]: gives an error",
    r"(left|right|substring)\(.*DuckDB (raises|an error)",  # counts beyond 32 bits
    r"week\(a\) .* 5877642-06-25",
    r"date_diff\('(milli|micro)second', a, b\) \[DATE, DATE\].* 58\d+-",
    r"a [+-] b \[DATE, .*raises, DuckDB -2147483648",  # wraps there
    r"(a .*b|nullif\(a, b\)) \[(DATE, TIMESTAMP|TIMESTAMP, DATE)\].* 58\d+-.*, DuckDB an error",  # no TIMESTAMP there
    r"strftime\(.* 5877642-06-25 \(BC\).* DuckDB (raises|an error)",
)
REFUSED = (
    r"^a (<<|>>) b \[(UBIGINT, [B-T][A-Z]*|[B-T][A-Z]*, UBIGINT)\]",  # HUGEINT
    r"^bit_count\(a\) \[UBIGINT",
    r"avg\(a\) \[(DATE|TIMESTAMP|BOOLEAN|VARCHAR)",
    r"IS (NOT )?DISTINCT FROM",  # of types without a common one DuckDB raises where a row comes that is not NULL
    r"a - b \[(DATE, TIMESTAMP|TIMESTAMP, DATE|TIMESTAMP, TIMESTAMP)\]",  # an INTERVAL
)


class _Raises:
    def __repr__(self) -> str:
        return "an error"


RAISES = _Raises()


@cache
def oracle() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})


@cache
def column(dtype: str, values: tuple[str, ...] | None = None) -> pa.Array:
    """The edge values of a type and NULL."""
    texts = pa.table({"s": [*(values if values is not None else EDGES[dtype]), None]})
    oracle().register("texts", texts)
    return oracle().sql(f"SELECT CAST(s AS {dtype}) AS v FROM texts").to_arrow_table()["v"].combine_chunks()


@cache
def rows(types: tuple[str, ...], given: tuple[tuple[str, ...], ...] = ()) -> pa.Table:
    """All combinations of the edges of types as columns a, b, c; ``i`` counts the rows."""
    arrays = [column(t, given[k] if given else None) for k, t in enumerate(types)]
    places = list(itertools.product(*(range(len(array)) for array in arrays)))
    taken = {
        name: array.take([p[k] for p in places]) for k, (name, array) in enumerate(zip("abc", arrays, strict=False))
    }
    return pa.table({"i": range(len(places)), **taken})


def plain(array: Any) -> list[Any]:
    """Values that compare: days and microseconds for dates and timestamps."""
    if pa.types.is_date(array.type):
        array = array.cast(pa.int32())
    elif pa.types.is_timestamp(array.type):
        array = array.cast(pa.int64())
    return list(array.to_pylist())


def expect(case: Case) -> Expected | None:
    """What DuckDB gives; None where the expression is not one of its own."""
    connection = oracle()
    connection.register("t", rows(case.types, case.given))
    try:
        dtype = str(connection.sql(f"SELECT {case.sql} AS v FROM t").types[0])
    except duckdb.Error:
        return None
    sql = f"CAST({case.sql} AS DECIMAL(38,0))" if dtype == "HUGEINT" else case.sql
    if case.sql in AGGREGATES:
        return Expected(dtype, (_one(connection, f"SELECT {sql} AS v FROM t"),))
    try:
        return Expected(dtype, tuple(plain(connection.sql(f"SELECT {sql} AS v FROM t").to_arrow_table()["v"])))
    except (duckdb.Error, pa.ArrowException):
        count = rows(case.types, case.given).num_rows
        return Expected(dtype, tuple(_one(connection, f"SELECT {sql} AS v FROM t WHERE i = {k}") for k in range(count)))


def _one(connection: duckdb.DuckDBPyConnection, sql: str) -> Any:
    try:
        return plain(connection.sql(sql).to_arrow_table()["v"])[0]
    except (duckdb.Error, pa.ArrowException):
        return RAISES


# ---- how gquery compares ---------------------------------------------------------------------------------------------


def agree(got: Any, want: Any, dtype: str) -> bool:
    if isinstance(got, float) and isinstance(want, float):
        if got == want or math.isnan(got) or math.isnan(want):
            return (math.isnan(got) and math.isnan(want)) or math.copysign(1, got) == math.copysign(1, want)
        return math.isclose(got, want, rel_tol=1e-6 if dtype == "FLOAT" else 1e-12)
    alike = type(got) is type(want) or (dtype == "HUGEINT" and isinstance(got, int))  # a sum is BIGINT
    return alike and bool(got == want)


def same_type(got: str, want: str) -> bool:
    """gquery has no HUGEINT: a sum is BIGINT, anything else a DECIMAL without places."""
    return got == want or (
        want == "HUGEINT" and (got == "BIGINT" or (got.startswith("DECIMAL") and got.endswith(",0)")))
    )


@dataclass
class Checker:
    """Compares cases with DuckDB's answers on one connection; ``errors`` rows a case are tried for their error, and
    ``constants`` rows with constants in place of columns."""

    connection: gquery.Connection
    errors: int = 2
    constants: int = 6

    def differences(self, case: Case) -> list[str]:
        """What differs, a line each; empty where all agree or differ on purpose."""
        want = expect(case)
        if want is None:
            return []
        found = self._aggregate(case, want) if case.sql in AGGREGATES else self._scalar(case, want)
        return [line for line in found if not any(re.search(known, line) for known in KNOWN)]

    def _aggregate(self, case: Case, want: Expected) -> list[str]:
        got = self._run(f"SELECT {case.sql} AS v FROM t", rows(case.types), want.dtype)
        value = got if isinstance(got, str) or got is RAISES else got[0]
        if isinstance(value, str) and value.startswith("refused") and _is_refused(case):
            return []
        return (
            [] if agree(value, want.values[0], want.dtype) else [f"{case}: gives {value!r}, DuckDB {want.values[0]!r}"]
        )

    def _scalar(self, case: Case, want: Expected) -> list[str]:
        table, sql = rows(case.types, case.given), f"SELECT {case.sql} AS v FROM t"
        good = [k for k, v in enumerate(want.values) if v is not RAISES]
        bad = [k for k, v in enumerate(want.values) if v is RAISES and not self._has_null(case, table, k)]
        got = self._run(sql, table.take(good), want.dtype)
        if got is RAISES:
            alone = [k for k in good if self._run(sql, table.take([k]), want.dtype) is RAISES]
            return [f"{case}: {shown(case, table, k)} raises, DuckDB {want.values[k]!r}" for k in alone[:3]] or [
                f"{case} raises"
            ]
        if isinstance(got, str):
            none = all(v is None or v is RAISES for v in want.values)  # DuckDB says so when a row comes
            return [] if got.startswith("refused") and (none or _is_refused(case)) else [f"{case}: {got}"]
        found = [
            f"{case}: {shown(case, table, k)} gives {g!r}, DuckDB {want.values[k]!r}"
            for k, g in zip(good, got, strict=True)
            if not self._agree(case, g, want.values[k], want.dtype)
        ]
        r = random.Random(str(case))
        for k in r.sample(bad, min(self.errors, len(bad))):
            value = self._run(sql, table.take([k]), want.dtype)
            if value is not RAISES:
                found.append(f"{case}: {shown(case, table, k)} gives {value!r}, DuckDB raises")
        return found + self._constants(
            case, want, r.sample(good, min(self.constants, len(good))), r.sample(bad, min(1, len(bad)))
        )

    def _constants(self, case: Case, want: Expected, good: list[int], bad: list[int]) -> list[str]:
        table, found = rows(case.types, case.given), []
        texts = [f"SELECT {self._literal(case, table, k)} AS v" for k in (*good, *bad)]
        for k, sql in zip((*good, *bad), texts, strict=True):
            got = self._run(sql, None, want.dtype)
            value = got if isinstance(got, str) or got is RAISES else got[0]
            if not self._agree(case, value, want.values[k], want.dtype):
                found.append(
                    f"{case}: constants {shown(case, table, k)} give {value!r}, DuckDB {want.values[k]!r}\n    {sql}"
                )
        return found

    def _run(self, sql: str, table: pa.Table | None, dtype: str) -> Any:
        """The values; `RAISES` where the data are at fault; a text for anything else."""
        if table is not None:
            self.connection.register("t", table)
        try:
            result = self.connection.sql(sql)
            values = plain(result.arrow()["v"])
        except gquery.DataError:
            return RAISES
        except gquery.Error as error:
            return f"refused: {type(error).__name__}: {str(error).splitlines()[0]}"
        except Exception as error:
            return f"FOREIGN {type(error).__name__}: {error}"
        return values if same_type(str(result.types[0]), dtype) else f"type {result.types[0]}, DuckDB {dtype}"

    def _agree(self, case: Case, got: Any, want: Any, dtype: str) -> bool:
        signless = case.sql.startswith(("greatest", "least")) and got == want  # FLOAT -0.0 is 0.0 there
        return signless or agree(got, want, dtype)

    def _has_null(self, case: Case, table: pa.Table, k: int) -> bool:
        """DuckDB raises from the cast of an argument, where the other one is NULL; here the result is NULL at once."""
        return any(not table[n][k].is_valid for n in "abc"[: len(case.types)])

    def _literal(self, case: Case, table: pa.Table, k: int) -> str:
        """The expression with typed constants in place of its columns."""
        texts = {}
        for name, dtype in zip("abc", case.types, strict=False):
            text = text_at(table, name, k)
            quoted = "NULL" if text is None else "'" + text.replace("'", "''") + "'"
            texts[name] = f"CAST({quoted} AS {dtype})"
        words = [texts.get(w, w) if not quoted else w for w, quoted in _words(case.sql)]
        return "".join(words)


def shown(case: Case, table: pa.Table, k: int) -> str:
    """The arguments in a row, as text."""
    return ", ".join(text_at(table, n, k) or "NULL" for n in "abc"[: len(case.types)])


def text_at(table: pa.Table, name: str, k: int) -> str | None:
    oracle().register("shown", table.slice(k, 1))
    row = oracle().sql(f"SELECT {name}::VARCHAR FROM shown").fetchone()
    return None if row is None else row[0]


def _is_refused(case: Case) -> bool:
    return any(re.search(refused, str(case)) for refused in REFUSED)


def _words(sql: str) -> Iterator[tuple[str, bool]]:
    """The words of an expression and what stands between; whether they are quoted."""
    for m in re.finditer(r"'[^']*'|\w+|[^\w']+", sql):
        yield m[0], m[0].startswith("'")


def check_together(connection: gquery.Connection, group: list[Case]) -> list[str]:
    """What differs of cases over the same types that are computed by one query, over the rows on which none raises: so a
    kernel is compiled for many cases at once."""
    known = [(case, want) for case in group if (want := expect(case)) is not None and _has_kernel(case)]
    if not known:
        return []
    table = rows(group[0].types, group[0].given)
    good = [k for k in range(table.num_rows) if all(want.values[k] is not RAISES for _, want in known)]
    connection.register("t", table.take(good))
    try:
        result = connection.sql(
            "SELECT " + ", ".join(f"{c.sql} AS v{n}" for n, (c, _) in enumerate(known)) + " FROM t"
        ).arrow()
    except Exception as error:
        return [f"{[str(c) for c, _ in known]}: {type(error).__name__}: {error}"]
    found = []
    for n, (case, want) in enumerate(known):
        for k, g in zip(good, plain(result[f"v{n}"]), strict=True):
            signless = case.sql.startswith(("greatest", "least")) and g == want.values[k]
            if not (signless or agree(g, want.values[k], want.dtype)):
                found.append(f"{case}: compiled, {shown(case, table, k)} gives {g!r}, DuckDB {want.values[k]!r}")
    return [line for line in found if not any(re.search(pattern, line) for pattern in KNOWN)]


def _has_kernel(case: Case) -> bool:
    """Not one that is refused, and no aggregate or cast through text, which is interpreted in any case."""
    through_text = "CAST" in case.sql and "VARCHAR" in (*case.types, case.sql.split()[-1].strip(")"))
    wraps = re.match(r"-a \[U|round\(a, -", str(case)) is not None
    if case.sql in AGGREGATES or through_text or wraps or _is_refused(case):
        return False
    connection = gquery.connect(device="python")
    connection.register("t", rows(case.types, case.given).slice(0, 0))
    try:
        connection.sql(f"SELECT {case.sql} AS v FROM t").arrow()
    except gquery.Error:
        return False
    return True
