"""Kernels written by hand on each target: loops, scalars, states, batches, morsels; and the cache of compiled ones."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gquery.errors import DeviceError, InternalError
from gquery.kernels.builtin.define import builtin_kernel
from gquery.kernels.ir.read import read_lines
from gquery.kernels.kernel import Kernel, Parameter
from gquery.kernels.targets import compile_many, get_target
from gquery.kernels.unroll import UnrolledLoop
from tests.support.paths import ROOT
from tests.support.primitives import TARGETS, run

ROWS = 10_000


def filtered_sum(limit_name: str = "k0") -> Kernel:
    """Sum of c1 over the rows with c0 below a limit, their number, and the least c1."""
    return Kernel(
        (
            Parameter("c0", "i32", True),
            Parameter("c1", "i64", True),
            Parameter(limit_name, "i64", False),
            Parameter("s0", "i64", True),
        ),
        read_lines("total = i64(0)", "count = i64(0)", "least = i64(9223372036854775807)"),
        read_lines(
            "v1 = i64(c0[i])",
            f"if lt_i64(v1, {limit_name}):",
            "    v2 = i64(c1[i])",
            "    total = add_i64(total, v2)",
            "    count = add_i64(count, 1)",
            "    least = min_i64(least, v2)",
        ),
        read_lines("reduce_add_i64(s0, 0, total)", "reduce_add_i64(s0, 1, count)", "reduce_min_i64(s0, 2, least)"),
        frozenset(),
    )


def columns(rows: int = ROWS) -> tuple[Any, Any]:
    r = np.random.default_rng(1)
    return r.integers(-100, 100, rows, dtype=np.int32), r.integers(-(10**9), 10**9, rows)


def fresh_state() -> Any:
    return np.array([0, 0, 2**63 - 1])


def expected(a: Any, b: Any, limit: int) -> list[int]:
    kept = b[a < limit]
    return [int(kept.sum()), kept.size, int(kept.min())]


@pytest.mark.parametrize("target", TARGETS)
def test_filter_and_sum(target: str) -> None:
    a, b = columns()
    *_, state = run(target, filtered_sum(), ROWS, [a, b, 10, fresh_state()])
    assert state.tolist() == expected(a, b, 10)


@pytest.mark.parametrize("target", TARGETS)
def test_groups_in_global_state(target: str) -> None:
    a, b = columns()
    kernel = Kernel(
        (
            Parameter("c0", "i32", True),
            Parameter("c1", "i64", True),
            Parameter("s0", "i64", True),
            Parameter("s1", "f64", True),
        ),
        (),
        read_lines(
            "g = add_i64(i64(c0[i]), 100)",
            "v = i64(c1[i])",
            "accumulate_add_i64(s0, mul_i64(g, 3), v)",
            "accumulate_min_i64(s0, add_i64(mul_i64(g, 3), 1), v)",
            "accumulate_max_i64(s0, add_i64(mul_i64(g, 3), 2), v)",
            "accumulate_add_f64(s1, g, f64(v))",
        ),
        (),
        frozenset(),
    )
    state = np.tile(np.array([0, 2**62, -(2**62)]), 200)
    _, _, state, floats = run(target, kernel, ROWS, [a, b, state, np.zeros(200)])
    for g in range(200):
        values = b[a == g - 100]
        assert state[3 * g : 3 * g + 3].tolist() == [values.sum(), values.min(), values.max()]
        assert floats[g] == pytest.approx(values.sum(), rel=1e-12)


@pytest.mark.parametrize("target", TARGETS)
def test_hash_table_and_bitmap(target: str) -> None:
    _, b = columns(4000)
    keys = np.abs(b) % 1500
    table = Kernel(
        (
            Parameter("c1", "i64", True), Parameter("entries", "i64", True), Parameter("mask", "i64", False),
            Parameter("slots", "i64", True), Parameter("bits", "u32", True), Parameter("status", "u32", True),
            Parameter("counter", "i64", True),
        ),
        (),
        read_lines(
            "place = slot_insert(entries, mask, 2, i64(c1[i]), status, 40)",
            "store_i64(slots, i64(i), place)",
            "if ge_i64(place, 0):",
            "    accumulate_add_i64(entries, place, 1)",
            "bit_set(bits, i64(c1[i]))",
            "if bit_test(bits, i64(c1[i])):",
            "    n = reserve(counter, 2)",
        ),
        (),
        frozenset(),
    )  # fmt: skip
    empty = np.zeros(2 * 2050, np.int64)
    _, found, _, slots, bits, status, counter = run(
        target, table, 4000,
        [keys, empty, 2047, np.zeros(4000, np.int64), np.zeros(64, np.uint32), np.zeros(2, np.uint32), np.zeros(1, np.int64)],
    )  # fmt: skip
    entries = found.reshape(-1, 2)
    assert (entries[:2048, 1] > 0).sum() + 1 == len(set(keys.tolist()))
    assert entries[2048].tolist() == [1, (keys == 0).sum()], "the key 0 has an entry of its own"
    assert (entries[slots // 2, 0] == np.where(keys == 0, 1, keys)).all()
    assert (entries[slots // 2, 1] == (keys[:, None] == keys).sum(1)).all()
    assert [k for k in range(2048) if bits[k >> 5] >> (k & 31) & 1] == sorted(set(keys.tolist()))
    assert status.tolist() == [0, 0]
    assert counter[0] == 8000
    full = np.zeros(2 * 18, np.int64)
    *_, status, _ = run(
        target, table, 4000,
        [keys, full, 15, np.zeros(4000, np.int64), np.zeros(64, np.uint32), np.zeros(2, np.uint32), np.zeros(1, np.int64)],
    )  # fmt: skip
    assert status.tolist() == [0, 1 << 8]


def shifted(days: Any) -> Any:
    """A scalar function's body, as `gquery.functions` has them."""
    return add_i64(date_year(days), 1)  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize("target", TARGETS)
