"""Kernels of sums over joins with several matches a row, compiled for GPUs in processes of their own: libNVVM ended the
process for one in a thousand, where products were added in the loop over the matches (`kernels.lowering.grid`)."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery.kernels.ir import For, If, Let
from gquery.kernels.ir.read import read_lines
from gquery.kernels.lowering.grid import with_products_apart

FOUND = (
    "SELECT avg(a.x) FILTER (WHERE a.x > 1), max(CAST(a.ts AS TIME)) FILTER (WHERE a.x > 1), "
    "sum(a.u) FILTER (WHERE b.y IS NOT NULL), sum(b.u * b.u), covar_pop(a.dec, b.dec), "
    "max(CAST(a.ts AS TIME)) FILTER (WHERE b.y IS NOT NULL) "
    "FROM a JOIN b ON a.k = b.k JOIN b c ON c.k = a.k"
)
_COMPILE = """
import sys
from gquery.kernels.targets.cuda_llvm import compiled
for module in sys.stdin.read().split(chr(0)):
    compiled(module, (int(sys.argv[1]), int(sys.argv[2])), *sys.argv[3:])
"""
ARCHITECTURES = [(9, 0), *(pytest.param(cc, marks=pytest.mark.slow) for cc in ((7, 5), (8, 0), (10, 0), (12, 0)))]


def _connection() -> gquery.Connection:
    r, rows = np.random.default_rng(1), 200

    def column(low: int, high: int) -> pa.Array:
        return pa.array(r.integers(low, high, rows), mask=r.random(rows) < 0.2)

    columns = {"k": column(0, 20), "s": pa.array([f"t{n % 7}" for n in range(rows)]), "x": column(-9, 9)}
    columns |= {"y": column(-2000, 2000), "d": pa.array(r.random(rows)), "u": pa.array(r.integers(0, 9, rows))}
    columns["dec"] = pa.array([f"{v / 100:.2f}" for v in r.integers(-999, 999, rows)]).cast(pa.decimal128(9, 2))
    columns["ts"] = pa.array(r.integers(0, 10**15, rows)).cast(pa.timestamp("us"))
    table = pa.table(columns)
    return gquery.connect("cpu").register("a", table).register("b", table.slice(0, 100))


def _statements(seed: int, count: int) -> Iterator[str]:
    r = random.Random(seed)
    calls = (
        "sum({0})", "sum({0} * {1})", "var_pop({0})", "regr_sxx({0}, {1})", "covar_pop({0}, {1})", "count({0})", "avg({0})",
        "sum({0} * 3 + {1} * {1})", "max(CAST(a.ts AS TIME))", "sum(a.d)", "fsum({0})", "min({0})",
    )  # fmt: skip
    keys = ("a.k = b.k", "a.s = b.s", "a.k = b.k AND a.x < b.y", "a.s = b.s AND a.k IS DISTINCT FROM b.k")
    for _ in range(count):
        made = []
        for _ in range(r.randint(1, 6)):
            given = [f"{r.choice('ab')}.{r.choice(('x', 'y', 'dec', 'u'))}" for _ in range(2)]
            kept = r.choice(("", "", " FILTER (WHERE a.x > 1)", " FILTER (WHERE b.y IS NOT NULL)"))
            made.append(r.choice(calls).format(*given) + kept)
        kind, more = r.choice(("JOIN", "LEFT JOIN", "FULL JOIN")), r.choice((" JOIN b c ON c.k = a.k", "", ""))
        yield f"SELECT {', '.join(made)} FROM a {kind} b ON {r.choice(keys)}{more}{r.choice((' GROUP BY a.u', '', ''))}"


def _compiles(connection: gquery.Connection, statements: Iterator[str] | tuple[str, ...], cc: tuple[int, int]) -> None:
    from gquery.kernels.targets.cuda_llvm import _module_text

    modules = {k.text: _module_text(k, "k") for sql in statements for k in connection.kernels(sql, target="cuda")}
    assert len(modules) > 1
    command = [sys.executable, "-c", _COMPILE, *map(str, cc)]
    done = subprocess.run(command, input="\0".join(modules.values()), text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize("cc", ARCHITECTURES)
def test_a_kernel_that_ended_the_process(cc: tuple[int, int]) -> None:
    _compiles(_connection(), (FOUND,), cc)


def test_what_ends_the_optimizer_compiles_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel as it was before its products stood apart. (Newer versions of libNVVM may optimize it, too.)"""
    from gquery.kernels.lowering import grid
    from gquery.kernels.targets.cuda_llvm import _module_text

    monkeypatch.setattr(grid, "with_products_apart", lambda block: block)
    modules = [_module_text(k, "k") for k in _connection().kernels(FOUND, target="cuda")]
    command = [sys.executable, "-c", _COMPILE, "9", "0", "-opt=0"]
    done = subprocess.run(command, input="\0".join(modules), text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_random_sums(seed: int) -> None:
    _compiles(_connection(), _statements(seed, 60), (9, 0))


def test_products_of_loops_alone() -> None:
    lines = ["v0 = mul_i64(a, b)", "for j0 in range(v0, v1):", "    v2 = mul_i64(a, a)"]
    lines += ["    if v3:", "        v4 = mul_i64(v2, b)"]
    before, loop = with_products_apart(block := read_lines(*lines))
    assert before == block[0]
    assert isinstance(loop, For) and isinstance(loop.body[1], If)
    products = [loop.body[0], loop.body[1].then[0]]
    texts = [p.value.text() for p in products if isinstance(p, Let)]
    assert texts == ["mul_i64_apart(a, a)", "mul_i64_apart(v2, b)"]
