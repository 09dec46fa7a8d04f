"""Small arrays of what ranks hand over come by one kernel; long ones, those that are there, and what is no array stay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

from gquery import tuning
from gquery.columns.arrow import export_column
from gquery.columns.encode_strings import characters_column
from gquery.columns.import_arrow import import_table
from gquery.columns.table import ColumnData
from gquery.device.address_space import owner_of
from gquery.device.buffer import Buffer
from gquery.device.device import Device, cpu_device
from gquery.distributed.movable import concatenated, moved
from gquery.execution import exchange, hashed_rows
from gquery.execution import near as module
from gquery.execution.exchange import brought_near
from gquery.execution.near import near
from gquery.kernels.builtin import elements
from gquery.kernels.builtin.elements import copy_together
from gquery.operators import combined_arrays
from gquery.operators.base import Frame
from gquery.operators.merge_groups import PartGroups
from tests.support.harness import assert_same
from tests.support.tuned import Tune

HERE, THERE = Device("cpu", 71), Device("cpu", 72)


def everywhere(one: Device, other: Device) -> bool:
    return True


@pytest.mark.parametrize("sizes", [[1], [7, 8, 9], [0, 3, 0], [5000, 1, 4096, 17], [1] * 40])
@pytest.mark.parametrize("interpreted", [True, False])
def test_copies_of_any_lengths(sizes: list[int], interpreted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes around each copy stay as they were."""
    monkeypatch.setattr("gquery.kernels.builtin.define.is_interpreted", lambda kernel, rows: interpreted)
    rng = np.random.default_rng(sum(sizes))
    sources = [rng.integers(0, 256, n, dtype=np.uint8) for n in sizes]
    memory = [np.full(n + 32, 9, np.uint8) for n in sizes]
    copy_together([(s, m[16 : 16 + s.size]) for s, m in zip(sources, memory, strict=True)], cpu_device())
    for source, made in zip(sources, memory, strict=True):
        assert (made[16 : 16 + source.size] == source).all()
        assert (made[:16] == 9).all() and (made[16 + source.size :] == 9).all()


def arrays(device: Device) -> list[Any]:
    return [
        device.from_host(np.arange(n, dtype=t)) for n, t in ((5, "int64"), (3, "uint8"), (1, "float64"), (9, "uint32"))
    ]


def test_all_that_is_made_of_arrays() -> None:
    a, b, c, d = arrays(THERE)
    rows = pa.table({"n": [1, 2, 3], "s": ["a", "", "ccc"], "v": pa.array([1.5, None, 2.5])})
    columns = moved(Frame(dict(enumerate(import_table(rows).columns)), 3), THERE).columns
    value = ([a, (b, 7)], None, PartGroups(c, (d,), (None,)), Frame(columns, 3, {7: columns[1]}), "text")
    with patch.object(module, "copy_together", wraps=copy_together) as copied:
        (made,) = near([value], HERE, everywhere)
    assert copied.call_count == 1 and len(copied.call_args[0][0]) >= 4
    (x, (y, seven)), none, groups, frame, text = made
    assert (seven, none, text, groups.texts) == (7, None, "text", (None,))
    for own, other in ((x, a), (y, b), (groups.encoded, c), (groups.words[0], d)):
        assert (
            owner_of(own) == 71
            and own.dtype == other.dtype
            and (own == other).all()
            and not np.shares_memory(own, other)
        )
    assert frame.rows == 3 and frame.rank_values[7].data.on(HERE) is frame.columns[1].data.on(HERE)
    for i, column in frame.columns.items():
        assert all(buffer.devices == (HERE,) for buffer in column.buffers)
        assert export_column(moved(frame, cpu_device()).columns[i]).to_pylist() == rows.column(i).to_pylist()


@pytest.mark.parametrize("reach", [True, False])
def test_what_stays(reach: bool) -> None:
    limit = tuning.transfers.together_bytes
    long, empty, own = THERE.zeros(limit + 1, "uint8"), THERE.zeros(0, "int64"), HERE.zeros(4, "int64")
    strided, small = THERE.zeros(8, "int64")[::2], THERE.full(2, 5, "int64")
    found = near([[long, empty, own, strided], [small]], HERE, lambda one, other: reach)
    assert all(x is y for x, y in zip(found[0], [long, empty, own, strided], strict=True) if y is not empty)
    assert found[0][1].size == 0
    assert (found[1][0] is small) is not reach and (found[1][0] == 5).all()
    assert brought_near([small], HERE)[0] is small  # no GPU


@pytest.mark.parametrize("limit", [0, 30, 60, 1 << 20])
def test_all_of_a_column_comes_or_nothing(limit: int, tune: Tune) -> None:
    """A recording would wait for the host where characters of a text are elsewhere than its offsets."""
    tune(tuning.transfers, together_bytes=limit)
    texts = [["x" * 50, "y"], ["a", "bc"], ["", ""]]
    columns = {n: text_on(THERE, words) for n, words in enumerate(texts)}
    (made,) = near([Frame({**columns, 7: columns[0]}, 2)], HERE, everywhere)
    for i, column in made.columns.items():
        assert len({b.devices for b in column.buffers}) == 1
        assert export_column(moved(made, cpu_device()).columns[i]).to_pylist() == texts[i % 7]
    came = [made.columns[i].data.is_on(HERE) for i in range(3)]
    assert came == [limit > 50, limit > 0, limit > 0]


