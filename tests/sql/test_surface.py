"""Every construct that the docs list runs on every target and gives DuckDB's rows."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest

from gquery.sql.surface import SURFACE, Construct
from tests.support.harness import assert_same

TABLES = {
    "t": pa.table(
        {
            "a": pa.array([1, 2, None, 2, 3, 1], pa.int32()),
            "b": [0.5, None, -1.0, 2.0, 2.0, 7.25],
            "s": ["a", "b", "b", None, "a", "c"],
            "day": [datetime.date(2024, 1, n) for n in (31, 1, 2, 29, 30, 3)],
            "moment": [datetime.datetime(2024, 2, n, n, 30) for n in range(1, 7)],
        }
    ),
    "u": pa.table(
        {
            "a": pa.array([1, 2, 5, None], pa.int32()),
            "lo": pa.array([0, 1, 1, 2], pa.int32()),
            "hi": pa.array([1, 3, 2, None], pa.int32()),
        }
    ),
}
CONSTRUCTS = [c for constructs in SURFACE.values() for c in constructs]


@pytest.mark.parametrize("construct", CONSTRUCTS, ids=lambda c: c.name)
def test_interpreted(construct: Construct) -> None:
    assert_same(construct.sql, TABLES, construct.ordered, targets=("python",))


@pytest.mark.slow
@pytest.mark.parametrize("construct", CONSTRUCTS, ids=lambda c: c.name)
def test_compiled(construct: Construct) -> None:
    assert_same(construct.sql, TABLES, construct.ordered, targets=("cpu",))


@pytest.mark.cuda
@pytest.mark.parametrize("construct", CONSTRUCTS, ids=lambda c: c.name)
def test_on_a_gpu(construct: Construct) -> None:
    assert_same(construct.sql, TABLES, construct.ordered, targets=("cuda",))


def test_names_differ() -> None:
    assert len({c.name for c in CONSTRUCTS}) == len(CONSTRUCTS)
