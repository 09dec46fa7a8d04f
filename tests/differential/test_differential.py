"""The SQL surface against DuckDB: every case interpreted, a chosen part compiled for the CPU, every case on a GPU."""

from __future__ import annotations

from zlib import crc32

import pytest

from tests.support.cases import Case, read_cases
from tests.support.harness import assert_same

CASES = read_cases()
INTERPRETED = [case for case in CASES if "compiled" not in case.tags]
COMPILED = [case for case in CASES if case.tags & {"cpu", "compiled"}]


@pytest.mark.parametrize("case", INTERPRETED, ids=lambda c: c.name)
def test_interpreted(case: Case) -> None:
    assert_same(case.sql, case.tables(), case.ordered, targets=("python",), ranks=case.ranks)


@pytest.mark.parametrize("case", COMPILED, ids=lambda c: c.name)
def test_compiled_for_the_cpu(case: Case) -> None:
    """On one of the numbers of ranks: all have the same primitives, every case is interpreted on each, and the slow tests compile
    it for each."""
    ranks = case.ranks[crc32(case.name.encode()) % len(case.ranks)]
    assert_same(case.sql, case.tables(), case.ordered, targets=("cpu",), ranks=(ranks,))


@pytest.mark.cuda
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_on_a_gpu(case: Case) -> None:
    assert_same(case.sql, case.tables(), case.ordered, targets=("cuda",), ranks=case.ranks)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_all_compiled_for_the_cpu(case: Case) -> None:
    assert_same(case.sql, case.tables(), case.ordered, targets=("cpu",), ranks=case.ranks)
