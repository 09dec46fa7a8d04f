"""Random calls of window functions over random frames: as the breaker takes them, and as SQL for DuckDB."""

from __future__ import annotations

import math
import random
import struct
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa

from gquery.columns.table import ColumnData
from gquery.device.device import Device
from gquery.expression.expr import Column, Expr, Literal, SortKey
from gquery.expression.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INTEGER,
    VARCHAR,
    DType,
    PhysicalType,
    decimal,
    type_bounds,
)
from gquery.expression.windows import BoundKind, Exclusion, FrameBound, FrameUnit, WindowCall, WindowFrame
from gquery.kernels.values import ValueProperties
from gquery.operators.base import Frame
from gquery.operators.window import run_window
from gquery.planner.physical import Stored, WindowRows
from tests.support.frames import column, encoded, values_of

WIDE = decimal(38, 0)


@dataclass(frozen=True)
class Kind:
    """A column of the tables that cases are made over: its types, and values that it draws from."""

    dtype: DType
    physical_type: PhysicalType
    arrow: pa.DataType
    pool: tuple[Any, ...]
    is_encoded: bool = False


_TEXTS = ("", "a", "ab", "abcdefgh", "abcdefghi", "abcdefghj", "\u00e4", "zz")
KINDS = {
    "id": Kind(BIGINT, PhysicalType.I32, pa.int64(), ()),
    "p": Kind(INTEGER, PhysicalType.I8, pa.int32(), (0, 1, 2, None)),
    "q": Kind(VARCHAR, PhysicalType.STRING32, pa.string(), ("", "a", "abcdefghi", "abcdefghj", None)),
    "o": Kind(INTEGER, PhysicalType.I16, pa.int32(), (-3, -1, 0, 1, 2, 5, 9, None)),
    "g": Kind(DOUBLE, PhysicalType.F64, pa.float64(), (0.0, -0.0, 1.5, -2.0, math.nan, math.inf, None)),
    "x": Kind(BIGINT, PhysicalType.I64, pa.int64(), (0, 1, -7, 100, 2**40, -(2**40), None)),
    "f": Kind(DOUBLE, PhysicalType.F64, pa.float64(), (0.0, 0.25, -3.5, 1e6, -0.0, 7.0, None)),
    "w": Kind(WIDE, PhysicalType.I128, pa.decimal128(38, 0), (0, 5, 10**20, -(10**25), 10**25 + 1, None)),
    "t": Kind(VARCHAR, PhysicalType.STRING64, pa.string(), (*_TEXTS, None)),
    "v": Kind(VARCHAR, PhysicalType.VIEW, pa.string(), (*_TEXTS, None)),
    "c": Kind(VARCHAR, PhysicalType.U8, pa.string(), ("ham", "jam", "tea", None), True),
    "b": Kind(BOOLEAN, PhysicalType.BOOL, pa.bool_(), (True, False, None)),
    "n": Kind(INTEGER, PhysicalType.I8, pa.int32(), (0, 1, 2, 3, 7)),
}
IDS = {name: number for number, name in enumerate(KINDS, 1)}
Rows = dict[str, list[Any]]


def random_rows(r: random.Random, count: int) -> Rows:
    """Values of all columns; some have no NULL at all."""
    made: Rows = {"id": list(range(count))}
    for name, kind in KINDS.items():
        if kind.pool:
            pool = [v for v in kind.pool if v is not None] if r.random() < 0.3 else list(kind.pool)
            made[name] = [r.choice(pool) for _ in range(count)]
    return made


def frame_of(rows: Rows, device: Device) -> Frame:
    """The rows as a frame."""
    made: dict[int, ColumnData] = {}
    for name, kind in KINDS.items():
        if kind.is_encoded:
            made[IDS[name]] = encoded(rows[name], device)
        else:
            has_null = any(v is None for v in rows[name])
            own = column(rows[name], kind.physical_type, device, has_null)
            made[IDS[name]] = replace(own, dtype=kind.dtype)
    return Frame(made, len(rows["id"]))


def arrow_of(rows: Rows) -> pa.Table:
    """The rows as a table for DuckDB."""
    columns = {}
    for name, kind in KINDS.items():
        own = [None if v is None else Decimal(v) for v in rows[name]] if kind.dtype is WIDE else rows[name]
        columns[name] = pa.array(own, kind.arrow)
    return pa.table(columns)


