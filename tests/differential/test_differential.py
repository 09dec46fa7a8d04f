"""The SQL surface against DuckDB: every case interpreted on one or on several ranks, a chosen part of them compiled for the
CPU on the other number of ranks; every case on a GPU. The slow tests take every case in all ways."""

from __future__ import annotations

from zlib import crc32

import pytest

from tests.support.cases import Case, read_cases
from tests.support.harness import assert_same

CASES = read_cases()
INTERPRETED = [case for case in CASES if "compiled" not in case.tags]
COMPILED = [case for case in CASES if case.tags & {"cpu", "compiled"}]


def _ranks(case: Case, turn: int) -> int:
    """The number of ranks that a case is compiled on (0) or interpreted on (1): another one, where it has several."""
    return case.ranks[(crc32(case.name.encode()) + turn) % len(case.ranks)]


@pytest.mark.parametrize("case", INTERPRETED, ids=lambda c: c.name)
def test_interpreted(case: Case) -> None:
    assert_same(case.sql, case.tables(), case.ordered, targets=("python",), ranks=(_ranks(case, 1),))


@pytest.mark.parametrize("case", COMPILED, ids=lambda c: c.name)
def test_compiled_for_the_cpu(case: Case) -> None:
    assert_same(case.sql, case.tables(), case.ordered, targets=("cpu",), ranks=(_ranks(case, 0),))


@pytest.mark.cuda
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_on_a_gpu(case: Case) -> None:
    assert_same(case.sql, case.tables(), case.ordered, targets=("cuda",), ranks=case.ranks)


@pytest.mark.slow
@pytest.mark.parametrize("case", INTERPRETED, ids=lambda c: c.name)
def test_interpreted_on_each_number_of_ranks(case: Case) -> None:
    assert_same(case.sql, case.tables(), case.ordered, targets=("python",), ranks=case.ranks)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_all_compiled_for_the_cpu(case: Case) -> None:
    """As kernels proper."""
    assert_same(case.sql, case.tables(), case.ordered, targets=("cpu",), ranks=case.ranks, settings={})
