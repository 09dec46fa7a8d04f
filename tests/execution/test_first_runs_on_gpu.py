"""First runs on a GPU with an empty cache: what drafts of kernels compute is right, and nothing keeps them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gquery
from gquery import tuning
from gquery.execution.feedback import ReplayProgress
from gquery.execution.recording import Recording
from gquery.execution.template_recording import TemplateRecording
from gquery.kernels.targets.base import Compiled, LaunchedKernel
from gquery.kernels.targets.compilers import compiling_by
from gquery.kernels.targets.cuda import TARGET
from gquery.runtime.recent import Recent
from tests.support import programs
from tests.support.quiet import again_and_again

pytestmark = pytest.mark.cuda


@pytest.fixture
def connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[gquery.Connection]:
    """A connection in a process that has no kernel in memory and none on disk."""
    monkeypatch.setenv("GQUERY_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(TARGET, "_compiled", Recent[Any, Compiled](tuning.compiling.kept_kernels))
    with compiling_by("llvm"), gquery.connect(device="cuda") as made:
        for name, table in programs.tables().items():
            made.register(name, table)
        made.sql("SET interpret_limit = 0")
        yield made


def _drafts() -> list[Compiled]:
    return [made for made in TARGET.held() if made.is_draft]


@pytest.mark.parametrize("name", programs.SMALL)
def test_drafts_are_right(name: str, connection: gquery.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query that runs on drafts, then on the kernels proper."""
    sql = programs.SMALL[name]
    connection.sql("SET replay = false")
    expected = sorted(map(repr, programs.small().sql(sql).fetchall()))
    with monkeypatch.context() as held:
        held.setattr(TARGET, "_is_due", lambda kernel, cc: False)
        for _ in range(3):
            assert sorted(map(repr, connection.sql(sql).fetchall())) == expected
        before = len(_drafts())
        assert before
    for _ in again_and_again(0.02):
        assert sorted(map(repr, connection.sql(sql).fetchall())) == expected
        if len(_drafts()) < before:  # what the first run alone launched stays
            break
    assert len(_drafts()) < before


def test_no_recording_keeps_a_draft(connection: gquery.Connection) -> None:
    """Recorded as soon as it can be, while the kernels proper are compiled."""
    sql = "SELECT s, count(*), sum(x), avg(f) FROM t WHERE y < 40 GROUP BY s ORDER BY s"
    first = connection.sql(sql).fetchall()
    assert _drafts()
    for _ in again_and_again(0.01):
        assert connection.sql(sql).fetchall() == first
        prepared = connection._plans.find(sql, None, connection.settings)
        assert prepared is not None
        progress: ReplayProgress = prepared.feedback.replay
        if progress.recorded is not None:
            break
    assert isinstance(progress.recorded, Recording), progress.refused
    launched = [kept.compiled for kept in progress.recorded.kept if isinstance(kept, LaunchedKernel)]
    assert launched and not any(made.is_draft for made in launched)


def test_no_recording_for_all_constants_keeps_a_draft(connection: gquery.Connection) -> None:
    shape, progress = "SELECT s, count(*), sum(x) FROM t WHERE y < {} GROUP BY s ORDER BY s", None
    for n, _ in enumerate(again_and_again(0.01)):
        sql = shape.format(10 + n % 30)
        connection.sql(sql).fetchall()
        prepared = connection._plans.find(sql, None, connection.settings)
        assert prepared is not None and prepared.feedback.shared is not None
        progress = prepared.feedback.shared.replay
        if progress.recorded is not None or progress.refused is not None:
            break
    assert progress is not None and isinstance(progress.recorded, TemplateRecording), progress
    launched = [kept.compiled for kept in progress.recorded.kept if isinstance(kept, LaunchedKernel)]
    assert launched and not any(made.is_draft for made in launched)


def test_what_is_analyzed_is_no_draft(connection: gquery.Connection) -> None:
    sql = "SELECT far, sum(x) FROM t GROUP BY far"
    connection.sql(f"EXPLAIN ANALYZE {sql}").fetchall()
    assert TARGET.held() and not _drafts()
    connection.sql("SELECT far, min(x) FROM t GROUP BY far").fetchall()
    assert _drafts(), "as ever"
