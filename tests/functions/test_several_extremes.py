"""The n least and greatest values of long and short groups are those of a sort, which keeps equal ones as they come."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

import gquery


@pytest.mark.parametrize("kind", ["int", "double", "text"])
@pytest.mark.parametrize("span", [2, 30, 100_000])
def test_several_are_the_first_of_a_sort(kind: str, span: int) -> None:
    rng = random.Random(f"{kind} {span}")

    def value() -> Any:
        n = rng.randint(-span, span)
        return None if rng.random() < 0.1 else n if kind == "int" else n / 4 if kind == "double" else f"v{n}"

    groups = [g for g, size in enumerate((0, 1, 3, 60, 900, 5)) for _ in range(size)]
    rng.shuffle(groups)
    rows = [(g, value(), rng.choice((1, 2, 7, 40)), i) for i, g in enumerate(groups)]
    table = pa.table({name: [row[at] for row in rows] for at, name in enumerate("gyni")})
    with gquery.connect("cpu") as db:
        db.register("t", table)
        for extreme, last in (("min", False), ("max", True)):
            ask = f"SELECT g, arg_{extreme}(i, y, n), arg_{extreme}_nulls_last(i, y, 11) FROM t GROUP BY g ORDER BY g"
            for g, found, with_nulls in db.sql(ask).fetchall():
                own = [r for r in rows if r[0] == g]
                there = [r for r in own if r[1] is not None]
                there.sort(key=lambda r: r[1], reverse=last)  # stable both ways
                first = next((r[2] for r in own if r[1] is not None), 0)
                assert found == ([r[3] for r in there[:first]] or None)
                assert with_nulls == [r[3] for r in [*there, *(r for r in own if r[1] is None)][:11]]
