"""Where there is no GPU: every kernel of the 22 queries compiles to machine code for sm_90, and for older and newer ones in the
slower tier (`make test-slow`), by Numba and by our own lowering.

``make cubins`` prints what each uses.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from gquery.kernels.builtin.registry import builtin_kernels
from tests.support.marks import one_in
from tpch import cubins, queries
from tpch.engines import GQueryEngine, Options
from tpch.generate import generate

REGISTERS = 255  # what a thread can have
FEW = 8  # they are given out eight at a time
ARCHITECTURES = [
    pytest.param(cc, marks=() if cc == (9, 0) else pytest.mark.slow, id=f"sm_{cc[0]}{cc[1]}")
    for cc in cubins.ARCHITECTURES
]


@cache
def engine() -> GQueryEngine:
    return GQueryEngine(generate(0.01), Options(device="cpu"))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("name", sorted(builtin_kernels(on_gpus=True)))
def test_builtin_kernels_compile(name: str, architecture: tuple[int, int]) -> None:
    from gquery.kernels.targets.cuda import CudaTarget

    assert CudaTarget().compile_cubin(builtin_kernels(on_gpus=True)[name], architecture).local_bytes == 0


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("number", one_in(6, queries.NUMBERS))
def test_every_kernel_compiles(
    number: int, architecture: tuple[int, int], record_property: Callable[[str, object], None]
) -> None:
    """And lowered, it uses what Numba's does: a few registers more at most, and no memory for what was spilled."""
    found = list(cubins.usages(engine().connection, [number], [architecture], "numba"))
    assert found, "a query has kernels"
    for usage in found:
        record_property(f"kernel {usage.kernel} {usage.architecture}", f"{usage.registers}/{usage.local_bytes}")
        assert 0 < usage.registers <= REGISTERS
    lowered = list(cubins.usages(engine().connection, [number], [architecture], "llvm"))
    assert sum(u.registers for u in lowered) <= 1.1 * sum(u.registers for u in found)
    for numba, ours in zip(found, lowered, strict=True):
        assert ours.registers <= numba.registers + FEW
        assert (ours.local_bytes, ours.shared_bytes) <= (numba.local_bytes, numba.shared_bytes)


@pytest.mark.slow
@pytest.mark.parametrize("number", queries.NUMBERS)
def test_every_kernel_lowers_for_new_gpus(number: int) -> None:
    newer = [cc for cc in cubins.LOWERED_ARCHITECTURES if cc not in cubins.ARCHITECTURES]
    for usage in cubins.usages(engine().connection, [number], newer, "llvm"):
        assert 0 < usage.registers <= REGISTERS
        assert usage.local_bytes == 0
