"""A rank's part of a column: parts that are cut close to each other have one copy on a device."""

from __future__ import annotations

import numpy as np
import pytest

import gquery
from gquery.columns.table import ColumnData, ColumnStatistics
from gquery.device.buffer import Buffer
from gquery.device.device import Device, cpu_device
from gquery.distributed.parts import part_of
from gquery.expression.types import BIGINT, PhysicalType
from tests.support.frames import column

ROWS = 6400


def numbers(valid: bool = True) -> ColumnData:
    validity = Buffer((np.arange(ROWS) % 5 > 0).astype(np.uint8)) if valid else None
    return ColumnData(BIGINT, PhysicalType.I64, ROWS, Buffer(np.arange(ROWS)), validity, None, None, ColumnStatistics())


@pytest.mark.parametrize("ends", [(3200, 3203), (3203, 3200), (3200, 3290)])
def test_parts_near_each_other_share_a_copy(ends: tuple[int, int]) -> None:
    numbered, device = numbers(), Device("cpu", 1)
    made = []
    for middle in ends:
        for low, high in ((0, middle), (middle, ROWS)):
            part = part_of(numbered, low, high)
            assert part is part_of(numbered, low, high) and part.length == high - low
            values = part.data.on(device)
            assert values.tolist() == list(range(low, high))
            assert part.validity is not None
            assert part.validity.on(device).tolist() == [int(n % 5 > 0) for n in range(low, high)]
            made.append(values)
    assert np.shares_memory(made[0], made[2]) and np.shares_memory(made[1], made[3])
    assert not np.shares_memory(made[0], made[1])


def test_parts_far_from_each_other_do_not() -> None:
    numbered, device = numbers(valid=False), Device("cpu", 1)
    a, b = part_of(numbered, 0, 3200), part_of(numbered, 0, 4000)
    assert not np.shares_memory(a.data.on(device), b.data.on(device))
    assert b.data.on(device).tolist() == list(range(4000))


def test_text_has_no_characters_but_its_own() -> None:
    texts = [None if n % 7 == 0 else f"text {n}" for n in range(ROWS)]
    part = part_of(column(texts, PhysicalType.STRING32, cpu_device()), 100, 200)
    assert part.characters is not None
    assert part.data.host[0] == 0 and part.data.host[-1] == part.characters.length


@pytest.mark.cuda
def test_no_gpu_has_the_whole_of_a_table_that_is_cut(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("cut") / "t.parquet"
    gquery.connect("python").sql(f"COPY (SELECT range AS a, range % 7 AS b FROM range(2000000)) TO '{path}'")
    with gquery.connect("cuda", devices=[0, 0]) as connection:
        connection.sql("SET interpret_limit = 0")
        assert connection.sql(f"SELECT b, sum(a) FROM '{path}' GROUP BY b ORDER BY b").fetchall()[0][0] == 0
        kept = list(connection._cache._columns.values())
        assert kept and not any(b.is_on(Device("cuda")) for c in kept for b in c.buffers)
