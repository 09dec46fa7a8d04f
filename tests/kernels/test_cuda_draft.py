"""Drafts of a GPU's kernels: what a first run waits for, until the kernel proper has been compiled beside it. Needs no GPU."""

from __future__ import annotations

import errno
import os
import queue
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from gquery.errors import InternalError
from gquery.kernels.builtin.registry import builtin_kernels
from gquery.kernels.kernel import Kernel
from gquery.kernels.targets import cubin, cuda, cuda_draft, cuda_llvm, workers
from gquery.kernels.targets.base import Compiled, KernelsAwaitedError
from gquery.kernels.targets.cache import KernelCache, KernelSource, kernel_cache
from gquery.kernels.targets.compilers import compiling_by
from gquery.kernels.targets.cubin import cubin_entry
from gquery.kernels.targets.cubin_assembler import assemble
from gquery.kernels.targets.cuda import CudaTarget
from gquery.kernels.targets.cuda_modules import Modules
from gquery.runtime.recent import Recent
from tests.support import programs
from tests.support.paths import ROOT
from tests.support.tuned import Tune

pytest.importorskip("cuda.bindings.nvvm")
HOPPER = (9, 0)


@pytest.fixture
def mine() -> Iterator[workers.Workers]:
    """One process that compiles."""
    made = workers.Workers(1)
    yield made
    made.stop()


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mine: workers.Workers) -> Iterator[CudaTarget]:
    """A target of a GPU that is not there: what it loads are cubins."""
    monkeypatch.setenv("GQUERY_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cuda, "_device", lambda: 0)
    monkeypatch.setattr(cuda, "_capability", lambda device: HOPPER)
    monkeypatch.setattr(Modules, "load", lambda modules, made, kernel: made)
    monkeypatch.setattr(cuda, "workers", lambda: mine)
    made = CudaTarget()
    made._begun.add(HOPPER)  # the built-in kernels are left alone
    with compiling_by("llvm"):
        yield made


def some(count: int) -> list[Kernel]:
    """Kernels of different texts."""
    return list({k.digest: k for k in builtin_kernels().values()}.values())[:count]


def proper(target: CudaTarget, kernel: Kernel) -> Compiled:
    """The kernel once it is no draft any more."""
    until = time.monotonic() + 60
    while (compiled := target.compile(kernel)).is_draft:
        assert time.monotonic() < until
        time.sleep(0.02)
    return compiled


def test_a_draft_is_replaced_by_the_kernel_proper(target: CudaTarget) -> None:
    kernels = some(3)
    drafts = target.compile_many(kernels)
    assert all(d.is_draft for d in drafts)
    assert not target.is_at_hand(kernels) or not target.compile(kernels[0]).is_draft
    made = [proper(target, k) for k in kernels]
    assert [m.name for m in made] == [target._source(k).source.name for k in kernels]
    assert {d.name for d in drafts}.isdisjoint({m.name for m in made})
    assert target.is_at_hand(kernels)
    assert [target.compile(k) for k in kernels] == made  # which stay
    expected = [CudaTarget().compile_cubin(k, HOPPER) for k in kernels]
    assert [m.registers for m in made] == [e.registers for e in expected]


def test_a_query_s_kernels_are_begun_and_waited_for_one_by_one(
    target: CudaTarget, mine: workers.Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What no worker has taken yet, and is wanted, is compiled here."""
    gate, taken, ask = threading.Event(), queue.SimpleQueue[str](), workers._Line.ask

    def held(line: workers._Line, request: workers.Request, is_careful: bool) -> bool:
        taken.put(request[1].name)
        return gate.wait(60) and ask(line, request, is_careful)

    monkeypatch.setattr(workers._Line, "ask", held)
    first, second, third = some(3)
    target.begin(iter([first, second, third]))  # though the worker stands still
    assert taken.get(timeout=60) == cuda_draft.source(first).name
    assert target.compile(third).is_draft
    waiting = threading.Thread(target=target.compile, args=(first,))
    waiting.start()
    assert not target.is_ready(first) and waiting.is_alive()
    gate.set()
    waiting.join(60)
    assert target.is_ready(first) and not target.is_ready(second)
    target.begin([first, third])  # nothing is left to do
    assert target.compile(second).is_draft
    ended(target, mine)


def test_workers_write_the_modules(target: CudaTarget, mine: workers.Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not this process, whose lock queries wait for."""

    def refuse(kernel: Kernel, name: str) -> str:
        raise AssertionError(name)

    kernels = some(3)
    monkeypatch.setattr(cuda_llvm, "_module_text", refuse)
    monkeypatch.setattr(cuda, "made_here", lambda name, source, cc: refuse(kernels[0], source.name))
    with mine._changed:
        mine._start("cuda_draft", least=1)
        assert mine._changed.wait_for(lambda: mine.has_ready, 60)
    target.begin(kernels)
    ended(target, mine)
    assert all(target.compile(k).is_draft for k in kernels)
    assert not any(proper(target, k).is_draft for k in kernels)


def test_many_kernels_are_looked_for_in_one_list(
    target: CudaTarget, mine: workers.Workers, monkeypatch: pytest.MonkeyPatch, tune: Tune
) -> None:
    """Each look for a file that is not there is a call of the system, and slow on some hosts."""
    looked: list[str] = []
    has, read = KernelCache.has, KernelCache.read

    def looks(cache: KernelCache, name: str) -> bool:
        looked.append(name)
        return has(cache, name)

    def reads(cache: KernelCache, name: str) -> bytes | None:
        looked.append(name)
        return read(cache, name)

    monkeypatch.setattr(KernelCache, "has", looks)
    monkeypatch.setattr(KernelCache, "read", reads)
    tune(tuning.compiling, listed_after=4, listed_seconds=1000.0)
    kernels = some(12)
    with mine._changed:  # no worker takes anything
        target.begin(kernels)
        assert len(looked) == 4 and len(mine._open) == 12
        target.begin(kernels)
        assert len(looked) == 4 and len(mine._open) == 12
    ended(target, mine)
    target.begin(kernels)  # the list does not have them, but workers were given them
    assert len(looked) == 4 and not mine._open
    target._asked = Recent(16)  # as another process
    kernel_cache()._listed_at = -1e9
    target.begin(kernels)
    assert len(looked) == 4 and not mine._open
    for kernel in kernels:
        (kernel_cache().path / cubin_entry(cuda_draft.source(kernel), HOPPER)).unlink()
        assert target.compile(kernel).is_draft  # what is gone is made again


@pytest.mark.parametrize("records", [True, False], ids=["recorded", "rehearsed"])
def test_a_recording_waits_for_the_kernel_proper(target: CudaTarget, records: bool) -> None:
    first, second = some(2)
    draft = target.compile(first)
    with target.noting() if records else target.without_drafts():
        assert not target.compile(first).is_draft
        assert not target.compile(second).is_draft
    assert draft.is_draft
    assert not target.compile(first).is_draft
    assert target.compile(some(3)[2]).is_draft  # as ever


@pytest.mark.parametrize("many", [False, True], ids=["one", "many"])
def test_a_rehearsal_waits_for_no_compiler(target: CudaTarget, mine: workers.Workers, many: bool) -> None:
    """It says what is to be compiled first: a kernel of which there is nothing, at once; drafts that it took, at the end."""
    kernels = some(2 if many else 1)

    def rehearsed() -> list[Compiled]:
        with target.waiting_for_none():
            return target.compile_many(kernels) if many else [target.compile(k) for k in kernels]

    def awaited() -> tuple[Kernel, ...]:
        with pytest.raises(KernelsAwaitedError) as raised:
            rehearsed()
        return raised.value.kernels

    assert awaited() == tuple(kernels)
    assert not target.held()
    ended(target, mine)
    assert awaited() == tuple(kernels)
    assert {made.kernel for made in target.held()} == set(kernels) and all(made.is_draft for made in target.held())
    until = time.monotonic() + 60
    while not target.is_at_hand(kernels):
        assert time.monotonic() < until
        time.sleep(0.02)
    made = rehearsed()
    assert not any(m.is_draft for m in made)
    with target.noting():
        assert [target.compile(k) for k in kernels] == made  # a recording loads nothing
    assert target.compile(some(3)[2]).is_draft  # as ever


@pytest.mark.parametrize("foreseen", [0, 1, 3])
@pytest.mark.parametrize("keeps", [True, False], ids=["kept", "not kept"])
def test_rehearsals_come_to_an_end(
    foreseen: int, keeps: bool, target: CudaTarget, mine: workers.Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As recordings go about it: what a rehearsal says is waited for, and nothing else compiles these kernels. Some are foreseen,
    the others met one behind the other; where workers fail to keep what they compile, this process does it."""
    kernels = some(3)
    if not keeps:
        monkeypatch.setattr(workers._Line, "ask", lambda line, request, is_careful: True)
    known, rehearsals = tuple(kernels[:foreseen]), 0
    target.compile_in_background(known)
    until = time.monotonic() + 60
    while True:
        assert time.monotonic() < until, (known, mine._open)
        if not target.is_at_hand(known):
            time.sleep(0.01)
            continue
        rehearsals += 1
        try:
            with target.waiting_for_none():
                made = [target.compile(k) for k in kernels]
            break
        except KernelsAwaitedError as awaited:
            known += awaited.kernels
    assert not any(m.is_draft for m in made)
    assert rehearsals <= 2 * len(kernels) + 2


def test_a_rehearsal_compiles_what_nobody_else_would(target: CudaTarget, mine: workers.Workers) -> None:
    mine._refuse()
    with target.waiting_for_none():
        assert not target.compile(some(1)[0]).is_draft


def test_a_rehearsal_that_fails_does_not_speak_of_drafts(target: CudaTarget) -> None:
    (kernel,) = some(1)
    assert target.compile(kernel).is_draft
    with pytest.raises(ZeroDivisionError), target.waiting_for_none():
        target.compile(kernel)
        raise ZeroDivisionError
    assert target._local.drafts is None


def test_a_new_process_goes_on_from_a_draft(target: CudaTarget) -> None:
    (kernel,) = some(1)
    draft = cuda_draft.source(kernel)
    cubin.make_cubin("draft", draft, HOPPER)
    found = target.compile(kernel)
    assert found.is_draft and found.cached and found.name == draft.name
    assert not proper(target, kernel).is_draft


def test_built_in_kernels_come_as_drafts_until_they_are_used(target: CudaTarget, mine: workers.Workers) -> None:
    """Those that are used are waited for by recordings, too."""
    used, other, query = some(3)
    target._begun.clear()
    target.compile_many([query])
    ended(target, mine)
    assert target._found(used, HOPPER) is not None and target._missing([used, other], HOPPER) == [
        target._source(k) for k in sorted((used, other), key=lambda k: target._source(k).source.name)
    ]
    with mine._changed:  # no worker takes anything
        assert target.compile(used).is_draft
        assert not target.is_at_hand([])
    proper(target, used)
    ended(target, mine)
    assert target.is_at_hand([])
    assert target._missing([used, other], HOPPER) == [target._source(other)]


@pytest.mark.parametrize("why", ["one core", "refused", "no folder", "numba"])
def test_no_draft_where_nobody_would_compile_the_kernel_proper(
    why: str, target: CudaTarget, mine: workers.Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    match why:
        case "one core":
            monkeypatch.setattr(os, "cpu_count", lambda: 1)
        case "refused":
            mine._refuse()
        case "no folder":
            monkeypatch.setattr(kernel_cache(), "_folder", None)
        case _:
            pytest.importorskip("numba.cuda")
            with compiling_by("numba"):
                assert not target.compile(some(1)[0]).is_draft
            return
    assert not target.compile(some(1)[0]).is_draft


def ended(target: CudaTarget, mine: workers.Workers) -> None:
    """Wait until workers have done, or given up, what they were asked for."""
    until = time.monotonic() + 60
    while mine._open and mine._threads:
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.mark.parametrize("answers", [False, True], ids=["dies", "keeps nothing"])
def test_a_draft_does_not_stay_for_good(
    answers: bool, target: CudaTarget, mine: workers.Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no worker makes the kernel proper, whether it died or its disk is full, this process does when it next needs it."""
    (kernel,) = some(1)
    monkeypatch.setattr(workers._Line, "ask", lambda line, request: answers)
    assert target.compile(kernel).is_draft
    ended(target, mine)
    assert target.is_at_hand([kernel])
    made = target.compile(kernel)
    assert not made.is_draft and made.name == target._source(kernel).source.name
    assert not made.cached


def test_a_full_disk(target: CudaTarget, mine: workers.Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be kept is compiled in this process, and no draft is waited with."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("gquery.kernels.targets.cache.write_file", full)
    with pytest.warns(RuntimeWarning, match="in memory alone"):
        target.compile(some(1)[0])
    assert not target.compile(some(1)[0]).is_draft
    assert not target.compile(some(2)[1]).is_draft


def test_what_is_wrong_with_the_kernel_proper_alone_is_told(
    target: CudaTarget, mine: workers.Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the run that needs it: the draft has run until then."""
    (kernel,) = some(1)
    monkeypatch.setattr(workers._Line, "ask", lambda line, request: True)
    assert target.compile(kernel).is_draft
    ended(target, mine)
    monkeypatch.setattr(cuda_llvm, "compiled", fails)
    with pytest.raises(InternalError, match="no such instruction"):
        target.compile(kernel)


def test_another_thread_puts_a_draft_there(target: CudaTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the look of a thread that records and its turn."""
    (kernel,) = some(1)
    plain, key = target._compiled.get, target._key(kernel, 0)
    looks: list[Compiled | None] = []

    def get(wanted: Any) -> Compiled | None:
        if not looks:  # the other thread comes just behind this look
            looks.append(None)
            other = threading.Thread(target=lambda: looks.append(target.compile(kernel)))
            other.start()
            other.join()
            return None
        return plain(wanted)

    monkeypatch.setattr(target._compiled, "get", get)
    with target.without_drafts(), compiling_by("llvm"):
        made = target.compile(kernel)
    assert looks[1] is not None and looks[1].is_draft
    assert not made.is_draft and plain(key) is made


def test_what_no_query_waits_for_leaves_workers_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels that are compiled ahead hold up half of the workers; a query meets the others."""
    made, gate, asked = workers.Workers(4), threading.Event(), queue.SimpleQueue[str]()

    def ask(line: object, request: workers.Request, is_careful: bool) -> bool:
        asked.put(request[1].name)
        return gate.wait(60)

    monkeypatch.setattr(workers._Line, "ask", ask)
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    try:
        made.compile_later([("cuda_llvm", KernelSource(f"later {n}", str), HOPPER) for n in range(9)])
        assert sorted(asked.get(timeout=60) for _ in range(2)) == ["later 0", "later 1"]
        waiting = threading.Thread(
            target=made.compile_at_once,
            args=([("cuda_draft", KernelSource(f"now {n}", str), HOPPER) for n in range(2)], lambda request: None, 9),
        )
        waiting.start()
        assert sorted(asked.get(timeout=60) for _ in range(2)) == ["now 0", "now 1"]
        assert asked.empty()
        gate.set()
        waiting.join(60)
        assert sorted(asked.get(timeout=60) for _ in range(7)) == [f"later {n}" for n in range(2, 9)]
    finally:
        gate.set()
        made.stop()


def test_a_damaged_kernel_proper_is_made_again_behind_the_draft(target: CudaTarget) -> None:
    (kernel,) = some(1)
    proper(target, kernel)
    path = kernel_cache().path / cubin.cubin_entry(target._source(kernel).source, HOPPER)
    path.write_bytes(path.read_bytes()[:-5])
    again = CudaTarget()
    again._begun.add(HOPPER)
    assert again.compile(kernel).is_draft  # of the first time
    assert proper(again, kernel).registers > 0


def fails(*_: object, **__: object) -> str:
    raise RuntimeError("no such instruction")


def test_a_kernel_that_does_not_compile_is_told_at_once(target: CudaTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_llvm, "compiled", fails)
    with pytest.raises(InternalError, match="no such instruction"):
        target.compile(some(1)[0])


SCRIPT = """
from gquery.kernels.builtin.registry import builtin_kernels
from gquery.kernels.targets import cuda
cuda._device, cuda._capability = (lambda: 0), (lambda device: (9, 0))
cuda.Modules.load = lambda modules, made, kernel: made
kernels = list(builtin_kernels().values())[:6]
made = cuda.TARGET.compile_many(kernels)
print(sum(c.entry.code.startswith(b"\\x7fELF") for c in made))
"""


def test_many_processes_on_an_empty_cache(tmp_path: Path) -> None:
    environment = {**os.environ, "GQUERY_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    begun = [
        subprocess.Popen([sys.executable, "-c", SCRIPT], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    assert [(p.communicate()[0].split(), p.returncode) for p in begun] == [(["6"], 0)] * 3


@pytest.mark.parametrize("name", programs.names())
def test_drafts_keep_variables_in_registers_and_say_where_atomics_work(name: str) -> None:
    connection = programs.small() if name in programs.SMALL else programs.tpch()
    with compiling_by("llvm"):
        for kernel in connection.kernels(programs.text(name), target="cuda"):
            text, _ = cuda_draft.ptx(cuda_draft.source(kernel), HOPPER)
            assert cubin._resources(assemble(text, HOPPER), "kernel")[1] == 0, kernel.text
            # else each is a loop for shared memory, too
            assert set(re.findall(r"\b(?:atom|red)\.(\w+)", text)) <= {"global", "shared"}, kernel.text


def test_drafts_round_as_the_kernels_proper_do() -> None:
    """Arithmetic that we wrote is never contracted; what calls functions of libdevice is the kernel proper at once."""
    connection = gquery.connect("cpu").register("t", pa.table({"f": [0.5, 1.5], "g": [2.5, 3.5]}))
    with compiling_by("llvm"):
        for sql in (
            "SELECT f * g + f - g * 3.5 FROM t WHERE f * g + 0.5 > g / f",
            "SELECT sum(ln(f) + sin(g) * f) FROM t",
        ):
            for kernel in connection.kernels(sql, target="cuda"):
                draft, made = (m.ptx(m.source(kernel), HOPPER)[0] for m in (cuda_draft, cuda_llvm))
                assert kernel.unrolled is not None
                if "ln" in sql:
                    assert cuda_llvm.calls_others(cuda_llvm.source(kernel).text) and draft == made
                else:
                    single = cuda_llvm.source(replace(kernel, unrolled=None))
                    assert rounded(draft) == rounded(cuda_llvm.ptx(single, HOPPER)[0])
                    assert rounded(draft).keys() == rounded(made).keys() >= {"add.rn.f64", "mul.rn.f64"}


def rounded(ptx: str) -> Counter[str]:
    """How many operations there are that round, by name."""
    return Counter(re.findall(r"\b((?:add|sub|mul|div|fma)\.(?:rn\.)?f64)", ptx))