def test_scalar_functions(target: str) -> None:
    kernel = Kernel(
        (Parameter("c0", "i32", True), Parameter("o0", "i64", True)),
        (), read_lines("store_i64(o0, i64(i), f_shifted(i64(c0[i])))"), (), frozenset(), (("f_shifted", shifted),),
    )  # fmt: skip
    days = np.array([0, -1, 365, 10957], np.int32)
    assert run(target, kernel, 4, [days, np.zeros(4, np.int64)])[1].tolist() == [1971, 1970, 1972, 2001]


@pytest.mark.cuda
@pytest.mark.parametrize("wide", [False, True])
def test_private_accumulators_and_batches(wide: bool) -> None:
    a, b = columns(1_000_003)
    step = ("x{0} = i64(c0[i{0}])", "y{0} = i64(c1[i{0}])")
    update = (
        "g{0} = mul_i64(and_i64(x{0}, 3), 2)",
        "private_add_i64(g{0}, y{0})",
        "private_add_f64(add_i64(g{0}, 1), f64(y{0}))",
    )
    kernel = Kernel(
        (Parameter("c0", "i32", True), Parameter("c1", "i64", True), Parameter("s0", "i64", True), Parameter("s1", "f64", True)),
        read_lines(*(f"private_init({w}, 0)" for w in range(8))),
        read_lines(*(line.format("") for line in (*step, *update))),
        read_lines(*(f"private_flush_add_i64({2 * g}, s0, {g})" for g in range(4)))
        + read_lines(*(f"private_flush_add_f64({2 * g + 1}, s1, {g})" for g in range(4))),
        frozenset(),
        unrolled=UnrolledLoop(4, read_lines(*(line.format(k) for line in (*step, *update) for k in range(4))), (), None),
        wide_index=wide,
        uses_private=True,
    )  # fmt: skip
    import cupy

    target = get_target("cuda")
    arrays = [cupy.asarray(x) for x in (a, b, np.zeros(4, np.int64), np.zeros(4))]
    arguments = [target.argument(p, x) for p, x in zip(kernel.parameters, arrays, strict=True)]
    target.run(target.compile(kernel), 0, a.size, arguments, shared_words=8)
    for g in range(4):
        assert int(arrays[2][g]) == b[(a & 3) == g].sum()
        assert float(arrays[3][g]) == pytest.approx(b[(a & 3) == g].sum(), rel=1e-9)


def test_morsels_cover_every_row_once() -> None:
    a, b = columns(100_000)
    target, kernel = get_target("cpu"), filtered_sum()
    compiled = target.compile(kernel)
    states = [fresh_state() for _ in range(3)]
    workers = [[target.argument(p, x) for p, x in zip(kernel.parameters, (a, b, 10, s), strict=True)] for s in states]
    target.run_morsels(compiled, [(7, a.size)], workers, morsel_rows=1000)  # type: ignore[attr-defined]
    got = np.array(states)
    assert [got[:, 0].sum(), got[:, 1].sum(), got[:, 2].min()] == expected(a[7:], b[7:], 10)


