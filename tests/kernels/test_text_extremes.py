"""The least and the greatest text of all rows: by Arrow and by a kernel, where columns lie, against Python and DuckDB."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from gquery.columns.table import ColumnData
from gquery.device.buffer import Buffer
from gquery.device.device import cpu_device
from gquery.errors import InterruptError
from gquery.expression.types import VARCHAR, PhysicalType
from gquery.kernels.builtin import text_extremes as module
from gquery.kernels.builtin.define import PART
from gquery.kernels.builtin.gathers import string_views
from gquery.kernels.builtin.text_extremes import text_extremes
from gquery.operators import prefix
from gquery.operators.base import Frame
from gquery.planner.physical import Pipeline, PipelineBreaker, RankEncode, ReadTable
from tests.support.harness import assert_same
from tests.support.tuned import Tune

PIECES = ["", "a", "\0", "b", "é", "z", "\uffff", "\U0001f600", "Item ", "https://"]
"""Of texts that are prefixes of each other, differ by a zero byte, in and behind their eighth byte, and beyond ASCII."""


def texts(seed: int, rows: int, nulls: float = 0.3) -> list[str | None]:
    """Some twice, but not so often that they would be kept as a dictionary."""
    r = random.Random(seed)
    made = (r.choice(["", "https://", "Item of "]) + "".join(r.choices(PIECES, k=r.randrange(9))) for _ in range(rows))
    return [None if r.random() < nulls else text + str(n) * (n % 8 > 0) for n, text in enumerate(made)]


def columns(values: list[str | None]) -> list[ColumnData]:
    """The same texts with 32- and 64-bit offsets, as views, and as a slice of a longer column."""
    longer = plain(["", None, "\U0001f6ff", *values, "", "\U0001f6ff"])
    column = plain(values)
    wide = replace(column, physical_type=PhysicalType.STRING64, data=Buffer(column.data.host.astype(np.int64)))
    assert column.characters is not None
    views = Buffer(string_views(column, cpu_device()))
    seen = replace(column, physical_type=PhysicalType.VIEW, data=views, characters=None, owners=(column.characters,))
    return [column, wide, seen, longer.slice(3, 3 + len(values))]


def plain(values: list[str | None]) -> ColumnData:
    """A column of text with 32-bit offsets, whatever a dictionary would save."""
    data = [(s or "").encode() for s in values]
    offsets = np.cumsum([0, *map(len, data)]).astype(np.int32)
    validity = Buffer(np.array([s is not None for s in values], np.uint8)) if None in values else None
    characters = np.frombuffer(b"".join(data), np.uint8)
    return ColumnData(VARCHAR, PhysicalType.STRING32, len(values), Buffer(offsets), validity, Buffer(characters))


@pytest.mark.parametrize("limit", [0, tuning.built_in_kernels.arrow_text_rows], ids=["kernel", "Arrow"])
@pytest.mark.parametrize("rows", [0, 1, 2, 3, 40, 700])
def test_extremes_of_a_column(limit: int, rows: int, tune: Tune) -> None:
    tune(tuning.built_in_kernels, arrow_text_rows=limit, text_slice=300)
    for seed in range(8):
        values = texts(seed, rows, nulls=(0, 0.3, 1)[seed % 3])
        known = [s.encode() for s in values if s is not None]
        for column in columns(values):
            found = text_extremes(column, 2)
            if found is None:
                assert not known
                continue
            ends = [values[row] for row in found]
            assert [None if s is None else s.encode() for s in ends] == [min(known), max(known)]


@pytest.mark.parametrize(("at", "nulls"), [(PART - 1, False), (2 * PART + 76, True)])
def test_extremes_by_threads(at: int, nulls: bool) -> None:
    """Those of each part of the rows are compared: they may lie in any, the last one, too, which is shorter."""
    rows = 2 * PART + 77
    values: list[str | None] = [f"Item {n:07}" for n in range(rows)]
    if nulls:
        values[1::3] = [None] * len(values[1::3])
    values[at], values[rows // 2] = "Item 9999999", "Item 000000"
    column = plain(values)
    for workers in (1, 2):
        assert text_extremes(column, workers) == (rows // 2, at)


def test_it_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop() -> None:
        raise InterruptError("stopped")

    monkeypatch.setattr(module, "check", stop)
    with pytest.raises(InterruptError):
        text_extremes(columns(["a", "b"])[0], 2)


TABLES = {
    "t": pa.concat_tables(
        pa.table({"n": pa.array(range(size)), "s": pa.array(texts(seed, size)), "u": pa.array(texts(-seed, size, 0))})
        for seed, size in ((1, 800), (2, 1), (3, 1400))  # of fewer different texts a dictionary would be kept
    ),
    "part": pa.table({"s": texts(5, 1900), "u": texts(6, 1900)}).slice(17, 1850),
    "nulls": pa.table({"s": pa.array([None] * 9, pa.string()), "n": range(9)}),
    "empty": pa.table({"s": pa.array([], pa.string()), "n": pa.array([], pa.int64())}),
}


@pytest.mark.parametrize("sql", [
    "SELECT min(s), max(s), min(u), max(u) FROM t",
    "SELECT max(s), count(s), count(*), sum(n) FROM t",
    "SELECT min(s), min(n), any_value(u) FROM t",
    "SELECT min(s), any_value(u), max(u), any_value(u) FROM part",
    "SELECT min(s), max(u) FROM t WHERE n % 3 = 1",
    "SELECT min(s) FROM t WHERE n < 0",
    "SELECT min(s) FILTER (n % 2 = 0), max(s) FROM t",
    "SELECT max(upper(s)), min(s || u), max(substr(s, 2)) FROM t",
    "SELECT min(s), max(s), count(*) FROM nulls",
    "SELECT min(s), max(s) FROM nulls",
    "SELECT min(s), max(s) FROM empty",
    "SELECT max(s), count(*) FROM empty",
    "SELECT n % 5 AS k, min(s), max(u), any_value(u) FROM t GROUP BY 1",
    "SELECT s AS k, min(u), max(s) FROM t GROUP BY 1",
    "SELECT min(m), max(m) FROM (SELECT n % 9 AS k, min(u) AS m FROM t GROUP BY 1)",
    "SELECT * FROM t WHERE s = (SELECT max(s) FROM t) ORDER BY n",
    "SELECT min(a.s), max(b.u) FROM t a JOIN t b ON a.n = b.n",
])  # fmt: skip
@pytest.mark.parametrize("limit", [0, tuning.built_in_kernels.arrow_text_rows], ids=["kernel", "Arrow"])
def test_queries(sql: str, limit: int, tune: Tune) -> None:
    tune(tuning.built_in_kernels, arrow_text_rows=limit)
    assert_same(sql, TABLES, targets=("python",) if "JOIN" in sql else ("python", "cpu"))


def test_nothing_is_copied_for_them() -> None:
    """Text that array functions alone read stays where it lies; where a kernel reads it, it gets 64-bit offsets."""
    connection = gquery.connect(device="cpu").register("t", TABLES["t"])

    def lies(sql: str) -> tuple[ColumnData, ColumnData]:
        materializes, *others = (s.work for s in connection.program(sql, "cpu").stages)
        assert isinstance(materializes, Pipeline)
        assert isinstance(materializes.source, ReadTable)
        assert isinstance(others[0], RankEncode)
        columns = materializes.source.source.load(materializes.source.fields).columns
        frame = Frame({s.column.id: c for s, c in zip(materializes.source.columns, columns, strict=True)}, 2201)
        readers: list[Pipeline | PipelineBreaker] = list(others)
        found = prefix.zero_copy(materializes, frame, cpu_device(), False, readers)
        assert found is not None
        text = others[0].pairs[0][0].column.id
        return frame.columns[text], found.columns[text]

    before, after = lies("SELECT min(u) FROM t")
    assert before.physical_type is PhysicalType.STRING32
    assert after is before
    before, after = lies("SELECT u, max(u) FROM t GROUP BY u")
    assert after.physical_type is PhysicalType.STRING64
    assert after.characters is before.characters
