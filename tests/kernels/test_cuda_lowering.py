"""Kernels lowered for GPUs, as far as that can be looked at without one: they are valid, assemble, and use what Numba's use.

Numba compiles the same kernels in `test_cubins`; here is what the lowered ones have beside that: their text, their errors, the
choice between the two.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from gquery.errors import InternalError
from gquery.kernels import ir
from gquery.kernels.builtin.registry import builtin_kernels
from gquery.kernels.ir.read import read_lines
from gquery.kernels.kernel import Kernel, Parameter
from gquery.kernels.lowering.grid import grid_body
from gquery.kernels.targets import cuda_llvm, cuda_numba
from gquery.kernels.targets.compilers import compiler_of, compiling_by
from gquery.kernels.targets.cubin import Cubin, make_cubin, read_cubin
from gquery.kernels.targets.cuda import TARGET, CudaTarget
from gquery.kernels.unroll import unrolled
from tests.support import primitives, programs
from tests.support.paths import ROOT
from tpch import cubins

pytest.importorskip("cuda.bindings.nvvm")

HOPPER = (9, 0)
ARCHITECTURES = [
    pytest.param(cc, marks=() if cc == HOPPER else pytest.mark.slow, id=f"sm_{cc[0]}{cc[1]}")
    for cc in cubins.LOWERED_ARCHITECTURES
]
COLUMNS = (Parameter("c0", "i64", True), Parameter("s0", "i64", True))


def kernel(*body: str, wide: bool = False, rows: int = 0, parts: Sequence[ir.Function] = ()) -> Kernel:
    lines = read_lines(*body)
    loop = unrolled(lines, rows, {ir.Name("v0", "row")}) if rows else None
    return Kernel(COLUMNS, (), lines, (), frozenset(), unrolled=loop, wide_index=wide, cut=tuple(parts))


def lowered(made: Kernel, cc: tuple[int, int] = HOPPER) -> Cubin:
    with compiling_by("llvm"):
        return TARGET.compile_cubin(made, cc)


def ptx(made: Kernel, cc: tuple[int, int] = HOPPER) -> str:
    return cuda_llvm.ptx(cuda_llvm.source(made), cc)[0]


# ---- all kernels --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_built_in_kernels(architecture: tuple[int, int]) -> None:
    for name, made in builtin_kernels(on_gpus=True).items():
        assert lowered(made, architecture).local_bytes == 0, name


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("name", programs.names())
def test_kernels_of_programs(name: str, architecture: tuple[int, int]) -> None:
    connection = programs.small() if name in programs.SMALL else programs.tpch()
    kernels = connection.kernels(programs.text(name), target="cuda")
    assert kernels
    for made in kernels:
        assert lowered(made, architecture).local_bytes == 0, made.text


MEMORY = re.compile(r"^\s*(?:@!?%p\d+ )?((?:ld|st|atom|red|bar|shfl|vote|div|rem|fma)\.[.\w]*)", re.M)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(builtin_kernels(on_gpus=True)))
def test_both_compilers_touch_the_same_memory(name: str) -> None:
    """As long as no GPU has run them: the same loads, stores, atomics, votes, shuffles and barriers, each of the same width and
    as often, and the same divisions."""
    pytest.importorskip("numba.cuda")
    made = builtin_kernels(on_gpus=True)[name]
    numba, _ = cuda_numba.ptx(cuda_numba.source(made), HOPPER)
    ours, theirs = (Counter(f for f in MEMORY.findall(text) if "param" not in f) for text in (ptx(made), numba))
    assert ours == theirs


# ---- rows ---------------------------------------------------------------------------------------------------------
def test_the_rows_of_a_thread() -> None:
    """The loop that Numba is given, as nodes."""
    made = kernel("v0 = i64(c0[i])", "store_i64(s0, i64(i), v0)", rows=2)
    assert ir.printed(grid_body(made)) == [
        "hi = uint32(min_i64(i64(row_end), row_limit[0]))",
        "if eq_i64(abort[0], 0):",
        "    row_step = uint32(thread_count())",
        "    i = lo + uint32(thread_index())",
        "    while i64(i | uint32(31)) + 1 * row_step < i64(hi):",
        "        i0 = i",
        "        i1 = i + uint32(1) * row_step",
        "        v0_0 = i64(c0[i0])",
        "        v0_1 = i64(c0[i1])",
        "        store_i64(s0, i64(i0), v0_0)",
        "        store_i64(s0, i64(i1), v0_1)",
        "        i = i + uint32(2) * row_step",
        "    while i < hi:",
        "        v0 = i64(c0[i])",
        "        store_i64(s0, i64(i), v0)",
        "        i = i + row_step",
    ]


@pytest.mark.parametrize(("wide", "bits"), [(False, 32), (True, 64)])
def test_the_index_is_as_wide_as_asked_for(wide: bool, bits: int) -> None:
    """Parameters too: the launch packs them so."""
    text = cuda_llvm.source(kernel("store_i64(s0, i64(i), i64(c0[i]))", wide=wide)).text
    assert f"define void @kernel(i{bits} %a0, i{bits} %a1, i32* %a2, i64* %a3, i64* %a4, i64* %a5)" in text
    assert f"icmp ult i{bits}" in text and f"add i{bits}" in text


@pytest.mark.parametrize("name", ["marks", "row_limit", "hi"])
@pytest.mark.faulty
def test_no_parameter_is_called_as_one_of_entries(name: str) -> None:
    """Of any target's: a kernel is compiled for one today, for another tomorrow."""
    made = kernel("store_i64(s0, i64(i), 1)")
    wrong = replace(made, parameters=(Parameter(name, "i64", True), *made.parameters))
    with pytest.raises(InternalError, match=name):
        _ = cuda_llvm.source(wrong).text


