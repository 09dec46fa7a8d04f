"""Scans, filters and arithmetic: nothing but columns that stream by."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks.data import CHECK, Maker, Tables, exact_sum
from benchmarks.measure import Answer, Case, Checks, Dataset
from gquery.expression.types import Bounds, decimal

SHARES = (1, 10, 50, 90)  # per cent of the rows that a filter keeps
_PRICE, _PER_CENT = 10_000_000, 11


def cases(rows: int) -> Iterator[Case]:
    plain = Dataset("k from 0 to 99, v", partial(_integers, rows))
    yield Case("scan/count", "SELECT count(v) FROM t", rows, plain, _count)
    yield Case("scan/sum", "SELECT sum(v) FROM t", rows, plain, partial(_sum, 100))
    yield Case("scan/min-max", "SELECT min(v), max(v) FROM t", rows, plain, _extremes)
    for share in SHARES:
        sql = f"SELECT sum(v) FROM t WHERE k < {share}"
        yield Case(f"filter/sum/{share}%", sql, rows, plain, partial(_sum, share))
    for share in SHARES:
        sql = f"SELECT v FROM t WHERE k < {share}"
        yield Case(f"filter/rows/{share}%", sql, rows, plain, partial(_rows, share))
    money = Dataset("decimals", partial(_decimals, rows))
    sql = "SELECT sum(price * (1 - discount) * (1 + tax)) FROM t"
    yield Case("decimal/sum", sql, rows, money, _amount)


def _integers(rows: int, make: Maker) -> Tables:
    return {"t": {"k": make.random(rows, 100, 1), "v": make.random(rows, 1_000_000_007, 2)}}


def _decimals(rows: int, make: Maker) -> Tables:
    price, discount, tax = (
        make.random(rows, _PRICE, 1),
        make.random(rows, _PER_CENT, 2),
        make.random(rows, _PER_CENT, 3),
    )
    share = decimal(4, 2), Bounds(0, _PER_CENT - 1)
    columns = {
        "price": make.decimals(price, decimal(12, 2), Bounds(0, _PRICE - 1)),
        "discount": make.decimals(discount, *share),
        "tax": make.decimals(tax, *share),
    }
    return {"t": columns, CHECK: {"amount": price * (100 - discount) * (100 + tax)}}


def _count(make: Maker, tables: Tables, answer: Answer) -> Checks:
    yield "the count", int(answer.integers(0)[0]), int(tables["t"]["v"].size)


def _sum(share: int, make: Maker, tables: Tables, answer: Answer) -> Checks:
    t = tables["t"]
    yield "the sum", int(answer.integers(0)[0]), exact_sum(t["v"][t["k"] < share])


def _extremes(make: Maker, tables: Tables, answer: Answer) -> Checks:
    v = tables["t"]["v"]
    yield "the minimum", int(answer.integers(0)[0]), int(v.min())
    yield "the maximum", int(answer.integers(1)[0]), int(v.max())


def _rows(share: int, make: Maker, tables: Tables, answer: Answer) -> Checks:
    t, got = tables["t"], answer.integers(0)
    kept = t["v"][t["k"] < share]
    yield "the count", answer.rows, int(kept.size)
    yield "the rows that differ", int((got != kept).sum()) if answer.rows == kept.size else -1, 0


def _amount(make: Maker, tables: Tables, answer: Answer) -> Checks:
    units = exact_sum(tables[CHECK]["amount"])
    yield "the sum modulo 2**64", int(answer.integers(0)[0]) % 2**64, units % 2**64
