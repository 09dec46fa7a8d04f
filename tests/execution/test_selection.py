"""The kernel that selects rows before a GPU takes the later steps, here on lanes: what comes behind it counts on all rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from gquery.columns.arrow import export_table
from gquery.device.array import Array
from gquery.distributed.place import Placed
from gquery.execution.attempt import Attempt
from gquery.execution.runner import Runner
from gquery.kernels.builtin import scans
from gquery.kernels.readback import Count
from gquery.operators.base import SinkState
from gquery.operators.group import GroupRun
from gquery.operators.group_state import GroupState
from tests.support.lanes import answer
from tests.support.tuned import Tune

ROWS = 300
FAILING = 20
SQL = "SELECT g, count(*) AS n, sum(far * y) AS s FROM t WHERE far * x < 1000 GROUP BY g"


@pytest.fixture
def selects(tune: Tune) -> None:
    """Every filter has a kernel of its own."""
    tune(tuning.materialization, compacted_least_rows=1, compacted_most_selectivity=1.0, compacted_least_probes=0)


def connection(x: int, y: int) -> gquery.Connection:
    """With a table of which a row in seven passes the filter, whose product is ``2**62 * x`` in one row that does not; that
    of the sum is ``100 * y`` in one that does."""
    some = np.arange(ROWS)
    columns = {"g": some % 5, "far": np.where(some % 7 == 0, 100, 2**40)}
    columns |= {"x": np.ones(ROWS, np.int64), "y": np.ones(ROWS, np.int64)}
    columns["far"][FAILING], columns["x"][FAILING], columns["y"][21] = 2**62, x, y
    return gquery.connect(device="cpu").register("t", pa.table(columns))


def test_rows_are_selected(selects: None, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = np.bincount(np.arange(0, ROWS, 7) % 5).tolist()
    columns = export_table(answer(connection(1, 1), SQL, monkeypatch)).to_pydict()
    assert dict(zip(columns["g"], columns["n"], strict=True)) == dict(enumerate(counts))


def test_groups_have_room_for_the_rows_that_are_selected(
    selects: None, tune: Tune, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table for as many groups as were estimated takes a GPU longer to clear and to look through than to fill."""
    tune(tuning.group_layouts, least_hash_slots=2)
    capacities: list[int] = []
    make_state = GroupRun.make_state

    def made(self: GroupRun) -> GroupState:
        capacities.append(self.capacity)
        return make_state(self)

    monkeypatch.setattr(GroupRun, "make_state", made)
    some = np.arange(ROWS)
    table = pa.table({"k": some * 10**12, "far": np.where(some % 7 == 0, 100, 2**40), "x": np.ones(ROWS, np.int64)})
    sql = "SELECT t.k + n AS k, count(*) AS n FROM t, m WHERE far * x < 1000 GROUP BY t.k + n"
    for rows in (1, 8):  # from each row that passes: more groups than rows, and the table grows
        db = gquery.connect("cpu").register("t", table).register("m", pa.table({"n": np.arange(rows)}))
        columns = export_table(answer(db, sql, monkeypatch)).to_pydict()
        assert sorted(columns["k"]) == [k * 10**12 + n for k in range(0, ROWS, 7) for n in range(rows)]
        assert set(columns["n"]) == {1}
    assert 0 < capacities[0] <= 128, "two slots a row"


@pytest.mark.parametrize(("x", "y", "stops"), [(4, 1, None), (1, 2**62, "main")], ids=["filter", "sum"])
def test_selecting_goes_on_where_a_value_fails(
    x: int, y: int, stops: str | None, selects: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever runs the kernel a part at a time may leave out rows of the other one, which ends in the error anyway. Bits of rows
    that were left out here would be read as rows, whatever memory held before."""
    run_range, rows_of_bits = Runner._run_range, scans.counted_rows_of_bits
    failed: list[str] = []
    stopped: list[str] = []
    selected: list[list[int]] = []

    def watched(self: Runner, attempt: Attempt, role: str, partition: Placed, states: Sequence[SinkState]) -> None:
        run_range(self, attempt, role, partition, states)
        status = attempt.status[role]
        failed.extend([role] if status is not None and status.any() else [])
        stopped.extend([role] if self._failure(attempt, attempt.units[role])() else [])

    def noted(bits: np.ndarray, most: int, behind: int) -> tuple[Array, Count]:
        rows, count = rows_of_bits(bits, most, behind)
        selected.append(rows.tolist())
        return rows, count

    monkeypatch.setattr(Runner, "_run_range", watched)
    monkeypatch.setattr(scans, "counted_rows_of_bits", noted)
    with pytest.raises(gquery.OutOfRangeError):
        answer(connection(x, y), SQL, monkeypatch)
    assert failed == ["select" if stops is None else stops]
    assert stopped == [role for role in failed if role == stops]
    assert [r for r in selected[0] if r != FAILING] == list(range(0, ROWS, 7))
