"""Arrays of a GPU that is not there: a shape, a type and an address, and no elements. Other libraries call them meta arrays.

What array functions make of them is again such arrays, so a run of billions of rows takes as long as its Python. Only who asks
for elements is told something made up, and noted: a copy from a GPU to the host. So are copies to it from the host's memory.
The module has what gquery uses of CuPy, and stands for it (`tests.support.meta_gpu`).
"""

from __future__ import annotations

import itertools
import operator
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2] / "gquery"
SOME = 3_000_000  # what kernels have counted, where that may be so many
EXTREME = 40  # the least or the greatest of some integers
_addresses = itertools.count(1 << 40, 1 << 40)


@dataclass
class Copies:
    """Copies between the host and the GPU while a run is recorded, each with the lines of gquery that led to it. ``apart``: what
    is copied is not part of the recording. ``compiled``: functions, in any run, that CuPy compiles when it first meets types."""

    is_recording: bool = False
    is_apart: bool = False
    noted: list[str] = field(default_factory=list)
    compiled: list[str] = field(default_factory=list)

    def note(self, what: str) -> None:
        if self.is_recording and not self.is_apart:
            self.noted.append(_told(what))

    def note_compiled(self, what: str) -> None:
        self.compiled.append(_told(what))

    @contextmanager
    def recording(self) -> Iterator[None]:
        self.is_recording = True
        try:
            yield
        finally:
            self.is_recording = False

    @contextmanager
    def apart(self) -> Iterator[None]:
        self.is_apart = True
        try:
            yield
        finally:
            self.is_apart = False


def _told(what: str) -> str:
    lines = [f for f in traceback.extract_stack() if f.filename.startswith(str(ROOT))]
    at = " < ".join(f"{f.name} ({Path(f.filename).relative_to(ROOT)}:{f.lineno})" for f in lines[:-5:-1])
    return f"{what}: {at}"


copies = Copies()


