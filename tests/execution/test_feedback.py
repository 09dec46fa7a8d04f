"""What runs of a program leave for later ones: beside the program, typed, and right under several threads."""

from __future__ import annotations

import threading
from dataclasses import fields

import numpy as np
import pyarrow as pa

import gquery
from gquery.execution.feedback import RunFeedback, Store
from gquery.execution.stage_feedback import NO_FEEDBACK
from gquery.planner.physical import Build, Pipeline, Program


def test_a_program_holds_its_plan_alone() -> None:
    assert {f.name for f in fields(Program)} == {"stages", "outputs", "names", "fetch"}


def test_threads_add_up_what_they_report() -> None:
    feedback = RunFeedback()
    begin = threading.Barrier(8)

    def report(n: int) -> None:
        begin.wait()
        for _ in range(500):
            feedback.interpreted(1, 1.0)
            feedback.grew(1, n)

    threads = [threading.Thread(target=report, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    known = feedback.stage(1)
    assert (known.interpreted_seconds, known.capacity) == (4000.0, 7)
    assert feedback.stage(2) is NO_FEEDBACK


def test_one_thread_prepares() -> None:
    feedback = RunFeedback()
    first: list[bool] = []
    threads = [threading.Thread(target=lambda: first.append(feedback.begin_preparing(False))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(first) == [False] * 7 + [True]
    assert feedback.begin_preparing(True), "kernels that count are others"


def test_a_store_makes_a_thing_once() -> None:
    store, made = Store[int, str](), []

    def make() -> str:
        made.append(1)
        return "made"

    assert store.get(1, make) is store.get(1, make) == "made"
    assert (len(made), list(store)) == (1, [1])


def test_a_kept_plan_knows_from_its_first_run_that_keys_stand_twice() -> None:
    keys = np.arange(6_000) * 7919
    np.random.default_rng(3).shuffle(keys)
    keys[4_001] = keys[126]
    with gquery.connect(device="python") as connection:
        connection.register("b", pa.table({"k": keys, "v": np.arange(6_000)}))
        connection.register("p", pa.table({"k": np.tile(keys[::7], 20), "w": np.arange(len(keys[::7]) * 20)}))
        text = "SELECT sum(p.w), sum(b.v), count(*) FROM p JOIN b ON p.k = b.k"
        assert connection.sql(text).fetchall() == connection.sql(text).fetchall()
        (kept,) = connection._plans.values()
        assert kept.program is not None
        builds = [s for s in kept.program.stages if isinstance(s.work, Pipeline) and isinstance(s.work.sink, Build)]
        assert [kept.feedback.stage(s.number).duplicate_keys for s in builds] == [True]