def expression(name: str) -> Column:
    """A column of the frame."""
    return Column(IDS[name], name, KINDS[name].dtype)


@dataclass(frozen=True)
class Case:
    """A call over a window, and the same in SQL."""

    partition: tuple[str, ...]
    order: tuple[SortKey, ...]
    call: WindowCall
    sql: str


QUANTILES = ("quantile_cont", "quantile_disc")
BITS = ("bit_and", "bit_or", "bit_xor")
MOMENTS = {  # in SQL, over columns without NULL
    "central_moment": "var_pop({0}){keep} {over} * count(*){keep} {over}",
    "central_product": "covar_pop({0}, {1}){keep} {over} * count(*){keep} {over}",
}
FRAMED = (
    "sum",
    "avg",
    "count",
    "min",
    "max",
    "first_value",
    "last_value",
    "nth_value",
    "bool_and",
    "bool_or",
    "any_value",
    *QUANTILES,
    *BITS,
    "product",
    "string_agg",
    *MOMENTS,
)
OWN_RANKS = ("row_number", "rank", "percent_rank", "cume_dist", "lag", "lead")  # which can have an order of their own
RANKS = ("row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile")
BOUNDS: tuple[BoundKind, ...] = ("unbounded preceding", "preceding", "current row", "following", "unbounded following")
ORDERED = ("string_agg", "row_number", "ntile", "lag", "lead", "first_value", "last_value", "nth_value", "any_value")
EXCLUSIONS: tuple[Exclusion, ...] = ("no others", "current row", "group", "ties")


def _argument(r: random.Random, function: str) -> str:
    match function:
        case "sum" | "avg":
            return r.choice(("x", "f", "w", "o", "n"))
        case "bool_and" | "bool_or":
            return "b"
        case "quantile_cont":
            return r.choice(("f", "g"))
        case "product":
            return "f"
        case "string_agg":
            return r.choice(("t", "v"))
        case f if f in BITS:
            return r.choice(("x", "o", "n"))
        case f if f in MOMENTS:
            return r.choice(("n", "id"))
        case _:
            return r.choice(("x", "f", "w", "t", "v", "c", "b", "o", "g"))


def random_frame(r: random.Random, keys: tuple[SortKey, ...]) -> tuple[WindowFrame, str]:
    """A frame that DuckDB takes, and its text."""
    units: list[FrameUnit] = ["rows", "groups", "range"]
    unit = r.choice(units)
    with_amounts = unit != "range" or (len(keys) == 1 and keys[0].expr == expression("o"))
    while True:
        kinds = [k for k in BOUNDS if with_amounts or k not in ("preceding", "following")]
        first, last = r.choice(kinds), r.choice(kinds)
        if (
            first != "unbounded following"
            and last != "unbounded preceding"
            and BOUNDS.index(first) <= BOUNDS.index(last)
        ):
            break
    exclude = r.choice(EXCLUSIONS) if r.random() < 0.4 else "no others"
    # with a frame whose end lies before its start DuckDB counts -2 rows, and EXCLUDE TIES leaves one in it
    amounts = [r.choice((0, 1, 2, 3, 4, 5, 8, 12, 10**6)) for _ in range(2)]
    if first == last:
        amounts.sort(reverse=first == "preceding")
    # of RANGE with amounts that differ from row to row it loses rows: it looks for a bound from that of the row before on
    by_row = [first != last and unit != "range" and r.random() < 0.3 for _ in range(2)]
    (start, start_sql), (end, end_sql) = map(_bound, (first, last), amounts, by_row)
    sql = f"{unit} between {start_sql} and {end_sql}" + ("" if exclude == "no others" else f" exclude {exclude}")
    return WindowFrame(unit, start, end, exclude), sql


def _bound(kind: BoundKind, amount: int, by_row: bool) -> tuple[FrameBound, str]:
    if kind not in ("preceding", "following"):
        return FrameBound(kind), kind
    if by_row:
        return FrameBound(kind, expression("n")), f"n {kind}"
    return FrameBound(kind, Literal(amount, BIGINT)), f"{amount} {kind}"


