"""Marks: filters that are computed for a block of rows give the rows that a branch would let through, in their order."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from gquery.kernels.ir import Name, printed
from gquery.kernels.ir.expressions import Leaf
from gquery.kernels.ir.read import read_lines
from gquery.kernels.ir.statements import Block
from gquery.kernels.ir.walk import over
from gquery.kernels.marks import filters, marked_loop
from tests.support.harness import assert_same
from tests.support.marks import one_in
from tests.support.tuned import Tune

SIZES = (0, 1, 63, 64, 65, 127, 128, 129, 1000, 4096 + 17)


def rows(*lines: str) -> Block:
    """Statements whose variables v... are the row's and whose c... are columns."""

    def role(leaf: Leaf) -> Leaf:
        if isinstance(leaf, Name) and leaf.id[0] in "vc":
            return Name(leaf.id, "row" if leaf.id[0] == "v" else "column")
        return leaf

    return over(read_lines(*lines), role)


def tests_of(*lines: str) -> list[str] | None:
    found = filters(rows(*lines))
    return None if found is None else [t.text() for t in found.tests]


def test_filters_are_those_that_can_be_computed_for_any_row() -> None:
    begin = ("v0 = i64(c0[i])", "v1 = lt_i64(v0, k0)", "if v1:")
    assert tests_of(*begin, "    n = add_i64(n, v0)") == ["v1"]
    chain = ("    v2 = i64(c1[i])", "    if ge_i64(v2, k1) or eq_i64(v2, k2):", "        store(v2)")
    assert tests_of(*begin, *chain) == ["v1", "ge_i64(v2, k1) or eq_i64(v2, k2)"]
    # what may fail, or looks at a place that only rows which pass know, is done behind the test
    for unsafe in ("quotient_i64(v0, k1)", "checked_add_i64(v0, k1, status0, 0)", "i64(b0[v0])", "i64(c1[v0])"):
        assert tests_of(*begin, f"    v2 = {unsafe}", "    if lt_i64(v2, k1):", "        store(v2)") == ["v1"], unsafe


@pytest.mark.parametrize(
    "lines",
    [
        ("v0 = quotient_i64(i64(c0[i]), k0)", "if lt_i64(v0, k1):", "    store(v0)"),
        ("v0 = i64(c0[i])", "store(v0)", "if lt_i64(v0, k1):", "    store(v0)"),
        ("v0 = i64(c0[i])", "if lt_i64(v0, n):", "    n = v0"),  # the next row meets what this one left
        ("n = add_i64(n, 1)", "if lt_i64(n, k0):", "    store(n)"),
        ("v0 = i64(c0[i])", "if lt_i64(v0, k0):", "    store(v0)", "else:", "    n = v0"),
        ("v0 = i64(c0[i])", "if lt_i64(v0, k0):", "    store(v0)", "store(v0)"),
    ],
)
def test_other_loops_stay_as_they_are(lines: tuple[str, ...]) -> None:
    assert filters(rows(*lines)) is None


def test_the_loop_reads_well() -> None:
    found = filters(rows("v0 = i64(c0[i])", "if lt_i64(v0, k0):", "    n = add_i64(n, v0)"))
    assert found is not None
    assert printed(marked_loop(found, 128)) == [
        "block = uint64(lo)",
        "while block < hi:",
        "    block_end = row_index(min_i64(i64(block + uint64(128)), i64(hi)))",
        "    for i0 in range(block, block_end):",
        "        v0_0 = i64(c0[i0])",
        "        test0 = lt_i64(v0_0, k0)",
        "        store_bool(marks, i64(i0 - block), test0)",
        "    for pad in range(i64(block_end - block), and_i64(add_i64(i64(block_end - block), 63), -64)):",
        "        store_bool(marks, i64(pad), False)",
        "    word = uint64(0)",
        "    while block + word < block_end:",
        "        bits = marks_word(marks, i64(word))",
        "        while ne_i64(bits, 0):",
        "            i = block + word + uint64(lowest_bit(bits))",
        "            bits = and_i64(bits, sub_i64(bits, 1))",
        "            v0 = i64(c0[i])",
        "            n = add_i64(n, v0)",
        "        word = word + uint64(64)",
        "    block = block_end",
    ]


def table(size: int) -> pa.Table:
    rng = np.random.default_rng(size)
    a = rng.integers(-100, 100, size)
    missing = rng.random(size) < 0.2
    f = np.where(rng.random(size) < 0.1, np.nan, rng.normal(size=size))
    return pa.table(
        {
            "n": np.arange(size),
            "a": pa.array(a, mask=missing),
            "b": pa.array(rng.integers(0, 3, size), pa.int8()),
            "f": pa.array(f, mask=rng.random(size) < 0.1),
            "s": pa.array([f"t{x % 7}" for x in a]),
        }
    )


@pytest.mark.parametrize("size", one_in(2, SIZES))
def test_blocks_of_all_sizes(size: int, tune: Tune) -> None:
    tables = {"t": table(size)}
    for block in (64, 1024) if size > 64 else (64,):  # fewer rows are one block of either
        tune(tuning.loops, marked_rows=block)
        for where in ("a < 10", "a IS NULL", "a BETWEEN -50 AND 50 AND b <> 1 AND f > 0", "f >= 'NaN'::DOUBLE", "a > 1000",
                      "(a < 0 AND b = 1) OR (a > 50 AND b = 2)", "NOT (a = 3 OR f < 0)", "s = 't3' AND a < 50",
                      "b >= 0", "a * 2 < n AND b IN (0, 2)"):  # fmt: skip
            assert_same(f"SELECT count(*), sum(a), min(n), max(n), sum(b) FROM t WHERE {where}", tables)
            assert_same(f"SELECT n, a, s FROM t WHERE {where}", tables, ordered=True)
        assert_same("SELECT b, count(*), sum(a) FROM t WHERE a < 20 GROUP BY b ORDER BY b", tables)
        assert_same("SELECT x.n FROM t x JOIN t y ON x.a = y.n WHERE x.b < 2 AND y.b < 2 ORDER BY x.n", tables)


def test_what_a_filter_keeps_from_failing_does_not_fail() -> None:
    tables = {"t": pa.table({"a": [0, 1, 2, 0, 4] * 300, "b": [8, 8, 8, 2**62, 8] * 300})}
    assert_same("SELECT sum(b // a) FROM t WHERE a <> 0 AND b // a > 2", tables)
    connection = gquery.connect("cpu").register("t", tables["t"])
    connection.sql("SET interpret_limit = 0")
    with pytest.raises(gquery.Error):
        connection.sql("SELECT count(*) FROM t WHERE a >= 0 AND b * 4 > 2").fetchall()
