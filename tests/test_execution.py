"""Execution: what the interpreter begins and a compiled kernel ends."""

from __future__ import annotations

import pytest

import gquery


class _DueAtCheck:
    """In place of `TRIAL_SECONDS`: the interpreter's trial is over at the n-th look."""

    def __init__(self, n: int) -> None:
        self.left = n

    def __lt__(self, seconds: float) -> bool:
        self.left -= 1
        return self.left == 0


@pytest.mark.parametrize("n", [1, 2, 6, 8])
def test_counts_and_rows_go_over_to_the_compiled_kernel_together(monkeypatch: pytest.MonkeyPatch, n: int) -> None:
    """The kernel that counts and the one that writes are interpreted first; whichever takes too long, both agree on rows."""
    connection = gquery.connect(device="cpu", partitions=1)
    connection.sql("SET interpret_limit = 100000000")
    connection.sql("CREATE TABLE r AS SELECT i, i % 3000 AS k FROM range(6000) AS q(i)")
    monkeypatch.setattr("gquery.execution.runner.TRIAL_SECONDS", _DueAtCheck(n))
    sql = "SELECT a.i, b.i FROM r AS a JOIN r AS b ON a.k = b.k WHERE a.i >= 1500"
    rows = sorted(connection.sql(sql).fetchall())
    assert rows == [(a, b) for a in range(1500, 6000) for b in (a % 3000, a % 3000 + 3000)]
