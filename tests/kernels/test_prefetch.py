"""Prefetching: rows that are looked up a block at a time find the groups and join rows that they find one after another."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from gquery import tuning
from gquery.kernels.ir import Name, printed
from gquery.kernels.ir.expressions import Leaf, Role
from gquery.kernels.ir.read import read_lines
from gquery.kernels.ir.statements import Block
from gquery.kernels.ir.walk import over
from gquery.kernels.prefetch import looked_up_loop, lookup
from gquery.operators.group import GroupRun
from tests.support.harness import assert_same
from tests.support.tuned import Tune

BODY = (
    "v0 = string64(c0, a0, i)",
    "v1 = hash_str(v0)",
    "v2 = and_i64(v1, k0)",
    "v3 = i64(-1)",
    "while lt_i64(v3, i64(0)):",
    "    v6 = i64(s0[v2])",
    "    if ne_i64(v6, i64(0)):",
    "        v7 = sub_i64(v6, i64(1))",
    "        v8 = string64(c0, a0, v7)",
    "        if eq_str(v0, v8):",
    "            v3 = v2",
    "        v2 = and_i64(add_i64(v2, i64(1)), k0)",
)
ROLES: dict[str, Role] = {"v": "row", "c": "column", "s": "state", "b": "build"}


def rows(*lines: str) -> Block:
    def role(leaf: Leaf) -> Leaf:
        if isinstance(leaf, Name) and leaf.id[0] in ROLES:
            return Name(leaf.id, ROLES[leaf.id[0]])
        return leaf

    return over(read_lines(*lines), role)


def test_the_loop_reads_well() -> None:
    found = lookup(rows(*BODY))
    assert found is not None
    assert printed(looked_up_loop(found, 64, {"c0": "i64", "s0": "u32"})) == [
        "block = uint64(lo)",
        "while block < hi:",
        "    block_end = row_index(min_i64(i64(block + uint64(64)), i64(hi)))",
        "    for i0 in range(block, block_end):",
        "        v0_0 = string64(c0, a0, i0)",
        "        v1_0 = hash_str(v0_0)",
        "        v2_0 = and_i64(v1_0, k0)",
        "        store_i64(block_slots, i64(i0 - block), v2_0)",
        "        prefetch_bytes(s0, mul_i64(v2_0, i64(4)))",
        "    for i1 in range(block, block_end):",
        "        v2_1 = load_i64(block_slots, i64(i1 - block))",
        "        v6_1 = i64(s0[v2_1])",
        "        if ne_i64(v6_1, i64(0)):",
        "            v7_1 = sub_i64(v6_1, i64(1))",
        "            prefetch_bytes(c0, mul_i64(v7_1, i64(8)))",
        "    for i2 in range(block, block_end):",
        "        v2_2 = load_i64(block_slots, i64(i2 - block))",
        "        v6_2 = i64(s0[v2_2])",
        "        if ne_i64(v6_2, i64(0)):",
        "            v7_2 = sub_i64(v6_2, i64(1))",
        "            v8_2 = string64(c0, a0, v7_2)",
        "            prefetch_text(str_address(v8_2))",
        "    for i in range(block, block_end):",
        "        v0 = string64(c0, a0, i)",
        "        v2 = load_i64(block_slots, i64(i - block))",
        *[f"        {line}" for line in BODY[3:]],
        "    block = block_end",
    ]


PROBE = (
    "v0 = string32(c0, a0, i)",
    "v1 = i64(-1)",
    "v2 = hash_str(v0)",
    "v3 = and_i64(v2, k0)",
    "v4 = i64(b1[v3])",
    "while ne_i64(v4, i64(0)):",
    "    v5 = sub_i64(v4, i64(1))",
    "    v6 = string32(c1, a1, v5)",
    "    if eq_str(v0, v6):",
    "        v1 = v3",
    "    v4 = i64(0)",
    "    if lt_i64(v1, i64(0)):",
    "        v3 = and_i64(add_i64(v3, i64(1)), k0)",
    "        v4 = i64(b1[v3])",
    "if ge_i64(v1, i64(0)):",
    "    n = add_i64(n, i64(b0[v1]))",
)


def test_a_probe_reads_well() -> None:
    """What stands at the place of a key in another array of the table is asked for, too."""
    found = lookup(rows(*PROBE))
    assert found is not None
    assert printed(looked_up_loop(found, 8, {"c1": "i32", "b0": "u32", "b1": "u32"})) == [
        "block = uint64(lo)",
        "while block < hi:",
        "    block_end = row_index(min_i64(i64(block + uint64(8)), i64(hi)))",
        "    for i0 in range(block, block_end):",
        "        v0_0 = string32(c0, a0, i0)",
        "        v2_0 = hash_str(v0_0)",
        "        v3_0 = and_i64(v2_0, k0)",
        "        store_i64(block_slots, i64(i0 - block), v3_0)",
        "        prefetch_bytes(b1, mul_i64(v3_0, i64(4)))",
        "        prefetch_bytes(b0, mul_i64(v3_0, i64(4)))",
        "    for i1 in range(block, block_end):",
        "        v3_1 = load_i64(block_slots, i64(i1 - block))",
        "        v4_1 = i64(b1[v3_1])",
        "        if ne_i64(v4_1, i64(0)):",
        "            v5_1 = sub_i64(v4_1, i64(1))",
        "            prefetch_bytes(c1, mul_i64(v5_1, i64(4)))",
        "    for i2 in range(block, block_end):",
        "        v3_2 = load_i64(block_slots, i64(i2 - block))",
        "        v4_2 = i64(b1[v3_2])",
        "        if ne_i64(v4_2, i64(0)):",
        "            v5_2 = sub_i64(v4_2, i64(1))",
        "            v6_2 = string32(c1, a1, v5_2)",
        "            prefetch_text(str_address(v6_2))",
        "    for i in range(block, block_end):",
        "        v0 = string32(c0, a0, i)",
        "        v1 = i64(-1)",
        "        v3 = load_i64(block_slots, i64(i - block))",
        *[f"        {line}" for line in PROBE[4:]],
        "    block = block_end",
    ]


@pytest.mark.parametrize(
    "line",
    ["v1 = checked_add_i64(v9, k1, status0, 0)", "n = add_i64(n, v9)", "v1 = i64(c1[v9])", "store_i64(s1, v9, v9)"],
)
def test_what_may_fail_or_leaves_something_behind_stays_as_it_is(line: str) -> None:
    assert lookup(rows("v9 = i64(c1[i])", line, *BODY)) is None
    assert lookup(rows("v9 = i64(c1[i])", *BODY)) is not None
    assert lookup(rows("v9 = i64(c1[i])", "if lt_i64(v9, k1):", *[f"    {x}" for x in BODY])) is None


def table(size: int, distinct: int) -> pa.Table:
    rng = np.random.default_rng(size)
    keys = (rng.random(size) ** 3 * distinct).astype(np.int64)  # skewed
    none = rng.random(size)
    return pa.table(
        {
            "n": np.arange(size),
            "s": pa.array([f"text {k} " + "x" * (k % 19) for k in keys], mask=none < 0.1),
            "u": pa.array([f"é{k % 97}" * (k % 3) for k in keys], pa.large_string()),
            "f": pa.array(np.where(none > 0.9, np.nan, keys / 8), mask=(none > 0.4) & (none < 0.5)),
            "d": pa.array(keys * 10**12, pa.int64()).cast(pa.decimal128(38, 2)),
            "nothing": pa.nulls(size, pa.string()),
        }
    )


QUERIES = (
    "SELECT s, count(*), sum(n) FROM t GROUP BY s",
    "SELECT u, s, min(n), count(DISTINCT f) FROM t GROUP BY u, s",
    "SELECT f, d, s, max(n) FROM t WHERE n % 3 > 0 GROUP BY f, d, s",
    "SELECT count(DISTINCT s), count(DISTINCT d), count(DISTINCT nothing) FROM t",
    "SELECT a.s, count(*), sum(b.n) FROM t a, t b WHERE a.s = b.s AND a.n % 7 = 0 AND b.n % 5 = 0 GROUP BY a.s",
    "SELECT a.n, b.u FROM t a LEFT JOIN (SELECT s, f, min(u) AS u FROM t GROUP BY s, f) b ON a.s = b.s AND a.f = b.f",
    "SELECT count(*), sum(b.n) FROM t a JOIN t b ON a.s = b.s WHERE b.n % 3 = 0",
    "SELECT a.n, b.n FROM t a JOIN t b ON a.u = b.u AND a.s = b.s AND a.n < b.n",
    "SELECT n FROM t WHERE u IN (SELECT u FROM t WHERE n % 5 = 0) AND s NOT IN (SELECT s FROM t WHERE n % 7 = 0 AND s <> '')",
    "SELECT a.n, b.n FROM t a FULL JOIN (SELECT * FROM t WHERE n % 2 = 0) b ON a.u = b.u AND a.n = b.n",
    "SELECT a.n, b.k FROM t a JOIN (SELECT DISTINCT u AS k FROM t) b ON a.u = b.k JOIN (SELECT DISTINCT d FROM t) c ON a.d = c.d",
)


CONSUMERS = {
    QUERIES[0],
    QUERIES[3],
    QUERIES[5],
}  # groups, distinct values and a join: a block of one row for one of each


@pytest.mark.parametrize(
    ("block", "sql"),
    [
        pytest.param(block, sql, marks=[] if block == 64 or (block == 1 and sql in CONSUMERS) else pytest.mark.slow)
        for block in (1, 7, 64)
        for sql in QUERIES
    ],
)
def test_rows_are_the_same(sql: str, block: int, tune: Tune) -> None:
    tune(tuning.loops, lookup_least_rows=0, lookup_table_rows=0, lookup_rows=block)
    tune(tuning.encoding, largest_dictionary=0)
    sizes = ((0, 1), (1, 1), (63, 9), (64, 64), (65, 2), (1000, 700))
    for size, distinct in sizes if block == 64 else sizes[1::2]:
        assert_same(sql, {"t": table(size, distinct)}, ranks=(1,) if size < 64 else (1, 3))


def test_a_table_that_has_to_grow(tune: Tune, monkeypatch: pytest.MonkeyPatch) -> None:
    grown: list[GroupRun] = []
    grow = GroupRun.grow

    def growing(run: GroupRun) -> bool:
        grown.append(run)
        return grow(run)

    monkeypatch.setattr(GroupRun, "grow", growing)
    tune(tuning.loops, lookup_least_rows=0)
    tune(tuning.encoding, sample=64)
    rng = np.random.default_rng(3)
    few = [f"k{n % 50}" for n in range(4_000)]  # what the sample sees
    many = [f"m{n}" for n in rng.permutation(6_000)]
    assert_same("SELECT s, count(*) FROM t GROUP BY s", {"t": pa.table({"s": few + many})})
    assert grown
