"""The model of several GPUs: what it is given of the ranks, and its prediction for two of them beside what these took."""

from __future__ import annotations

import pytest

from benchmarks import rank_model
from gquery import tuning


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