def random_case(r: random.Random) -> Case:
    """One call."""
    partition = tuple(r.sample(("p", "q", "c", "b"), r.choice((0, 1, 1, 2))))
    function = r.choice((*FRAMED, *RANKS, "lag", "lead", "lag", "lead", *FRAMED))
    names = r.sample(("o", "g", "t", "c"), r.choice((0, 1, 1, 2)))
    keys = [SortKey(expression(k), r.random() < 0.4, r.random() < 0.5) for k in names]
    frame, frame_sql = WindowFrame("range", FrameBound("unbounded preceding"), FrameBound("current row")), ""
    if function in FRAMED and r.random() < 0.85:
        if r.random() < 0.4:
            keys = [SortKey(expression("o"), r.random() < 0.4, r.random() < 0.5)]
        frame, frame_sql = random_frame(r, tuple(keys))
    own: tuple[SortKey, ...] = ()
    if function in OWN_RANKS and r.random() < 0.3:
        own = own_order(r)
        while (
            True
        ):  # DuckDB 1.5.5 ends with an internal error where a row is in no frame of its own, and takes no EXCLUDE
            frame, frame_sql = random_frame(r, tuple(keys))
            around = "following" not in frame.start.kind and "preceding" not in frame.end.kind
            if around and frame.exclude == "no others" and frame.unit != "range":
                break
    depends = frame.unit == "rows" or function in ORDERED
    if depends and not (frame.unit == "range" and (frame.start.amount or frame.end.amount)):
        keys.append(SortKey(expression("id")))
    elif depends:
        function = r.choice(("sum", "count", "min", "max"))
    call, text = _call(r, function, frame, own)
    over = [f"partition by {', '.join(partition)}"] if partition else []
    if keys:
        over.append("order by " + ", ".join(_key(k) for k in keys))
    window = f"over ({' '.join([*over, frame_sql])})"
    return Case(partition, tuple(keys), call, text.format(over=window) if "{over}" in text else f"{text} {window}")


def own_order(r: random.Random) -> tuple[SortKey, ...]:
    """The order of a call's own, which tells all rows apart."""
    name = r.choice(("g", "t", "o", "w"))
    return SortKey(expression(name), r.random() < 0.5, r.random() < 0.5), SortKey(expression("id"))


def _key(key: SortKey) -> str:
    assert isinstance(key.expr, Column)
    return f"{key.expr.name} {'desc' if key.descending else 'asc'} nulls {'first' if key.nulls_first else 'last'}"


def _call(r: random.Random, function: str, frame: WindowFrame, own: tuple[SortKey, ...]) -> tuple[WindowCall, str]:
    order = f"order by {', '.join(map(_key, own))}" if own else ""
    if function in RANKS:
        dtype = DOUBLE if function in ("percent_rank", "cume_dist") else BIGINT
        if function != "ntile":
            return WindowCall(function, (), dtype, False, frame, order=own), f"{function}({order})"
        amount, text = _amount(r, (1, 2, 3, 5, 100))
        if isinstance(amount, Column):
            amount, text = Literal(4, BIGINT), "4"
        return WindowCall(function, (amount,), dtype, True, frame), f"ntile({text})"
    name = _argument(r, function)
    args: tuple[Expr, ...] = (expression(name),)
    texts, dtype = [name], KINDS[name].dtype
    ignores = False
    if function in ("lag", "lead"):
        if r.random() < 0.7:
            amount, text = _amount(r, (0, 1, 2, 3, -1, 2**62))
            args, texts = (*args, amount), [*texts, text]
            if r.random() < 0.5:
                default = r.choice([k for k, kind in KINDS.items() if kind.dtype == dtype and not kind.is_encoded])
                args, texts = (*args, expression(default)), [*texts, default]
        ignores = not own and r.random() < 0.4
        texts[-1] += f" {order}"
    if function == "string_agg":
        text = r.choice(("", ",", "; "))
        args, texts, dtype = (*args, Literal(text, VARCHAR)), [*texts, f"'{text}'"], VARCHAR
    if function == "product":
        dtype = DOUBLE
    if function in MOMENTS:
        dtype, is_pair = DOUBLE, function == "central_product"
        args, texts = (*args, expression("n") if is_pair else args[0]), [*texts, "n"]
    if function == "nth_value":
        amount, text = _amount(r, (0, 1, 2, 3, 5, -1))
        args, texts = (*args, amount), [*texts, text]
    if function in ("first_value", "last_value", "nth_value"):
        ignores = r.random() < 0.4
    if function in QUANTILES:
        share = r.choice((0.0, 0.25, 0.5, 0.9, 1.0))
        args, texts = (*args, Literal(share, DOUBLE)), [*texts, f"{share}::double"]
    if function == "sum":
        dtype = DOUBLE if dtype == DOUBLE else WIDE if dtype == WIDE else BIGINT
    if function == "avg":
        dtype = DOUBLE
    if function == "count":
        dtype = BIGINT
        if r.random() < 0.3:
            args, texts = (), ["*"]
    keep, tail = None, ""
    if function not in ("lag", "lead", "first_value", "last_value", "nth_value") and r.random() < 0.3:
        keep, tail = expression("b"), " filter (where b)"
    distinct = function in ("sum", "avg", "count") and bool(args) and r.random() < 0.25
    if function in ("first_value", "last_value", "nth_value", "any_value") and r.random() < 0.3:
        own = own_order(r)
        texts[-1] += " order by " + ", ".join(map(_key, own))
    if function in MOMENTS:
        text = MOMENTS[function].format(*texts, keep=tail, over="{over}")
        return WindowCall(function, args, dtype, True, frame, keep), text
    text = f"{function}({'distinct ' * distinct}{', '.join(texts)}{' ignore nulls' if ignores else ''}){tail}"
    bound = {"bool_and": "min", "bool_or": "max"}.get(function, function)  # as the binder has them
    return WindowCall(bound, args, dtype, True, frame, keep, distinct, own, ignores), text


