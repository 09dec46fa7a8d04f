"""The SQL surface against DuckDB: every case on one and on several ranks, a chosen part of them compiled for the CPU, the others
interpreted; every case on a GPU."""

from __future__ import annotations

from zlib import crc32

import pytest

from tests.support.cases import Case, read_cases
from tests.support.harness import assert_same

CASES = read_cases()
INTERPRETED = [case for case in CASES if "compiled" not in case.tags]
COMPILED = [case for case in CASES if case.tags & {"cpu", "compiled"}]


def _compiled_ranks(case: Case) -> int:
    """The number of ranks that a case is compiled on: all have the same primitives, and the slow tests compile it for each."""
    return case.ranks[crc32(case.name.encode()) % len(case.ranks)]


@pytest.mark.parametrize("case", INTERPRETED, ids=lambda c: c.name)
def test_interpreted(case: Case) -> None:
    """On each number of ranks, but for the one that a case is compiled on if it is, and has another."""
    is_compiled = "cpu" in case.tags and len(case.ranks) > 1
    ranks = [r for r in case.ranks if not is_compiled or r != _compiled_ranks(case)]
    assert_same(case.sql, case.tables(), case.ordered, targets=("python",), ranks=ranks)


@pytest.mark.parametrize("case", COMPILED, ids=lambda c: c.name)
def test_compiled_for_the_cpu(case: Case) -> None:
    assert_same(case.sql, case.tables(), case.ordered, targets=("cpu",), ranks=(_compiled_ranks(case),))


@pytest.mark.cuda
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_on_a_gpu(case: Case) -> None:
    assert_same(case.sql, case.tables(), case.ordered, targets=("cuda",), ranks=case.ranks)


@pytest.mark.slow
@pytest.mark.parametrize("case", [c for c in INTERPRETED if "cpu" in c.tags], ids=lambda c: c.name)
def test_interpreted_where_it_is_compiled(case: Case) -> None:
    assert_same(case.sql, case.tables(), case.ordered, targets=("python",), ranks=case.ranks)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_all_compiled_for_the_cpu(case: Case) -> None:
    assert_same(case.sql, case.tables(), case.ordered, targets=("cpu",), ranks=case.ranks)
