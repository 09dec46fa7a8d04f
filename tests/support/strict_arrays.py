"""Arrays of a GPU that the host plays, which have no operators: whoever uses one of CuPy's, which it would compile, fails.

What is left is what CuPy compiles nothing for: memory, views, sorts, copies between contiguous arrays of one type. Kernels run,
by the interpreter or, if lanes of a warp meet in them, by lanes. `steps_on_gpu` has such a GPU make the frames of pipeline
breakers, of a connection whose pipelines run on the host.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gquery.columns.table import ColumnData
from gquery.device import device as devices
from gquery.device.buffer import Buffer
from gquery.device.device import Device, cpu_device
from gquery.device.profile import H200, get_profile
from gquery.kernels import targets
from gquery.kernels.kernel import Kernel, Parameter
from gquery.kernels.targets.base import Compiled
from gquery.operators import breakers
from gquery.operators.base import Frame, KnownOrder
from gquery.planner.physical import UnmatchedRows
from gquery.runtime.records import replace
from tests.support import meta_arrays
from tests.support.lanes import Lanes

GPU = Device("cuda")
_OF_WARPS = re.compile(r"\b(ballot|lane|last_lane|prefix_sum|members|lanes_\w+|shuffle_\w+|block_\w+|shared_\w+|warp_\w+)\(")


class CompilesError(Exception):
    """CuPy would compile a function."""


class StrictArray:
    """See above. ``values``: where the elements are."""

    __array_ufunc__ = None
    device = SimpleNamespace(id=0)
    base = None

    def __init__(self, values: Any) -> None:
        self.values = values

    shape = property(lambda self: self.values.shape)
    dtype = property(lambda self: self.values.dtype)
    size = property(lambda self: int(self.values.size))
    ndim = property(lambda self: self.values.ndim)
    nbytes = property(lambda self: int(self.values.nbytes))
    itemsize = property(lambda self: self.values.itemsize)
    strides = property(lambda self: self.values.strides)
    flags = property(lambda self: self.values.flags)
    data = property(lambda self: SimpleNamespace(ptr=self.values.ctypes.data, mem=self.values))

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, at: Any) -> StrictArray:
        if not all(isinstance(a, slice | int | type(...)) for a in (at if isinstance(at, tuple) else (at,))):
            raise CompilesError("elements by an index")
        return StrictArray(self.values[at if isinstance(at, tuple) else (at, ...)])

    def __setitem__(self, at: Any, value: Any) -> None:
        part = self[at]
        if isinstance(value, StrictArray):
            if value.size == 1:  # CuPy drops the dimension, and compares shapes
                raise CompilesError("an element is set")
            copyto(part, value)
        else:
            part.fill(value)

    def fill(self, value: Any) -> None:
        if value != 0 or not self.flags.c_contiguous:
            raise CompilesError("fill")
        self.values.fill(0)

    def view(self, dtype: Any) -> StrictArray:
        return StrictArray(self.values.view(dtype))

    def reshape(self, *shape: Any) -> StrictArray:
        if not self.flags.c_contiguous:
            raise CompilesError("reshape")
        return StrictArray(self.values.reshape(*shape))

    def astype(self, dtype: Any, copy: bool = True) -> StrictArray:
        if copy or self.dtype != dtype:
            raise CompilesError("astype")
        return self

    def copy(self) -> StrictArray:
        made = empty(self.shape, self.dtype)
        copyto(made, self)
        return made

    def sort(self) -> None:
        assert self.flags.c_contiguous
        self.values.sort()

    def set(self, values: Any) -> None:
        assert values.shape == self.shape and values.dtype == self.dtype
        self.values[...] = values

    def get(self) -> Any:
        return self.values.copy()

    def tolist(self) -> Any:
        return self.values.tolist()

    def item(self) -> Any:
        return self.values.item()

    def __iter__(self) -> Iterator[Any]:
        raise TypeError("elements of a GPU's array one by one")

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("an array of a GPU as one of the host")


StrictArray.__module__ = "cupy"  # where `namespace` looks for functions of such arrays


def empty(shape: Any, dtype: Any = np.float64) -> StrictArray:
    """Whatever is there."""
    made = np.empty(shape, dtype)
    made.reshape(-1).view(np.uint8)[:] = 77
    return StrictArray(made)


def zeros(shape: Any, dtype: Any = np.float64) -> StrictArray:
    """Memory that is cleared."""
    return StrictArray(np.zeros(shape, dtype))


def copyto(to: StrictArray, values: StrictArray, casting: str = "") -> None:
    """A copy of memory, else a kernel."""
    both = to.flags.c_contiguous and values.flags.c_contiguous
    if not both or to.dtype != values.dtype or to.size != values.size:
        raise CompilesError("copyto")
    to.values[...] = values.values.reshape(to.shape)


def ascontiguousarray(values: StrictArray) -> StrictArray:
    """The array, if it is."""
    if not values.flags.c_contiguous:
        raise CompilesError("ascontiguousarray")
    return values


def asarray(values: Any) -> StrictArray:
    """A copy of what the host has."""
    return values if isinstance(values, StrictArray) else StrictArray(np.array(values, order="C"))


def asnumpy(values: Any) -> Any:
    """A copy on the host."""
    return values.get() if isinstance(values, StrictArray) else values


class StrictTarget(Lanes):
    """See above."""

    _known: dict[str, Compiled]

    def __init__(self) -> None:
        super().__init__()
        self._known, self._alone = {}, targets.get_target("python")

    def compile(self, kernel: Kernel) -> Compiled:
        """By lanes, if they meet."""
        if kernel.digest not in self._known:
            met = _OF_WARPS.search(self.source(kernel))
            self._known[kernel.digest] = super().compile(kernel) if met else self._alone.compile(kernel)
        return self._known[kernel.digest]

    def argument(self, parameter: Parameter, value: Any) -> Any:
        """Elements of the memory."""
        assert not isinstance(value, np.ndarray), f"{parameter.name} is on the host"
        return super().argument(parameter, value.values if isinstance(value, StrictArray) else value)

    def run(self, compiled: Compiled, lo: int, hi: int, arguments: Sequence[Any], shared_words: int = 0) -> None:
        """By lanes, or by the interpreter."""
        if _OF_WARPS.search(self.source(compiled.kernel)):
            super().run(compiled, lo, hi, arguments, shared_words)
        else:
            self._alone.run(compiled, lo, min(hi, self._limit[0]), arguments)


def _module() -> ModuleType:
    made = ModuleType("cupy")
    vars(made).update(
        {f.__name__: f for f in (empty, zeros, copyto, ascontiguousarray, asarray, asnumpy)},
        empty_like=lambda a, dtype=None: empty(a.shape, dtype or a.dtype),
        zeros_like=lambda a, dtype=None: zeros(a.shape, dtype or a.dtype),
        cuda=meta_arrays.cuda,
        ndarray=StrictArray,
    )
    return made


@contextmanager
def strict_gpu() -> Iterator[None]:
    """Within it, CuPy's place is taken."""
    module, target = _module(), StrictTarget()
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "cupy", module)
        patch.setattr(devices, "_cupy", lambda: module)
        patch.setattr("gquery.device.profile._gpu_profile", lambda device: H200)
        patch.setitem(sys.modules, "tests.support.strict_target", SimpleNamespace(TARGET=target))
        patch.setitem(targets.TARGETS, "cuda", "tests.support.strict_target")
        _forget()
        try:
            yield
        finally:
            patch.undo()
            _forget()