def test_a_row_s_function_is_inlined() -> None:
    many = [f"v{n} = add_i64(v{n - 1}, xor_i64(v0, {n}))" for n in range(1, 60)]
    made = kernel("v0 = i64(c0[i])", *many, "store_i64(s0, i64(i), v59)", rows=4)
    assert made.unrolled is not None and made.unrolled.function is not None
    assert cuda_llvm.source(made).text.count("call void @do_row.0(") == 5, "a row each of four, and the single one"
    assert "call" not in ptx(made)


# ---- the dialect --------------------------------------------------------------------------------------------------
def test_a_variable_set_under_a_condition() -> None:
    """libNVVM refuses a value where it may not have been computed: such a variable lies on the stack until LLVM has looked."""
    made = kernel(
        "f = lt_i64(i64(c0[i]), 0)", "if f:", "    a = add_i64(i64(c0[i]), 1)", "x = i64(3)", "if f:", "    x = a",
        "store_i64(s0, i64(i), x)", rows=2,
    )  # fmt: skip
    assert "%a.p = alloca i64" in cuda_llvm.source(made).text
    assert lowered(made).local_bytes == 0
    assert lowered(made, (10, 0)).local_bytes == 0


def test_who_meets_others_is_not_moved() -> None:
    """From the instruction to the entry, all functions that come to a vote, a shuffle or a barrier are convergent."""
    text = cuda_llvm.source(builtin_kernels(on_gpus=True)["scans.VOTES[uint32]"]).text
    convergent = set(re.findall(r"define [^@]*@\"?([\w.]+)\"?\([^{]*? convergent ", text))
    assert {"ballot", "rows", "kernel"} <= convergent
    functions = re.split(r"(?m)^(?=define )", text)[1:]
    for function in functions:
        name = re.search(r"@\"?([\w.]+)\"?\(", function)
        called = set(re.findall(r"\bcall [^@]*@\"?([\w.]+)\"?\(", function))
        meets = bool(called & convergent) or "vote" in function.partition("{")[2]
        assert name is not None and (name[1] in convergent) == meets, function


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_no_primitive_calls_what_nobody_has(architecture: tuple[int, int]) -> None:
    """What libNVVM does not find it declares in the PTX, which then cannot be linked."""
    library = cuda_llvm.library()
    functions = [*primitives.every_one(library, lacking=["slot_prefetch"]), *primitives.mathematics(library)]
    assert len(functions) > 300
    outside = [[f] for f in functions if any("__nv_" in d for d in f.declarations)]  # each in a kernel of its own
    assert len(outside) > 15
    for some in (functions, *outside):
        text = cuda_llvm.compiled(primitives.exported(some, cuda_llvm.head()), architecture)
        assert text.count(".visible .func") == len(some)
        assert re.findall(r"\.extern \.func.*", text) == []


