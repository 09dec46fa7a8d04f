"""Ends of RANGE frames: where in its partition the first row stands whose key is at least, or greater than, the row's own key
less or plus an amount. Rows with a NULL key have their peers for an end.

Keys lie in the order of the partition, so that the position is found by binary search: among the row's peers and those before it,
or them and those behind, as no amount is negative. Where it is the same for all rows, ends move on with the keys, and a CPU walks
from one to the next. Months are added by the calendar, as SQL adds them to a date.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Literal

import numpy as np

from gquery import tuning
from gquery.columns.table import ColumnData
from gquery.device.array import Array
from gquery.errors import DataError, OutOfRangeError
from gquery.expression.facts import DAYS_PER_MONTH, INT64_BITS, MICROS_PER_DAY
from gquery.expression.interval import Interval
from gquery.expression.types import INT64, DType, Kind, PhysicalType
from gquery.expression.windows import FrameBound
from gquery.kernels.bindings import Argument
from gquery.kernels.builtin import scans, wide_arrays
from gquery.kernels.builtin.choosing import all_set, are_less, multiplied
from gquery.kernels.builtin.define import BuiltinKernel, builtin_kernel, launch
from gquery.kernels.builtin.elements import converted, every
from gquery.kernels.builtin.order_bits import signed
from gquery.kernels.readback import read_scalar
from gquery.operators.window.positions import (
    NEXT_PARTITION,
    PARTITION,
    PARTITION_OF_TILE,
    PositionKernel,
    Work,
    constant_of,
    position_kernel,
    tile_kernel,
    values_by_position,
)
from gquery.runtime.tuples import NamedTuple

Form = Literal["i64", "f64", "i128", "days", "micros"]


class _Search(NamedTuple):
    """What the kernel's text depends on: how keys lie and amounts are added, the order, which end is looked for, and how."""

    form: Form
    descending: bool
    nulls_first: bool
    nullable: bool
    following: bool
    is_end: bool
    by_row: bool
    to_value: bool = False


_WORDS: dict[Form, str] = {"i64": "i64", "f64": "f64", "i128": "i128", "days": "i64", "micros": "i64"}


def _parameters(s: _Search) -> str:
    element = "f64" if s.form == "f64" else "i64"
    amount = "amount:f64" if s.form == "f64" else "amount:i64 amount_high:i64"
    names = f"partitions:*u32 begins:*u32 peers:*u32 peer_begins:*u32 keys:*{element} valid:*u8 amounts:*{element}"
    return f"{names} {amount} months:i64 made:*u32"


def _is_before(s: _Search, at: str) -> list[str]:
    """Lines that find ``before``: whether the position ``at`` stands before the end that is looked for."""
    compare = ("ge" if s.is_end else "gt") if s.descending else ("le" if s.is_end else "lt")
    test = f"before = {compare}_{_WORDS[s.form]}({_key(s.form, at)}, target)"
    if not s.nullable:
        return [test]
    return [f"before = {s.nulls_first}", f"if ne_i64(i64(valid[row_index({at})]), 0):", f"    {test}"]


def _search(s: _Search) -> list[str]:
    """Lines that move ``low`` to the end that is looked for, which is ``high`` at most."""
    return [
        "while lt_i64(low, high):",
        "    middle = shr_i64(add_i64(low, high), 1)",
        *("    " + line for line in _is_before(s, "middle")),
        "    if before:",
        "        low = add_i64(middle, 1)",
        "    else:",
        "        high = middle",
    ]


@cache
def _searching(s: _Search) -> PositionKernel:
    lines = [
        *PARTITION,
        "peer_begin = i64(peer_begins[row_index(i64(peers[i]))])",
        "peer_end = i64(peer_begins[row_index(add_i64(i64(peers[i]), 1))])",
        f"low = {'peer_end' if s.is_end else 'peer_begin'}",
        "high = low",
        f"if {'ne_i64(i64(valid[i]), 0)' if s.nullable else 'True'}:",
        f"    key = {_key(s.form, 'i64(i)')}",
        *("    " + line for line in _target(s, s.following is not s.descending)),
        f"    low = {'peer_begin' if s.following else 'begin'}",
        f"    high = {'end' if s.following else 'peer_end'}",
        *_search(s),
        "store_u32(made, i64(i), low)",
    ]
    return position_kernel(_parameters(s), *lines)