class MetaArray:
    """See above. ``shell`` is an array of NumPy over memory that is not there, for its arithmetic of shapes and strides alone.
    ``answer`` is what its one element is said to be."""

    __array_ufunc__ = None  # CuPy's refuse NumPy's functions
    device = SimpleNamespace(id=0)

    def __init__(self, shell: Any, memory: SimpleNamespace, answer: int | None = None) -> None:
        self.shell, self.memory, self.answer = shell, memory, answer

    @classmethod
    def made(cls, shape: Any, dtype: Any, answer: int | None = None) -> MetaArray:
        """A new one."""
        memory = SimpleNamespace(ptr=next(_addresses), is_recorded=copies.is_recording and not copies.is_apart)
        return cls(_shell(shape, np.dtype(dtype)), memory, answer)

    shape = property(lambda self: self.shell.shape)
    dtype = property(lambda self: self.shell.dtype)
    size = property(lambda self: int(self.shell.size))
    ndim = property(lambda self: self.shell.ndim)
    nbytes = property(lambda self: int(self.shell.nbytes))
    itemsize = property(lambda self: self.shell.itemsize)
    strides = property(lambda self: self.shell.strides)
    base = None

    @property
    def data(self) -> SimpleNamespace:
        begin = self.shell.__array_interface__["data"][0] - _BYTE.ctypes.data
        return SimpleNamespace(ptr=self.memory.ptr + begin, mem=self.memory)

    @property
    def flags(self) -> Any:
        return self.shell.flags

    def _like(self, shell: Any) -> MetaArray:
        return MetaArray(shell, self.memory, self.answer)

    # ---- views and copies -------------------------------------------------------------------------------------------

    def view(self, dtype: Any) -> MetaArray:
        return self._like(self.shell.view(dtype))

    def reshape(self, *shape: Any) -> MetaArray:
        if not self.shell.flags.c_contiguous:
            return MetaArray.made(_shell(self.shape, self.dtype).reshape(*shape).shape, self.dtype, self.answer)
        return self._like(self.shell.reshape(*shape))

    def astype(self, dtype: Any, copy: bool = True) -> MetaArray:
        if copy or np.dtype(dtype) != self.dtype:
            copies.note_compiled("astype")
        return self if not copy and np.dtype(dtype) == self.dtype else MetaArray.made(self.shape, dtype, self.answer)

    def copy(self) -> MetaArray:
        copies.note_compiled("copy")
        return MetaArray.made(self.shape, self.dtype, self.answer)

    def fill(self, value: Any) -> None:
        if isinstance(value, MetaArray):
            raise TypeError("an array is filled with a number")
        if value != 0:
            copies.note_compiled("fill")

    def sort(self, axis: int = -1) -> None:
        pass

    def set(self, values: Any) -> None:
        copies.note("a copy to the GPU")
        assert values.shape == self.shape and values.dtype == self.dtype

    def __getitem__(self, at: Any) -> MetaArray:
        if isinstance(at, MetaArray):
            copies.note_compiled("elements by an index")
            if at.dtype == np.bool_:
                copies.note("a count of flags")
                return MetaArray.made((min(self.shape[0], SOME), *self.shape[1:]), self.dtype)
            return MetaArray.made((*at.shape, *self.shape[1:]), self.dtype)
        assert not isinstance(at, np.ndarray), "an index is an array of the host"
        return self._like(np.ndarray.__getitem__(self.shell, at if at is ... or isinstance(at, tuple) else (at, ...)))

    def __setitem__(self, at: Any, value: Any) -> None:
        if isinstance(value, np.ndarray) or isinstance(at, np.ndarray):
            copies.note("a copy to the GPU")
        is_same = isinstance(value, MetaArray | np.ndarray) and value.dtype == self.dtype
        is_one = isinstance(value, MetaArray) and value.shape == (1,)  # which CuPy takes for an array without a dimension
        if isinstance(at, MetaArray) or is_one or not (is_same or (isinstance(value, int) and value == 0)):
            copies.note_compiled("elements are set")
        if isinstance(value, MetaArray) and not (isinstance(at, MetaArray) and at.dtype == np.bool_):
            np.broadcast_shapes(value.shape, self[at].shape)

    def __len__(self) -> int:
        return len(self.shell)

    # ---- elements ---------------------------------------------------------------------------------------------------

    def item(self) -> Any:
        assert self.size == 1
        copies.note("an element")
        answer = SOME if self.answer is None else self.answer
        return self.dtype.type(answer).item() if self.dtype.kind != "b" else bool(self.answer)

    def get(self, **_: Any) -> Any:
        copies.note("a copy to the host")
        return np.zeros(self.shape, self.dtype)

    def tolist(self) -> Any:
        return self.get().tolist()

    __int__ = __index__ = __float__ = __bool__ = item

    def __iter__(self) -> Iterator[Any]:
        raise TypeError("elements of a GPU's array one by one")

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("an array of a GPU as one of the host")

    # ---- reductions -------------------------------------------------------------------------------------------------

    def _reduced(self, axis: int | None, dtype: Any, answer: int) -> MetaArray:
        if axis is not None:
            copies.note_compiled("a reduction of rows")
        shape = () if axis is None else tuple(n for k, n in enumerate(self.shape) if k != axis % self.ndim)
        return MetaArray.made(shape, dtype, answer)

    def min(self, axis: int | None = None) -> MetaArray:
        return self._reduced(axis, self.dtype, 0)

    def max(self, axis: int | None = None) -> MetaArray:
        return self._reduced(axis, self.dtype, EXTREME)

    def sum(self, axis: int | None = None, dtype: Any = None) -> MetaArray:
        kind = np.zeros(1, self.dtype).sum().dtype if dtype is None else dtype
        return self._reduced(axis, kind, SOME)

    def any(self, axis: int | None = None) -> MetaArray:
        copies.note_compiled("any")
        return self._reduced(axis, np.bool_, 0)

    def all(self, axis: int | None = None) -> MetaArray:
        copies.note_compiled("all")
        return self._reduced(axis, np.bool_, 1)


_BYTE = np.zeros(16, np.uint8)


