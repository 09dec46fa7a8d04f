"""Both compilers of the CPU give the same answers: the 22 queries, TPC-DS, and random queries, which DuckDB answers, too.

``COMPILERS=5000 make compilers`` runs more random queries. Numba takes half a second of CPU for each in a process that compiles
all kernels itself, as it has the primitives after the first dozen queries; in workers, which end after some kernels, one to
three. Such a process keeps what it has compiled, so a batch of random queries has one of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from functools import cache

import pytest

import gquery
from benchmarks.rules import workloads
from tests.support.harness import Row, compare
from tests.support.paths import ROOT
from tpch import queries

pytestmark = pytest.mark.slow

COUNT = int(os.environ.get("GQUERY_COMPILERS", "40"))
BATCH = 20 if COUNT <= 200 else 250
SCALE = 0.01
COMPILERS = ("llvm", "numba")
TPCDS_QUERIES = 99


@cache
def connection(workload: str) -> tuple[gquery.Connection, dict[str, str]]:
    """The tables of a workload, which kernels compute on and not the interpreter, and its queries by name."""
    if workload == "tpcds":
        pytest.importorskip("duckdb_extension_tpcds")
    made: workloads.Workload = getattr(workloads, workload)(SCALE)
    opened = made.connect()
    opened.sql("SET interpret_limit = 0")
    return opened, dict(made.texts)


def answer(db: gquery.Connection, sql: str, compiler: str) -> tuple[list[str], Sequence[Row]]:
    db.sql(f"SET compiler = '{compiler}'")
    result = db.sql(sql)
    return [str(t) for t in result.types], result.fetchall()


def same(workload: str, name: str) -> None:
    db, texts = connection(workload)
    try:
        answers = [answer(db, texts[name], compiler) for compiler in COMPILERS]
    except (gquery.NotSupportedError, gquery.BindError) as error:
        if isinstance(error, gquery.BindError) and "rollup" not in str(error):
            raise
        pytest.skip(str(error).splitlines()[0])
    (types, ours), (others, theirs) = answers
    assert types == others
    assert compare(ours, theirs, False, types) is None


@pytest.mark.parametrize("number", queries.NUMBERS)
def test_tpch(number: int) -> None:
    same("tpch", str(number))


@pytest.mark.parametrize("number", range(1, TPCDS_QUERIES + 1))
def test_tpcds(number: int) -> None:
    same("tpcds", str(number))


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("batch", range(max(1, COUNT // BATCH)))
def test_random_queries(batch: int, compiler: str) -> None:
    first = 4_000_000 + batch * BATCH
    arguments = ["--seeds", f"{first}:{first + BATCH}", "--target", "cpu", "--compiler", compiler, "--alone"]
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzzing", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-10_000:] + done.stderr[-3000:]