@cache
def _walking(s: _Search) -> PositionKernel:
    """The same for an amount that all rows share: ends move on with the keys. A thread goes through a tile of positions: it
    searches for the first end, and walks from each to the next."""
    lines = [
        *NEXT_PARTITION,
        "if ge_i64(at, peer_end):",
        "    peer = add_i64(peer, 1)",
        "    peer_begin = peer_end",
        "    peer_end = i64(peer_begins[row_index(add_i64(peer, 1))])",
        "    is_next = True",
        "if is_next:",
        "    is_next = False",
        f"    found = {'peer_end' if s.is_end else 'peer_begin'}",
        f"    if {'ne_i64(i64(valid[row_index(at)]), 0)' if s.nullable else 'True'}:",
        f"        key = {_key(s.form, 'at')}",
        *("        " + line for line in _target(s, s.following is not s.descending)),
        f"        low = max_i64(walked, {'peer_begin' if s.following else 'begin'})",
        f"        high = {'end' if s.following else 'peer_end'}",
        "        if lt_i64(walked, 0):",
        *("            " + line for line in _search(s)),
        "        else:",
        "            before = True",
        "            while lt_i64(low, high) and before:",
        *("                " + line for line in _is_before(s, "low")),
        "                low = add_i64(low, from_bool(before))",
        "        walked = low",
        "        found = low",
        "store_u32(made, at, found)",
    ]
    before = [
        *PARTITION_OF_TILE,
        "peer = i64(peers[row_index(at)])",
        "peer_begin = i64(peer_begins[row_index(peer)])",
        "peer_end = i64(peer_begins[row_index(add_i64(peer, 1))])",
        "is_next = True",
        "walked = i64(-1)",
        "found = i64(0)",
        "low = i64(0)",
    ]
    return tile_kernel(_parameters(s), before, *lines, row=False)


def _key(form: Form, position: str) -> str:
    if form == "i128":
        return f"load_i128(keys, {position})"
    return f"{'f64' if form == 'f64' else 'i64'}(keys[row_index({position})])"


def _target(s: _Search, is_plus: bool) -> list[str]:
    """Lines that find the key which is looked for; one beyond 64 bits is the last there is."""
    if s.to_value:
        return ["target = load_i128(amounts, row)" if s.form == "i128" else "target = i64(amounts[row_index(row)])"]
    op = "add" if is_plus else "sub"
    match s.form:
        case "f64":
            amount = "f64(amounts[row_index(row)])" if s.by_row else "amount"
            return [f"target = {op}_f64(key, {amount})"]
        case "i128":
            amount = "load_i128(amounts, row)" if s.by_row else "make_i128(amount_high, amount)"
            return [f"target = {op}_i128(key, {amount})"]
        case _:
            pass
    lines = []
    if s.form != "i64":
        months = "months" if is_plus else "sub_i64(0, months)"
        if s.form == "days":
            lines = [f"key = date_add_months(key, {months})"]
        else:
            lines = [
                f"day = floor_div_i64(key, {MICROS_PER_DAY})",
                f"rest = sub_i64(key, mul_i64(day, {MICROS_PER_DAY}))",
                f"key = add_i64(mul_i64(date_add_months(day, {months}), {MICROS_PER_DAY}), rest)",
            ]
    amount = "i64(amounts[row_index(row)])" if s.by_row else "amount"
    wraps, last = ("lt_i64(target, key)", INT64.high) if is_plus else ("gt_i64(target, key)", INT64.low)
    return [*lines, f"target = {op}_i64(key, {amount})", f"if {wraps}:", f"    target = i64({last})"]


def range_bound(bound: FrameBound, is_end: bool, work: Work) -> Array:
    """The first position of each frame, or with ``is_end`` the one behind its last."""
    (key,) = work.order
    assert bound.amount is not None
    if bound.is_value:
        return _bound_at_value(bound, is_end, work)
    o, device, column = work.ordered, work.device, work.column(key.expr)
    constant = constant_of(bound.amount)
    if constant is not None and constant.dtype.kind is Kind.INTERVAL:
        form, amount, months = _of_interval(Interval.of(constant.value), column.dtype, bound)
        amounts = None
    else:
        form, months = _form(column), 0
        amounts = _by_row(work.column(bound.amount), form, bound, work) if constant is None else None
        amount = 0 if constant is None else _checked(constant.value, bound)
    search = _Search(
        form,
        key.descending,
        key.nulls_first,
        column.validity is not None,
        bound.kind == "following",
        is_end,
        amounts is not None,
    )
    valid = None if column.validity is None else o.take(column.validity.on(device))
    numbers = (o.partitions.numbers, o.partitions.starts, o.peers.numbers, o.peers.starts)
    scalars: tuple[Argument, ...] = (float(amount),) if form == "f64" else _words(int(amount))
    made = device.empty(o.count, np.uint32)
    given = (*numbers, _keys(column, form, work), valid, amounts, *scalars, months, made)
    if device.is_cpu and amounts is None and not (form == "micros" and months) and math.isfinite(amount):
        rows = max(o.count, 1) if work.workers == 1 else tuning.window_functions.sliding_tile
        _walking(search).run_tiles(o, work.workers, rows, *given)
    else:
        _searching(search).run(o, work.workers, *given)
    return made


@cache
def _turned(form: Form, is_less: bool) -> BuiltinKernel:
    """The kernel that flags rows whose bound lies on the wrong side of their key, or is NULL."""
    word, compare = _WORDS[form], "gt" if is_less else "lt"
    value, key = ((f"load_i128({c}, i64(i))" if form == "i128" else f"i64({c}[i])") for c in ("values", "keys"))
    return builtin_kernel(
        "keys:*i64 valid:*u8 values:*i64 there:*u8 wrong:*u8",
        f"is_wrong = ne_i64(i64(valid[i]), 0) and (eq_i64(i64(there[i]), 0) or {compare}_{word}({value}, {key}))",
        "store_bool(wrong, i64(i), is_wrong)",
    )