def _shell(shape: Any, dtype: Any) -> Any:
    """An array that nobody may read or write."""
    shape = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
    strides = [int(dtype.itemsize) * int(np.prod(shape[n + 1 :], dtype=object)) for n in range(len(shape))]
    return np.lib.stride_tricks.as_strided(_BYTE.view(dtype)[:1], shape, strides)


def _elementwise(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of NumPy over meta arrays and numbers: it says which type comes out."""

    def apply(*given: Any, out: MetaArray | None = None, **options: Any) -> Any:
        if any(isinstance(g, np.ndarray) and g.ndim for g in given):
            copies.note("a copy to the GPU")
        copies.note_compiled(function.__name__)
        shape = np.broadcast_shapes(*(g.shape for g in given if isinstance(g, MetaArray | np.ndarray)))
        if out is not None:
            assert out.shape == shape, "an array of another size is written"
            return out
        with np.errstate(all="ignore"):
            types = [np.ones(1, g.dtype) if isinstance(g, MetaArray) else g for g in given]
            return MetaArray.made(shape, function(*types, **options).dtype)

    return apply


def _reflected(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, other: function(other, self)


def _in_place(function: Callable[..., Any]) -> Callable[..., Any]:
    def apply(self: MetaArray, other: Any) -> MetaArray:
        assert function(self, other).shape == self.shape
        return self

    return apply


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "and", "or", "xor", "lshift", "rshift"):
    _made = _elementwise(getattr(operator, f"__{_name}__"))
    setattr(MetaArray, f"__{_name}__", _made)
    setattr(MetaArray, f"__r{_name}__", _reflected(_made))
    setattr(MetaArray, f"__i{_name}__", _in_place(_made))
for _name in ("eq", "ne", "lt", "le", "gt", "ge", "invert", "neg", "abs"):
    setattr(MetaArray, f"__{_name}__", _elementwise(getattr(operator, f"__{_name}__")))
MetaArray.__module__ = "cupy"  # where `namespace` looks for functions of such arrays

# ---- functions ------------------------------------------------------------------------------------------------------

for _name in (
    *(
        "subtract",
        "add",
        "not_equal",
        "equal",
        "minimum",
        "maximum",
        "where",
        "isnan",
        "floor",
        "ceil",
        "trunc",
        "rint",
    ),
    *("abs", "copysign", "logical_and", "logical_or", "logical_not", "left_shift", "bitwise_and", "bitwise_or", "sqrt"),
):
    globals()[_name] = _elementwise(getattr(np, _name))


def empty(shape: Any, dtype: Any = np.float64) -> MetaArray:
    return MetaArray.made(shape, dtype)


def zeros(shape: Any, dtype: Any = np.float64) -> MetaArray:
    return MetaArray.made(shape, dtype)


def ones(shape: Any, dtype: Any = np.float64) -> MetaArray:
    copies.note_compiled("ones")
    return MetaArray.made(shape, dtype)


def full(shape: Any, value: Any, dtype: Any = None) -> MetaArray:
    copies.note_compiled("full")
    return MetaArray.made(shape, np.asarray(value).dtype if dtype is None else dtype)


def empty_like(array: MetaArray, dtype: Any = None) -> MetaArray:
    return MetaArray.made(array.shape, array.dtype if dtype is None else dtype)


zeros_like = ones_like = empty_like


def arange(*ends: int, dtype: Any = np.int64) -> MetaArray:
    copies.note_compiled("arange")
    return MetaArray.made(len(range(*map(int, ends))), dtype)


def asarray(values: Any, dtype: Any = None) -> MetaArray:
    if isinstance(values, MetaArray):
        return values
    copies.note("a copy to the GPU")
    host = np.asarray(values, dtype)
    return MetaArray.made(host.shape, host.dtype)


def copyto(to: MetaArray, values: Any, casting: str = "") -> None:
    if not (isinstance(values, MetaArray) and values.dtype == to.dtype and values.flags.c_contiguous and to.flags.c_contiguous):
        to[:] = values


def ascontiguousarray(values: MetaArray) -> MetaArray:
    if not values.shell.flags.c_contiguous:
        copies.note_compiled("ascontiguousarray")
    return values if values.shell.flags.c_contiguous else values.copy()


def asnumpy(values: Any) -> Any:
    return values.get() if isinstance(values, MetaArray) else values


def cumsum(values: MetaArray, dtype: Any = None, out: MetaArray | None = None, axis: int | None = None) -> MetaArray:
    copies.note_compiled("cumsum")
    kind = np.zeros(1, values.dtype).cumsum(dtype=dtype).dtype
    made = MetaArray.made(values.shape, kind) if out is None else out
    made.answer = values.size  # of the last one: one for each
    return made


def sort(values: MetaArray) -> MetaArray:
    return values.copy()


def argsort(values: MetaArray, kind: str = "") -> MetaArray:
    copies.note_compiled("argsort")
    return MetaArray.made(values.shape, np.int64)


def searchsorted(values: MetaArray, wanted: Any, side: str = "left") -> MetaArray:
    copies.note_compiled("searchsorted")
    return MetaArray.made(wanted.shape if isinstance(wanted, MetaArray) else (), np.int64)


def concatenate(arrays: Sequence[MetaArray], out: MetaArray | None = None) -> MetaArray:
    copies.note_compiled("concatenate")
    rows = sum(a.shape[0] for a in arrays)
    if out is not None:
        assert out.shape[0] == rows
        return out
    return MetaArray.made((rows, *arrays[0].shape[1:]), np.result_type(*(a.dtype for a in arrays)))


def stack(arrays: Sequence[MetaArray], axis: int = 0) -> MetaArray:
    copies.note_compiled("stack")
    shape = list(arrays[0].shape)
    shape.insert(axis % (len(shape) + 1), len(arrays))
    return MetaArray.made(shape, np.result_type(*(a.dtype for a in arrays)))


def repeat(values: MetaArray, times: Any) -> MetaArray:
    copies.note_compiled("repeat")
    if not isinstance(times, int):
        copies.note("a number of elements")
        return MetaArray.made(SOME, values.dtype)
    return MetaArray.made(values.size * times, values.dtype)


def tile(values: MetaArray, times: int) -> MetaArray:
    copies.note_compiled("tile")
    return MetaArray.made(values.size * times, values.dtype)


def _counts(values: MetaArray, *_: Any, **__: Any) -> MetaArray:
    copies.note_compiled("a count")
    copies.note("a number of elements")
    return MetaArray.made(min(values.size, SOME), values.dtype)


unique = flatnonzero = nonzero = _counts


def as_strided(values: MetaArray, shape: tuple[int, ...], strides: tuple[int, ...]) -> MetaArray:
    return values._like(np.lib.stride_tricks.as_strided(values.shell, shape, strides))


lib = SimpleNamespace(stride_tricks=SimpleNamespace(as_strided=as_strided))


class Place:
    """A device or a stream: as a context it changes nothing."""

    ptr = 0

    def __init__(self, *_: Any, **__: Any) -> None:
        self.attributes: dict[str, int] = {}
        self.pci_bus_id = ""

    def __enter__(self) -> Place:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def synchronize(self) -> None:
        copies.note("a wait for the GPU")


_pool = SimpleNamespace(used_bytes=lambda: 0, free_bytes=lambda: 0, free_all_blocks=lambda: None)
cuda = SimpleNamespace(
    runtime=SimpleNamespace(
        CUDARuntimeError=type("CUDARuntimeError", (RuntimeError,), {}),
        getDevice=lambda: 0,
        setDevice=lambda ordinal: None,
        memGetInfo=lambda: (140 << 30, 141 << 30),
    ),
    Device=Place,
    Stream=Place,
    get_current_stream=Place,
    memory=SimpleNamespace(OutOfMemoryError=type("OutOfMemoryError", (MemoryError,), {})),
)


def get_default_memory_pool() -> SimpleNamespace:
    return _pool
