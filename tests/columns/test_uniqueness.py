"""Proofs that integers are unique: the compiled loop and NumPy, with one bitmap and with several, against sets."""

from __future__ import annotations

import random

import numpy as np
import pytest

from gquery import tuning
from gquery.api.startup import load_engine
from gquery.columns.statistics import all_differ
from gquery.expression.types import Bounds
from tests.support.tuned import Tune


@pytest.mark.parametrize("compiled_rows", [1, 1 << 20], ids=["a loop", "NumPy"])
@pytest.mark.parametrize("kind", ["int32", "uint32", "int64"])
def test_values_differ_as_sets_say(kind: str, compiled_rows: int, tune: Tune) -> None:
    load_engine()
    chance = random.Random(7)
    for _ in range(40):
        tune(tuning.encoding, compiled_rows=compiled_rows, marked=chance.choice([32, 64, 1 << 12]), marked_rows=5, step=7)
        rows = chance.randrange(1, 90)
        low = chance.choice([0, 2**31 - 400] + [-300, -(2**31)] * (kind != "uint32") + [2**40, -(2**63)] * (kind == "int64"))
        values = [low + n for n in chance.sample(range(chance.randrange(rows, 4 * rows)), rows)]
        if chance.random() < 0.5:
            values[chance.randrange(rows)] = chance.choice(values)
        found = all_differ(np.array(values, kind), Bounds(min(values), max(values)))
        assert found is (len(set(values)) == rows), values


def test_values_far_apart_are_not_looked_at() -> None:
    assert not all_differ(np.array([1, 1000], np.int64), Bounds(1, 1000))
    assert all_differ(np.array([], np.int64), Bounds(0, 0))