def _bound_at_value(bound: FrameBound, is_end: bool, work: Work) -> Array:
    """`range_bound` where the bound is the value of a column by row."""
    (key,) = work.order
    assert bound.amount is not None
    o, device, rows = work.ordered, work.device, work.ordered.count
    column, values = work.column(key.expr), work.column(bound.amount)
    is_wide = PhysicalType.I128 in (column.physical_type, values.physical_type)
    form: Form = "i128" if is_wide else "i64"
    by_row = [_by_number(c, form, work) for c in (column, values)]
    flags = [all_set(by_row[0], rows) if c.validity is None else c.validity.on(device) for c in (column, values)]
    wrong = device.empty(rows, np.uint8)
    is_following = bound.kind == "following"
    turned = _turned(form, is_following is key.descending)
    launch(turned, rows, wrong, by_row[0], flags[0], by_row[1], flags[1], wrong, workers=work.workers)
    if scans.is_any(wrong):
        raise OutOfRangeError(f"The amount of RANGE ... {bound.kind.upper()} is negative or NULL in some row")
    nullable = column.validity is not None
    search = _Search(form, key.descending, key.nulls_first, nullable, is_following, is_end, True, True)
    keys = by_row[0] if o.rows is None else o.take(by_row[0], 2 if is_wide else 1)
    valid = o.take(flags[0]) if nullable else None
    numbers = (o.partitions.numbers, o.partitions.starts, o.peers.numbers, o.peers.starts)
    made = device.empty(rows, np.uint32)
    _searching(search).run(o, work.workers, *numbers, keys, valid, by_row[1], 0, 0, 0, made)
    return made


def _by_number(column: ColumnData, form: Form, work: Work) -> Array:
    """A column of exact values by row: int64, or pairs of words."""
    data = column.data.on(work.device)
    if column.physical_type is PhysicalType.I128:
        return data
    return wide_arrays.i128_from_i64(data).reshape(-1) if form == "i128" else converted(data, np.int64)


def _words(amount: int) -> tuple[int, int]:
    """The low and the high word of 128 bits, signed."""
    return signed(amount), amount >> INT64_BITS


def _form(column: ColumnData) -> Form:
    if column.dtype.is_float:
        return "f64"
    return "i128" if column.physical_type is PhysicalType.I128 else "i64"


def _keys(column: ColumnData, form: Form, work: Work) -> Array:
    """The keys by position."""
    if form == "i128":
        return work.ordered.take(column.data.on(work.device), 2)
    keys = values_by_position(column, "f64" if form == "f64" else "i64", None, 0, work)
    return multiplied(keys, MICROS_PER_DAY) if form == "micros" and column.dtype.kind is Kind.DATE else keys


def _of_interval(interval: Interval, dtype: DType, bound: FrameBound) -> tuple[Form, float, int]:
    """How keys are looked at when an interval is added to them, what of it is added besides months, and those."""
    days = interval.months * DAYS_PER_MONTH + interval.days
    if days * MICROS_PER_DAY + interval.micros < 0:
        raise _negative(bound)
    if dtype.kind is Kind.DATE and interval.micros == 0:
        return "days", interval.days, interval.months
    return "micros", interval.days * MICROS_PER_DAY + interval.micros, interval.months


def _negative(bound: FrameBound) -> OutOfRangeError:
    return OutOfRangeError(f"The amount of RANGE ... {bound.kind.upper()} is negative")


def _checked(amount: float | None, bound: FrameBound) -> float:
    if amount is None:
        raise DataError(f"The amount of RANGE ... {bound.kind.upper()} is NULL")
    if amount < 0:
        raise _negative(bound)
    return amount


def _by_row(column: ColumnData, form: Form, bound: FrameBound, work: Work) -> Array:
    """The amounts by row, in the form of the keys: none is NULL or negative."""
    validity = None if column.validity is None else column.validity.on(work.device)
    if validity is not None and read_scalar(scans.count_others(validity, 1), expected=0):
        raise DataError(f"The amount of RANGE ... {bound.kind.upper()} is NULL in some row")
    data = column.data.on(work.device)
    if column.physical_type is PhysicalType.I128:
        signs = every(data[1:], 2)
    else:
        wanted = np.dtype(np.float64 if form == "f64" else np.int64)
        signs = data = data if data.dtype == wanted else converted(data, wanted)
    if scans.is_any(are_less(signs, 0)):
        raise _negative(bound)
    if form == "i128" and column.physical_type is not PhysicalType.I128:
        data = wide_arrays.i128_from_i64(data).reshape(-1)
    if form == "i64" and column.physical_type is PhysicalType.I128:
        data = every(data, 2)
    return data