def test_morsels_stop() -> None:
    from gquery.kernels.targets.morsels import run_morsels

    done: list[tuple[int, int]] = []
    lock = threading.Lock()

    def work(worker: int, lo: int, hi: int) -> None:
        with lock:
            done.append((lo, hi))
        if lo >= 50:
            raise ValueError(f"rows {lo} to {hi}")

    with pytest.raises(ValueError, match="rows"):
        run_morsels(work, [(0, 100_000)], 4, 10)
    assert len(done) < 100
    done.clear()
    run_morsels(lambda worker, lo, hi: done.append((lo, hi)), [(0, 100)], 2, 10, cancelled=lambda: len(done) >= 3)
    assert len(done) <= 4


def test_one_line_for_a_kernel_that_does_not_compile() -> None:
    kernel = Kernel((Parameter("c0", "i32", True),), (), read_lines("v1 = add_i64(c0, 1)"), (), frozenset())
    with pytest.raises(InternalError) as caught:
        get_target("cpu").compile(kernel)
    assert "\n" not in str(caught.value)
    place = Path(re.search(r"source: (.*)\)", str(caught.value))[1])  # type: ignore[index]
    assert "add_i64(c0, 1)" in place.read_text()
    place.unlink()


def test_cuda_kernels_compile_without_a_gpu() -> None:
    pytest.importorskip("numba.cuda")
    from gquery.kernels.targets.cuda import TARGET

    for cc in ((7, 5), (9, 0)):
        cubin = TARGET.compile_cubin(filtered_sum(), cc)
        assert cubin.code.startswith(b"\x7fELF")
        assert 8 <= cubin.registers <= 64
        assert cubin.local_bytes == 0


def test_a_narrow_index_is_refused_for_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    from gquery.kernels.targets.base import Compiled
    from gquery.kernels.targets.cuda import TARGET

    compiled = Compiled(filtered_sum(), lambda *a, **k: None, "", 0.0, cached=True)
    with pytest.raises(DeviceError):
        TARGET.run(compiled, 0, 2**32, [])


# ---- the cache ---------------------------------------------------------------------------------------------------
SCRIPT = """
import importlib
import json
from gquery.kernels.targets import compile_many, get_target
from tests.kernels.test_targets import filtered_sum
kernels = [filtered_sum(), filtered_sum("k7"), filtered_sum("k8")]
print(json.dumps([c.cached for c in compile_many(get_target("cpu"), kernels)]))
from gquery.kernels.targets.cuda import TARGET
TARGET.compile_cubins(kernels, (9, 0))
"""


def in_process(cache: Path) -> list[bool]:
    root = ROOT
    environment = {**os.environ, "GQUERY_CACHE_DIR": str(cache), "PYTHONPATH": str(root)}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, cwd=root)
    assert done.returncode == 0, done.stderr
    found: list[bool] = json.loads(done.stdout)
    return found


def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    in_process(cache)
    written = {file: file.stat().st_mtime_ns for file in cache.rglob("*.*")}
    assert Counter(file.suffix for file in written) == {".cubin": 3, ".cpu": 3}, "a file a kernel"
    assert in_process(cache) == [True, True, True]
    assert {file: file.stat().st_mtime_ns for file in cache.rglob("*.*")} == written
    assert cache.stat().st_mode & 0o777 == 0o700


def test_what_is_on_disk_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gquery.kernels.targets.cpu import CpuTarget

    monkeypatch.setenv("GQUERY_CACHE_DIR", str(tmp_path / "cache"))
    script = """
from gquery.kernels.targets.cpu import CpuTarget
from tests.kernels.test_targets import filtered_sum
CpuTarget().compile(filtered_sum("k9"))
"""
    assert not CpuTarget().is_cached(filtered_sum("k9"))
    root = str(ROOT)
    subprocess.run([sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": root}, check=True)
    importlib.import_module("numba")  # what loads kernels; a process that has none looks on no disk
    assert CpuTarget().is_cached(filtered_sum("k9"))
    assert not CpuTarget().is_cached(filtered_sum("k10"))


def test_constants_share_a_kernel() -> None:
    target = get_target("cpu")
    assert target.compile(filtered_sum()) is target.compile(filtered_sum())
    assert [c.kernel for c in compile_many(target, [filtered_sum()])] == [filtered_sum()]


def test_a_kernel_sets_no_name_of_the_loop_over_its_rows() -> None:
    """One that did went through some rows twice on a GPU, where the loop's step is a variable beside its own."""
    for line in ("row_step = mul_i64(i64(i), 2)", "hi = i64(0)", "if eq_i64(i64(i), 0):\n    i = i64(1)"):
        with pytest.raises(AssertionError, match="loop over its rows"):
            _ = builtin_kernel("made:*i64", *line.split("\n")).kernel.text
