"""Kernels that are kept as bytes, and sent to the processes that compile them."""

from __future__ import annotations

import copy
import dataclasses
import gc
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from operator import attrgetter
from typing import Any

import pyarrow as pa
import pytest

import gquery
from gquery.kernels import ir
from gquery.kernels.builtin.registry import builtin_kernels
from gquery.kernels.kernel import Kernel, Parameter
from gquery.kernels.packed import packed, unpacked
from gquery.kernels.targets import cuda_draft, cuda_llvm
from gquery.runtime.records import replace
from tests.support import programs

pytest.importorskip("cuda.bindings.nvvm")


def fresh() -> list[Kernel]:
    """The kernels of all test programs."""
    small, tpch = programs.small(), programs.tpch()
    texts = {n: (small if n in programs.SMALL else tpch, programs.text(n)) for n in programs.names()}
    return [k for connection, text in texts.values() for k in connection.kernels(text, "cuda")]


def texts(kernel: Kernel) -> tuple[str, str, str]:
    return kernel.text, cuda_draft.source(kernel).text, cuda_llvm.source(kernel).text


def test_another_process_makes_the_same_of_a_kernel() -> None:
    kernels = {k.digest: k for k in [*fresh(), *builtin_kernels(True).values()]}
    assert any(k.unrolled is not None for k in kernels.values()) and len(kernels) > 100
    for kernel in kernels.values():
        want = texts(kernel)
        sent = packed(kernel)
        assert sent is not None
        got = unpacked(sent)
        assert "written" not in vars(got) and got.digest == kernel.digest and got == kernel
        assert texts(got) == want
        assert "written" not in vars(kernel)
        assert texts(kernel) == want and packed(kernel) == sent


def test_what_is_serialized_is_as_before() -> None:
    kernel = next(k for k in fresh() if k.unrolled is not None)
    unrolled = kernel.unrolled
    assert unrolled is not None
    blocks = kernel.prologue, kernel.written, kernel.epilogue, unrolled.body, unrolled.single, unrolled.function
    digest, number = kernel.digest, hash(kernel)
    kernel.serialize()
    assert kernel.digest == digest and hash(kernel) == number and "written" not in vars(kernel)
    assert "body" not in vars(unrolled) and vars(unrolled)["rows"] == unrolled.rows
    again = kernel.prologue, kernel.written, kernel.epilogue, unrolled.body, unrolled.single, unrolled.function
    assert again == blocks
    kernel.serialize()
    assert "written" not in vars(kernel) and kernel.body == blocks[1]
    kernel.serialize()
    for other in (copy.copy(kernel), copy.deepcopy(kernel), pickle.loads(pickle.dumps(kernel)), replace(kernel)):
        assert other == kernel and other.written == blocks[1]
    alone = replace(kernel, unrolled=None)
    assert alone != kernel and alone.unrolled is None and alone.written == blocks[1]
    assert dataclasses.replace(unrolled, rows=unrolled.rows).body == blocks[3]
    with pytest.raises(AttributeError):
        attrgetter("nothing")(kernel)


def test_kernels_are_told_apart_by_their_text() -> None:
    one = Kernel((Parameter("c0", "i32", True),), (), (), (), frozenset())
    assert one == replace(one) and one != replace(one, wide_index=True) and one != 1
    assert one != replace(one, parameters=(Parameter("c0", "i64", True),))
    assert len({one, replace(one), replace(one, uses_block=True)}) == 2


def test_serialized_kernels_leave_the_collector_little() -> None:
    kernels = fresh()
    for kernel in kernels:
        _ = kernel.digest
    gc.collect()
    before = len(gc.get_objects())
    for kernel in kernels:
        kernel.serialize()
    gc.collect()
    assert before - len(gc.get_objects()) > 100 * len(kernels)


@pytest.mark.parametrize("nests", [False, True], ids=["a user's", "nested too deeply"])
def test_what_cannot_be_sent_goes_as_text(nests: bool) -> None:
    if nests:
        value: Any = ir.Constant(1)
        for _ in range(20_000):
            value = ir.Call("negate_i64", (value,))
        kernel = Kernel((), (), (ir.Let(ir.Name("x"), value),), (), frozenset())
        vars(kernel)["digest"] = "d"
        (statement,) = kernel.written
        assert isinstance(statement, ir.Let) and packed(kernel) is None and statement.value is value
        inner: Any = value
        while isinstance(inner, ir.Call):  # freed step by step
            inner = inner.arguments[0]
        return
    with gquery.connect(device="cpu") as connection:
        connection.register("t", pa.table({"a": [1, 2, 3]}))
        connection.create_function("mine", _mine)
        (kernel,) = connection.kernels("SELECT count(*) FROM t WHERE mine(a) > 1", "cuda")
        assert kernel.functions and packed(kernel) is None


def _mine(x: int) -> int:
    return x + 1


def test_threads_that_serialize_and_look() -> None:
    """Workers' threads send a kernel while queries look at it."""
    kernels = [k for k in fresh() if k.unrolled is not None][:12]
    want = [(k.written, k.prologue, k.unrolled and k.unrolled.body, k.text) for k in kernels]

    def work(looks: bool) -> None:
        for _ in range(20):
            for kernel, (written, prologue, body, text) in zip(kernels, want, strict=True):
                if looks:
                    assert kernel.written == written and kernel.prologue == prologue
                    assert kernel.unrolled is not None and kernel.unrolled.body == body and kernel.text == text
                else:
                    kernel.serialize()

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as pool:
            for done in [pool.submit(work, n % 2 == 0) for n in range(4)]:
                done.result(120)
    finally:
        sys.setswitchinterval(before)
