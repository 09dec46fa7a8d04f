"""The model of several GPUs: what it is given of the ranks, and its prediction for two of them beside what these took."""

from __future__ import annotations

import pytest

from benchmarks import rank_model
from gquery import tuning
from gquery.tuning.dividing import Distribution
from gquery.tuning.record import described


@pytest.mark.slow
def test_two_gpus_are_predicted_within_a_fifth() -> None:
    predicted = rank_model.times(2)
    assert abs(sum(predicted) / sum(rank_model.TWO) - 1) <= 0.2
    near = [abs(p / t - 1) <= 0.25 for p, t in zip(predicted, rank_model.TWO, strict=True)]
    assert sum(near) >= 20, near


def test_more_ranks_read_less_each_and_get_more() -> None:
    with tuning.using(rank_model.scaled(100.0)):
        found = []
        for ranks in (1, 2, 4):
            with rank_model.connection(ranks) as db:
                found.append(rank_model.shares(db, 3, ranks))
    one, two, four = found
    assert one.read > 1.8 * two.read > 3 * four.read > 0 and one.received == 0 < two.received
    assert rank_model.predicted(3, one, two, 2, 100.0) < rank_model.alone_ms(3, 100.0)


def test_all_thresholds_grow_with_the_tables() -> None:
    """One that was left as it is had Q21's ranks merge 2.4 GB, which they do not."""
    known, small = Distribution(), rank_model.scaled(100.0)
    grow = {n.name for n in described(known) if n.unit in ("rows", "bytes", "us")}
    for name in grow - {"extent_rows", "uneven_rows", "text_bytes"}:
        assert getattr(small, name) == pytest.approx(getattr(known, name) / 10_000, abs=1), name


def test_a_query_that_one_device_runs_alone_is_told_apart() -> None:
    with tuning.using(rank_model.scaled(100.0)), rank_model.connection(2) as db:
        found = rank_model.shares(db, 16, 2)
    assert found.received == found.exchanges == 0 < found.read