def text_on(device: Device, words: list[str]) -> ColumnData:
    ends = np.cumsum([0, *map(len, words)]).astype(np.int32)
    characters = np.frombuffer("".join(words).encode() or b"", np.uint8)
    validity = Buffer(device.from_host(np.ones(len(words), np.uint8)), device)
    data = Buffer(device.from_host(ends), device), Buffer(device.from_host(characters), device)
    return characters_column(*data, validity, 0, len(words))


def test_an_array_that_comes_twice_is_copied_once() -> None:
    array = THERE.full(3, 4, "int64")
    given: list[Any] = [array, [array]]
    with patch.object(module, "copy_together", wraps=copy_together) as copied:
        one, two = near(given, HERE, everywhere)
    assert len(copied.call_args[0][0]) == 1 and two[0] is one and (one == 4).all()


TABLES = {
    "t": pa.table(
        {
            "k": [(7 * n) % 997 for n in range(3000)],
            "n": pa.array([None if n % 5 == 0 else n for n in range(3000)]),
            "s": [f"text {n % 13}" * (n % 3) for n in range(3000)],
            "f": [n / 8 for n in range(3000)],
        }
    ),
    "u": pa.table({"k": list(range(0, 997, 2)), "w": list(range(499))}),
}
QUERIES = [
    "SELECT k, sum(n), count(*), min(s) FROM t GROUP BY k",
    "SELECT s, sum(f), count(n) FROM t GROUP BY s",
    "SELECT s, n, f FROM t WHERE k < 40 ORDER BY n DESC NULLS FIRST LIMIT 7",
    "SELECT sum(n), max(f), count(DISTINCT s) FROM t",
    "SELECT count(*), sum(w), sum(n) FROM t JOIN u USING (k)",
    "SELECT k, s, row_number() OVER (PARTITION BY k ORDER BY n, f) FROM t",
    "SELECT t.n, u.w FROM t FULL JOIN u ON t.k = u.k + 1",
]


@pytest.mark.parametrize("few", [True, False])
@pytest.mark.parametrize("sql", QUERIES)
def test_queries_of_ranks(sql: str, few: bool, monkeypatch: pytest.MonkeyPatch, tune: Tune) -> None:
    """Ranks take what others hand over as GPUs do; where ``few`` bytes are copied together, others are by themselves."""
    copied = []

    def taken(values: Sequence[Any], device: Device) -> list[Any]:
        found = near(values, device, everywhere)
        copied.append(any(x is not y for x, y in zip(found, values, strict=True)))
        return found

    tune(tuning.transfers, together_bytes=64 if few else 1 << 20)
    for where in (exchange, hashed_rows):
        monkeypatch.setattr(where, "brought_near", taken)
    assert_same(sql, TABLES, targets=("cpu",), ranks=(1, 3))
    assert few or any(copied)


@pytest.mark.parametrize("most", [64, 1 << 20])
@pytest.mark.parametrize("sql", QUERIES)
def test_pieces_that_are_copied_together(sql: str, most: int, monkeypatch: pytest.MonkeyPatch, tune: Tune) -> None:
    """Columns of all ranks become one by one kernel for all short pieces: numbers, flags, characters."""
    copied = []

    def noted(pairs: Sequence[Any], device: Device) -> None:
        copied.append(len(pairs))
        copy_together(pairs, device)

    tune(tuning.transfers, together_bytes=most)
    monkeypatch.setattr(combined_arrays, "reads_there", everywhere)
    monkeypatch.setattr(elements, "copy_together", noted)
    assert_same(sql, TABLES, targets=("cpu",), ranks=(1, 3))
    assert most == 64 or "sum(n), max(f)" in sql or max(copied, default=0) > 1


def test_pieces_of_several_types_with_and_without_nulls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(combined_arrays, "reads_there", everywhere)
    rows = [
        pa.table({"n": pa.array([1, None, 3]), "s": ["a", "", "ccc"], "f": [1.5, 2.5, -0.0]}),
        pa.table({"n": pa.array([10**12]), "s": pa.array([None], pa.string()), "f": [7.0]}),
        pa.table({"n": pa.array([], pa.int64()), "s": pa.array([], pa.string()), "f": pa.array([], pa.float64())}),
        pa.table({"n": pa.array([-5, 6]), "s": ["longer", "text"], "f": [float("nan"), 0.0]}),
    ]
    frames = [
        moved(Frame(dict(enumerate(import_table(t).columns)), t.num_rows), Device("cpu", 80 + k)) for k, t in enumerate(rows)
    ]
    found = concatenated(frames, (), HERE)
    assert found.rows == 6
    for i, name in enumerate(rows[0].column_names):
        want = [v for t in rows for v in t.column(name).to_pylist()]
        assert str(export_column(moved(found, cpu_device()).columns[i]).to_pylist()) == str(want)