def _amount(r: random.Random, pool: tuple[int, ...]) -> tuple[Expr, str]:
    if r.random() < 0.3:
        return expression("n"), "n"
    amount = r.choice(pool)
    return Literal(amount, BIGINT), str(amount)


def stored_for(call: WindowCall, frame: Frame) -> Stored:
    """What a plan would promise of a call's column."""
    new = Column(100, "made", call.dtype)
    source = frame.columns[call.args[0].id] if call.args and isinstance(call.args[0], Column) else None
    keeps = call.function in (
        "min",
        "max",
        "first_value",
        "last_value",
        "nth_value",
        "any_value",
        "lag",
        "lead",
        "quantile_disc",
    )
    if source is not None and keeps and len(call.args) < 3:
        known = ValueProperties(call.dtype, source.statistics.bounds, True, source.dictionary)
        plain = PhysicalType.STRING64 if source.physical_type.is_string else source.physical_type
        return Stored(new, known, plain)
    known = ValueProperties(call.dtype, type_bounds(call.dtype) if call.dtype != VARCHAR else None, True)
    plain = PhysicalType.STRING64 if call.dtype == VARCHAR else known.physical_type
    return Stored(new, known, plain)


def found_of(case: Case, frame: Frame, device: Device, workers: int = 1) -> list[Any]:
    """The values that the breaker gives."""
    stored = stored_for(case.call, frame)
    partition = tuple(expression(p) for p in case.partition)
    made = run_window(WindowRows(0, partition, case.order, ((stored, case.call),), (stored,)), frame, device, workers)
    found = values_of(made.columns[100])
    if case.call.dtype == DOUBLE:
        return [v if v is None else struct.unpack("<d", v)[0] for v in found]
    return found


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": "1"})


def wanted_of(case: Case, table: pa.Table) -> list[Any] | None:
    """The values that DuckDB gives, in the order of ``id``; None where it fails within itself, as quantiles over some frames with
    infinities do."""
    connection = _connection()
    connection.register("t", table)
    try:
        return [row[0] for row in connection.execute(f"SELECT {case.sql} FROM t ORDER BY id").fetchall()]
    except duckdb.Error as error:
        if str(error) != "std::exception" or not case.sql.startswith("quantile_cont("):
            raise
        return None


def same(found: Any, wanted: Any) -> bool:
    """Whether a value is as wanted: doubles up to 1e-9, decimals as integers."""
    if found is None or wanted is None:
        return found is wanted
    if isinstance(wanted, float):
        if math.isnan(wanted) or math.isinf(wanted):
            return str(float(found)) == str(wanted)
        return math.isclose(found, wanted, rel_tol=1e-9, abs_tol=1e-9)
    return bool(found == (int(wanted) if isinstance(wanted, Decimal) else wanted))
