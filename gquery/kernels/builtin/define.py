"""Built-in kernels: loops over whole arrays that neither NumPy nor CuPy has, compiled and cached like generated ones.

Functions take arrays of either and launch where those lie.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import cast

import numpy as np

from gquery import tuning
from gquery.device.addresses import stay
from gquery.device.array import Array
from gquery.device.device import Device
from gquery.device.host import address_of
from gquery.kernels import ir
from gquery.kernels.bindings import Argument
from gquery.kernels.ir.read import read_lines
from gquery.kernels.ir.walk import assigned
from gquery.kernels.kernel import Blocks, ElementType, Kernel, Parameter, read_later
from gquery.kernels.targets import get_target
from gquery.kernels.targets.base import AbortableTarget, arguments_of
from gquery.kernels.targets.morsels import run_parts
from gquery.kernels.unroll import unrolled
from gquery.runtime.digests import hex_digest
from gquery.runtime.recent import Recent
from gquery.runtime.records import cached_property, dataclass

_interpreted = Recent[str, int](tuning.built_in_kernels.remembered)  # rows by the digest of a kernel
PART = 2**17  # rows that one thread of several takes at once; texts of kernels count on it


def namespace(array: Array) -> ModuleType:
    """The module that an array is from: numpy or cupy."""
    return np if isinstance(array, np.ndarray) else sys.modules[type(array).__module__.partition(".")[0]]


@dataclass(frozen=True, eq=False)
class BuiltinKernel:
    """How a built-in kernel is made. There are dozens, of which a query runs few: each is made when it is first used."""

    make: Callable[[], Kernel]

    @cached_property
    def kernel(self) -> Kernel:
        """The kernel, the same at each call."""
        return self.make()


def launch(
    builtin: BuiltinKernel,
    rows: int,
    like: Array,
    *values: Argument,
    workers: int = 1,
    number: Array | None = None,
    unit: int = 1,
) -> None:
    """Run a kernel over all rows where the arrays lie; on a CPU by so many threads, if its rows do not meet in memory, on a GPU
    over as many as ``number`` says there (see `readback.Count`; None: all). A row of the kernel stands for ``unit`` elements."""
    kernel = builtin.kernel
    name = "cuda" if namespace(like) is not np else "python" if is_interpreted(kernel, rows * unit) else "cpu"
    target = get_target(name)
    arguments = arguments_of(target, kernel, values)
    compiled = target.compile(kernel)
    if name == "cpu" and workers > 1:
        run_parts(lambda lo, hi: target.run(compiled, lo, hi, arguments), rows, max(PART // unit, 1), workers)
    elif number is None:
        target.run(compiled, 0, rows, arguments)
    else:
        with cast(AbortableTarget, target).limited_to(number):
            target.run(compiled, 0, rows, arguments)


def is_interpreted(kernel: Kernel, rows: int) -> bool:
    """Whether the interpreter is quicker than a compiler, counting what it has done with the kernel before."""
    before = _interpreted.get(kernel.digest) or 0
    limits = tuning.built_in_kernels
    if rows >= limits.interpreted_rows or before >= limits.compiled_after:
        return False
    _interpreted[kernel.digest] = before + rows
    return True


LOOP_NAMES = frozenset({"i", "lo", "hi", "row_step", "row_end", "row_limit", "abort"})
"""What the loop over the rows calls its own, on some target: a kernel's lines may read but the first three, and set none."""


def builtin_kernel(
    parameters: str,
    *body: str,
    hoisted: tuple[str, ...] = (),
    prologue: tuple[str, ...] = (),
    epilogue: tuple[str, ...] = (),
    uses_block: bool = False,
) -> BuiltinKernel:
    """A built-in kernel; ``parameters`` as in ``slots:*u32 base:i64``. Loads of the variables ``hoisted`` come first
    for several rows at once (see `kernels.unroll`)."""

    def read() -> Blocks:
        before, block, behind = read_lines(*prologue), read_lines(*body), read_lines(*epilogue)
        taken = LOOP_NAMES & {n.id for n in assigned((*before, *block, *behind))}
        assert not taken, f"a kernel sets {taken}, which the loop over its rows has for itself"
        return before, block, behind

    def make() -> Kernel:
        parsed = []
        for word in parameters.split():
            name, _, type_ = word.partition(":")
            parsed.append(Parameter(name, cast(ElementType, type_.removeprefix("*")), type_.startswith("*")))
        if not hoisted:
            lines = "\0".join(["lines", parameters, str(uses_block), *prologue, "\0", *body, "\0", *epilogue])
            return read_later(tuple(parsed), uses_block, hex_digest(lines), read)
        before, block, behind = read()
        unrolled_rows = unrolled(block, tuning.loops.unrolled_rows, {ir.Name(name, "row") for name in hoisted})
        return Kernel(tuple(parsed), before, block, behind, frozenset(), unrolled=unrolled_rows, uses_block=uses_block)

    return BuiltinKernel(make)


PLAIN = {"u8": "uint8", "u16": "uint16", "u32": "uint32", "i64": "int64"}
"""Element types by which a kernel copies any of as many bytes."""
_PLAIN_WORDS = {np.dtype(dtype).itemsize: word for word, dtype in PLAIN.items()}
FILLS = {word: builtin_kernel(f"values:*{word} value:i64", f"store_{word}(values, i64(i), value)") for word in PLAIN}


def plain_word(values: Array) -> str:
    """The element type of `PLAIN` that has as many bytes as an array's."""
    return _PLAIN_WORDS[values.dtype.itemsize]


def fill(values: Array, value: float) -> None:
    """Set all of an array of numbers or booleans that lie one after another."""
    if namespace(values) is np:
        values.fill(value)
        return
    (bits,) = np.array([value], values.dtype).view(f"i{values.dtype.itemsize}").tolist()
    word = plain_word(values)
    launch(FILLS[word], values.size, values, values.view(PLAIN[word]), bits)


def full(device: Device, size: int, value: int, dtype: str, context: str, workers: int) -> Array:
    """An array of one value, uint32 or int64; so many threads of a CPU write it."""
    made = device.empty(size, dtype, context)
    if workers == 1 or not device.is_cpu:
        fill(made, value)
        return made
    run_parts(lambda lo, hi: made[lo:hi].fill(value), size, tuning.built_in_kernels.filled_rows, workers)
    return made


def reducing(parameters: str, *body: str) -> BuiltinKernel:
    """A built-in kernel that adds up ``n`` over all rows, into the first word of ``total``."""
    return builtin_kernel(
        f"{parameters} total:*i64",
        "v0 = i64(c0[i])",
        *body,
        hoisted=("v0",),
        prologue=("n = i64(0)",),
        epilogue=("reduce_add_i64(total, 0, n)",),
    )


def element_word(values: Array) -> str:
    """The element type of an array of numbers or booleans."""
    return f"{values.dtype.kind.replace('b', 'u')}{8 * values.dtype.itemsize}"


def address(array: Array) -> int:
    """Where an array's first element lies in its device's memory; see `device.addresses`."""
    if not isinstance(array, np.ndarray):
        return int(array.data.ptr)
    stay(array)
    return address_of(array)
