"""A rehearsal finds kernels that nobody has compiled yet: the query runs as usual meanwhile, and is recorded once they are there.
Needs no GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from gquery import tuning
from gquery.execution import replay, template_replay
from gquery.execution.feedback import ReplayProgress, TemplateProgress
from gquery.execution.recording import LAYING_OUT
from gquery.kernels.builtin.registry import builtin_kernels
from gquery.kernels.kernel import Kernel
from gquery.kernels.targets.base import KernelsAwaitedError
from tests.support.tuned import Tune

FORESEEN, FOUND, LATER = list({k.digest: k for k in builtin_kernels().values()}.values())[:3]
Step = Callable[[], object]


class PlayedTarget:
    """Has the kernels that a test says."""

    def __init__(self) -> None:
        self.ready = {LAYING_OUT}
        self.rehearsals = 0

    def compile_in_background(self, kernels: Sequence[Kernel]) -> None:
        pass

    def is_at_hand(self, kernels: Sequence[Kernel]) -> bool:
        return set(kernels) <= self.ready

    waiting_for_none = nullcontext

    def rehearse(self) -> None:
        """Needs one kernel more, and another one behind it."""
        self.rehearsals += 1
        for kernel in (FOUND, LATER):
            if kernel not in self.ready:
                raise KernelsAwaitedError([kernel])


@pytest.fixture
def target(monkeypatch: pytest.MonkeyPatch, tune: Tune) -> PlayedTarget:
    tune(tuning.replay, poll_seconds=0.0)
    made = PlayedTarget()
    for module in (replay, template_replay):
        monkeypatch.setattr(module, "get_target", lambda name: made)
        monkeypatch.setattr(module, "lay_out_nothing", lambda device: None)
    return made


@pytest.fixture(params=["a text", "a template"])
def step(request: pytest.FixtureRequest, target: PlayedTarget, monkeypatch: pytest.MonkeyPatch) -> Step:
    """One run further; it gives the result of a rehearsal, or the recording."""
    context: Any = SimpleNamespace(target="cuda", device=None)
    feedback: Any = SimpleNamespace(replay=ReplayProgress(), for_recording=lambda: feedback)
    if request.param == "a text":

        def rehearse(rehearsed: object) -> str:
            target.rehearse()
            return "made"

        way: Any = SimpleNamespace(context=context, kernels=lambda: [FORESEEN], rehearse=rehearse)
        return lambda: replay._rehearse(feedback, way)

    def staged(*_: object) -> tuple[Any, int]:
        target.rehearse()
        return feedback, 1

    monkeypatch.setattr(template_replay, "kernels_to_record", lambda *_: [FORESEEN])
    monkeypatch.setattr(template_replay, "scans_of_other_patterns", lambda _: [])
    monkeypatch.setattr(template_replay, "_kernels_of_counts", lambda _: [])
    monkeypatch.setattr(template_replay, "RecordingDevice", lambda *_: None)
    monkeypatch.setattr(template_replay, "replace", lambda record, **_: record)
    monkeypatch.setattr(template_replay, "_rehearse", staged)
    monkeypatch.setattr(template_replay, "record_stages", lambda *_: "made")
    nothing: Any = SimpleNamespace()
    progress = TemplateProgress()
    return lambda: template_replay._record(nothing, context, feedback, progress, nothing)


def test_a_run_waits_for_no_kernel(target: PlayedTarget, step: Step) -> None:
    assert [step(), step()] == [None, None] and target.rehearsals == 0
    for number, kernel in enumerate((FORESEEN, FOUND), 1):
        target.ready.add(kernel)
        assert [step(), step()] == [None, None]
        assert target.rehearsals == number, "no other one before the kernel is there"
    target.ready.add(LATER)
    assert step() == "made" and target.rehearsals == 3
