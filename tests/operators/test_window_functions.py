"""Window functions over frames made by hand: random calls beside DuckDB's answers."""

from __future__ import annotations

import random

import pytest

from gquery.device.device import cpu_device
from tests.support.window_cases import arrow_of, found_of, frame_of, random_case, random_rows, same, wanted_of


@pytest.mark.parametrize("seed", range(20))
def test_random_calls(seed: int) -> None:
    r = random.Random(seed)
    for _ in range(20):
        rows = random_rows(r, r.choice((0, 1, 2, 7, 20, 60)))
        case = random_case(r)
        found = found_of(case, frame_of(rows, cpu_device()), cpu_device())
        wanted = wanted_of(case, arrow_of(rows))
        assert len(found) == len(wanted) and all(map(same, found, wanted)), f"{case.sql}\n{rows}\n{found}\n{wanted}"