def _forget() -> None:
    targets.get_target.cache_clear()
    get_profile.cache_clear()


def on_gpu(frame: Frame) -> Frame:
    """A frame of the host on the GPU alone."""
    ranked = {i: _moved(c, cpu_device(), GPU) for i, c in frame.rank_values.items()}
    return Frame({i: _moved(c, cpu_device(), GPU) for i, c in frame.columns.items()}, frame.rows, ranked)


def on_host(frame: Frame) -> Frame:
    """And back."""
    ranked = {i: _moved(c, GPU, cpu_device()) for i, c in frame.rank_values.items()}
    order = frame.known_order
    known = order if order is None or order.rows is None else KnownOrder(order.keys, asnumpy(order.rows))
    columns = {i: _moved(c, GPU, cpu_device()) for i, c in frame.columns.items()}
    return Frame(columns, frame.rows, ranked, known_order=known)


def _moved(column: ColumnData, source: Device, to: Device) -> ColumnData:
    def there(buffer: Buffer) -> Buffer:
        if not buffer.is_on(source):
            return buffer
        array = buffer.on(source)
        return Buffer(to.from_host(np.array(array)) if to.is_cuda else asnumpy(array), to)

    validity, characters = (None if b is None else there(b) for b in (column.validity, column.characters))
    return replace(column, data=there(column.data), validity=validity, characters=characters)


@contextmanager
def steps_on_gpu() -> Iterator[set[str]]:
    """Within it, pipeline breakers make their frames on the strict GPU; the set gets the names of their records."""
    taken: set[str] = set()
    step = breakers._made

    def made(work: Any, frames: Mapping[int, Frame], joins: Any, matched: Any, device: Device, workers: int) -> Frame:
        if isinstance(work, UnmatchedRows):  # of a join table of the host
            return step(work, frames, joins, matched, device, workers)
        taken.add(type(work).__name__)
        with strict_gpu():
            return on_host(step(work, {n: on_gpu(f) for n, f in frames.items()}, joins, matched, GPU, 1))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(breakers, "_made", made)
        yield taken