@pytest.mark.parametrize("cc", [HOPPER, (10, 0)])
def test_mathematics_comes_from_libdevice(cc: tuple[int, int]) -> None:
    made = kernel("store_i64(s0, i64(i), truncate_f64(math_log(f64(c0[i]))))")
    text = cuda_llvm.source(made).text
    assert "declare double @__nv_log(double" in text
    assert "fma.rn.f64" in ptx(made, cc), "its code is in the kernel"
    assert lowered(made, cc).registers > 0


def test_doubles_are_not_contracted() -> None:
    """A product and a sum round twice, as on a processor."""
    columns = (Parameter("c0", "f64", True), Parameter("s0", "f64", True))
    body = read_lines("store_f64(s0, i64(i), add_f64(mul_f64(c0[i], c0[i]), c0[i]))")
    made = Kernel(columns, (), body, (), frozenset())
    assert "fma" not in ptx(made)


# ---- errors -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("cc", [HOPPER, (10, 0)])
def test_broken_text_is_one_error(cc: tuple[int, int]) -> None:
    source = cuda_llvm.source(kernel("store_i64(s0, i64(i), 1)"))
    broken = type(source)("kbroken", lambda: source.text.replace("ret void", "ret i64 %nothing", 1), ".ll")
    with pytest.raises(InternalError, match="a kernel does not compile") as caught:
        make_cubin("llvm", broken, cc)
    assert "\n" not in str(caught.value)
    place = Path(str(caught.value).rpartition("source: ")[2].rstrip(")"))
    assert "%nothing" in place.read_text()
    place.unlink()
    assert read_cubin(broken, cc) is None


def test_what_has_no_meaning_is_one_error() -> None:
    with pytest.raises(InternalError, match="there is no primitive 'unknown'") as caught:
        lowered(kernel("store_i64(s0, i64(i), unknown(1))"))
    Path(str(caught.value).rpartition("source: ")[2].rstrip(")")).unlink()


# ---- which compiler -----------------------------------------------------------------------------------------------
def test_numba_compiles_only_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GQUERY_COMPILER", raising=False)
    assert (compiler_of("cuda"), compiler_of("cpu")) == ("llvm", "llvm")
    with compiling_by("auto"):
        assert (compiler_of("cuda"), compiler_of("cpu")) == ("llvm", "llvm")
    with compiling_by("numba"):
        assert compiler_of("cuda") == "numba"
    monkeypatch.setenv("GQUERY_COMPILER", "numba")
    assert compiler_of("cuda") == "numba"


SCRIPT = """
import json, sys
from gquery.kernels.builtin.registry import builtin_kernels
from gquery.kernels.targets.compilers import compiling_by
from gquery.kernels.targets.cuda import TARGET
from gquery.kernels.targets.cuda_sources import requests_of
from gquery.kernels.targets.workers import workers
kernels = list(builtin_kernels(on_gpus=True).values())[:12]
with compiling_by("llvm"):
    TARGET.compile_cubin(kernels[0], (9, 0))
    missing, here = TARGET._missing(kernels, (9, 0)), []
    workers().compile_at_once(requests_of(missing, (9, 0)), here.append, elsewhere=True)
    left = TARGET._missing(kernels, (9, 0))
print(json.dumps([len(missing) > 9, len(here), len(left), [m for m in ("numba", "cupy") if m in sys.modules]]))
"""


def test_workers_lower(tmp_path: Path) -> None:
    """They are forked when libNVVM is there; neither they nor who asks them needs Numba."""
    environment = {**os.environ, "GQUERY_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [True, 0, 0, []]


def test_compilers_have_entries_of_their_own() -> None:
    made, target = kernel("store_i64(s0, i64(i), 6)"), CudaTarget()
    with compiling_by("numba"):
        numba = target._source(made)
    with compiling_by("llvm"):
        llvm = target._source(made)
    assert (numba.compiler, llvm.compiler) == ("numba", "llvm")
    assert numba.source.name != llvm.source.name
