"""Devices: their memory, streams and copies, and the list of those that are there.

Everything that holds arrays asks a `Device` for them, so that one place counts bytes and turns a failed allocation into
an error that names who asked. CuPy is imported by this module, `device.arena` and `kernels.targets.cuda*` alone, and only once
a GPU is asked for. GPU memory comes from CuPy's pool over plain cudaMalloc: managed memory would page silently.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from gquery import tuning
from gquery.device.arena import reclaimable_bytes, release_recordings
from gquery.device.array import READ_AHEAD, Array, on_gpu
from gquery.device.current import Current, KnownGpu, Nothing
from gquery.device.filling import filled
from gquery.device.gpu_pool import GpuPool, limited
from gquery.device.host import has_driver, machine_memory, processor, refuse_huge_pages
from gquery.device.kept_memory import KEPT, available_memory
from gquery.device.limited import LimitedMemory, array_bytes, owner_of_views
from gquery.device.memory import Account, shortage
from gquery.device.spill import SpillSpace, is_spilled
from gquery.errors import DeviceError, InterfaceError, OutOfMemoryError
from gquery.runtime import device_faults
from gquery.runtime.amounts import format_bytes

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from gquery.device.driver import CopyCalls


class Device(LimitedMemory):
    """A place that holds arrays and runs kernels: the CPU, or one CUDA GPU.

    Two are equal where kind and ordinal are. ``memory_limit`` (bytes) belongs to the object: each connection makes its
    own. ``context`` arguments name the operator that asks, for error messages.
    """

    stays = False
    """Whether all work of a run stays on this device, small work too (`device.recording`)."""

    def __new__(cls, kind: str = "", ordinal: int = 0, *_: object, **__: object) -> Device:
        if cls is Device and kind == "cpu" and ordinal:
            from gquery.device.simulated import SimulatedDevice

            return object.__new__(SimulatedDevice)
        return object.__new__(cls)

    def __init__(
        self, kind: str, ordinal: int = 0, memory_limit: int | None = None, spill: SpillSpace | None = None
    ) -> None:
        self.kind = kind
        self.is_cpu, self.is_cuda = kind == "cpu", kind == "cuda"
        self.ordinal = ordinal
        self.memory_limit = memory_limit
        self.account = Account(memory_limit)  # of a CPU under a limit; CuPy's pool counts what lies on a GPU
        self.spill = spill  # where arrays go that do not fit; None: nowhere
        self.below: Device | None = None  # where parts of what does not fit lie, of a device where columns are streamed
        self.mirrors: weakref.WeakSet[Any] = weakref.WeakSet()  # buffers with a copy here, where columns are streamed
        self.evict: Callable[[Device, int], None] | None = None  # lets go of cached columns when memory runs out
        self.task = ""  # what runs here now, for the errors of allocations that do not say whose they are
        self._hash = hash((kind, ordinal))
        self._lock = threading.RLock()
        self._pool: GpuPool | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and (self.kind, self.ordinal) == (other.kind, other.ordinal)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Device({self.name!r})"

    @property
    def name(self) -> str:
        """``cpu`` or ``cuda:0``."""
        return "cpu" if self.is_cpu else f"cuda:{self.ordinal}"

    @property
    def _arrays(self) -> Any:
        """What makes arrays of the host's memory."""
        return np if self.is_counted else KEPT

    def with_limit(self, memory_limit: int | None, spill: SpillSpace | None = None) -> Device:
        """The same device under another limit, with an account of its own."""
        return Device(
            self.kind, self.ordinal, memory_limit, spill if self.is_cpu and memory_limit is not None else None
        )

    @property
    def model(self) -> str:
        """What the hardware calls itself."""
        if self.is_cpu:
            return processor()
        return str(_cupy().cuda.runtime.getDeviceProperties(self.ordinal)["name"].decode())

    @property
    def xp(self) -> ModuleType:
        """The module of array functions: numpy or cupy."""
        return np if self.is_cpu else _cupy()

    @property
    def streams(self) -> bool:
        """Whether columns stay on the host where they do not fit a limit, and go through the device a part after the other."""
        return self.memory_limit is not None and (self.is_cuda or self.ordinal > 0)

    # ---- arrays ----------------------------------------------------------------------------------------------------

    def empty(self, shape: int | tuple[int, ...], dtype: DTypeLike, context: str = "") -> Array:
        """An uninitialised array on this device; OutOfMemoryError where it does not fit."""
        return self._allocate("empty", shape, np.dtype(dtype), context)

    def empty_sparse(self, size: int, dtype: DTypeLike, context: str = "") -> Array:
        """An uninitialised array of which only few places, here and there, will be written: the system is asked not to clear
        2 MB around each. Such memory is not kept."""
        if not self.is_cpu:
            return self.empty(size, dtype, context)
        if self._arrays is KEPT:
            array = self._allocate("empty", size, np.dtype(dtype), context, np)
        else:
            array = self.empty_spillable(size, dtype, context)
        if not is_spilled(array):
            refuse_huge_pages(array)
        return array

    def zeros(self, shape: int | tuple[int, ...], dtype: DTypeLike, context: str = "") -> Array:
        return self._allocate("zeros", shape, np.dtype(dtype), context)

    def full(self, shape: int | tuple[int, ...], value: int | float, dtype: DTypeLike, context: str = "") -> Array:
        return filled(self.empty(shape, dtype, context), value)

    def from_host(self, array: Array, context: str = "") -> Array:
        """A NumPy array as an array of this device: itself on the CPU, a copy on a GPU. Bytes get room behind them, since
        kernels read strings a word at a time."""
        if self.is_cpu:
            return array
        context = context or "copying a column to the GPU"
        if array.nbytes >= tuning.transfers.staged_bytes and array.ndim == 1:
            from gquery.device.transfer import send_whole

            return send_whole(self, np.ascontiguousarray(array), context)
        if array.dtype == np.uint8 and array.ndim == 1:
            copy = self.empty(array.size + READ_AHEAD, np.uint8, context)[: array.size]
            on_gpu(copy).set(np.ascontiguousarray(array))
            return copy
        self.reserve(int(array.nbytes), context)
        return self._on_gpu(lambda cupy: cupy.asarray(array), int(array.nbytes), context)

    def initialized(self, values: Array) -> Array:
        """A fresh array with these values of the host, for the caller to write to; `from_host` is for what nobody writes to."""
        return self.from_host(values.copy() if self.is_cpu else values)

    def to_host(self, array: Array) -> Array:
        """An array of this device as a NumPy array; waits for the copy."""
        if isinstance(array, np.ndarray):
            return array
        with self.activate():
            host: Array = _cupy().asnumpy(array)
            return host

    # ---- streams ---------------------------------------------------------------------------------------------------

    def activate(self) -> Any:
        """A context manager that makes this device the current one of the thread. Under a limit, what array functions take
        for themselves (a sort, a scan) counts too. A fault that ends all use of CUDA leaves it as a DeviceError."""
        if self.is_cpu:
            return Nothing()
        limited = self.memory_limit is not None
        return Current(lambda: self.task, self._activate_limited() if limited else KnownGpu(_cupy().cuda, self.ordinal))

    @contextmanager
    def _activate_limited(self) -> Iterator[None]:
        cuda = _cupy().cuda
        with KnownGpu(cuda, self.ordinal), cuda.using_allocator(self._limited), limited():
            yield

    def copy_calls(self) -> CopyCalls | None:
        """What copies to a GPU are begun by where the interpreter is not there; None where there is nothing."""
        if self.is_cpu:
            return None
        from gquery.device.driver import copy_calls

        return copy_calls()

    def stream(self) -> Any:
        """A new stream (a context manager that makes it current); on the CPU one that does nothing."""
        if self.is_cpu:
            return Nothing()
        with self.activate():
            return _cupy().cuda.Stream(non_blocking=True)

    def synchronize(self) -> None:
        """Wait until everything that was launched on the current stream has ended."""
        if not self.is_cpu:
            with self.activate():
                _cupy().cuda.get_current_stream().synchronize()

    # ---- memory ----------------------------------------------------------------------------------------------------

    @property
    def used_bytes(self) -> int:
        """Bytes that live arrays of this device take (on the CPU only those made under a limit are counted)."""
        if self.is_cpu:
            return self.account.taken
        with self.activate():
            return self.pool.used_bytes()

    @property
    def total_bytes(self) -> int:
        """What the device may hold in all: the limit, or the memory of the machine or card."""
        if self.memory_limit is not None:
            return self.memory_limit
        if self.is_cpu:
            return machine_memory("MemTotal") or 1 << 62
        with self.activate():
            return int(_cupy().cuda.runtime.memGetInfo()[1])

    @property
    def free_bytes(self) -> int:
        """What may still be allocated."""
        if self.is_cpu:
            free = available_memory(0) + KEPT.kept_bytes
        else:
            with self.activate():
                free = int(_cupy().cuda.runtime.memGetInfo()[0]) + self.pool.free_bytes()
                free += reclaimable_bytes(self.ordinal)
        return free if self.memory_limit is None else max(0, min(free, self.memory_limit - self.used_bytes))

    def reserve(self, wanted: int, context: str) -> None:
        """Check that ``wanted`` bytes more would fit, without taking them."""
        if self.memory_limit is not None:
            if self.used_bytes + wanted > self.memory_limit and self.evict is not None:
                self.evict(self, self.used_bytes + wanted - self.memory_limit)
            if self.used_bytes + wanted > self.memory_limit:
                raise self._out_of_memory(wanted, context)
        if self.is_cpu and wanted > tuning.memory.checked_bytes and wanted > available_memory(wanted):
            raise self._out_of_memory(wanted, context)

    def make_room(self) -> None:
        """Let go of everything that is not in use: recorded runs, cached copies of columns, and blocks that the pool keeps."""
        if self.is_cuda:
            release_recordings(self.ordinal)
        if self.evict is not None:
            self.evict(self, 1 << 62)
        KEPT.release()
        if self.is_cuda:
            with self.activate():
                self.pool.trim()

    def exhausted(self, context: str, reason: str) -> OutOfMemoryError:
        """The error for memory that ran out in an array function, which names its reason and not how much it wanted."""
        return self._out_of_memory(None, context, reason)

    @property
    def pool(self) -> GpuPool:
        """Where a GPU's arrays come from: CuPy's own pool, under a limit one of this connection."""
        if self._pool is None:
            self._pool = GpuPool(_cupy(), self.ordinal, self.memory_limit)
        return self._pool

    def _limited(self, size: int) -> Any:
        with self._lock:  # so that no two threads get the last bytes
            self.reserve(size, "")
            made = self.pool.malloc(size)
            if made is None and self.evict is not None:  # blocks in use lie so that none of this size is between them
                self.evict(self, self.used_bytes)
                made = self.pool.malloc(size)
            if made is None:
                raise self._out_of_memory(size, "")
            return made

    def _allocate(
        self, how: str, shape: int | tuple[int, ...], dtype: np.dtype[Any], context: str, arrays: Any = None
    ) -> Array:
        """What the function ``how`` of NumPy or CuPy makes; on a CPU that of ``arrays``, if they are given."""
        wanted = array_bytes(shape, dtype)
        if self.is_cuda:
            self.reserve(wanted, context)
            return self._on_gpu(lambda cupy: getattr(cupy, how)(shape, dtype), wanted, context)
        self.take(wanted, context)
        try:
            array: Array = getattr(arrays or self._arrays, how)(shape, dtype)
            if self.is_counted:
                self.account.bind(owner_of_views(array), wanted)
        except BaseException as error:
            if self.is_counted:
                self.account.give(wanted)
            if not isinstance(error, MemoryError):
                raise
        else:
            return array
        raise self._out_of_memory(wanted, context)

    def _on_gpu(self, make: Callable[[ModuleType], Array], wanted: int, context: str) -> Array:
        cupy = _cupy()
        with self.activate():
            try:
                return make(cupy)
            except cupy.cuda.memory.OutOfMemoryError:
                release_recordings(self.ordinal)
                if self.evict is not None:
                    self.evict(self, wanted)
                self.pool.trim()  # blocks of other sizes may be all that is in the way
            try:
                return make(cupy)
            except cupy.cuda.memory.OutOfMemoryError:
                raise self._out_of_memory(wanted, context) from None

    def _out_of_memory(self, wanted: int | None, context: str, reason: str = "", spilled: str = "") -> OutOfMemoryError:
        words = reason if wanted is None else format_bytes(wanted) + " wanted"
        task, free = context or self.task or "a query", self.free_bytes
        wanting = f"{self.name} in {task}: {words}"
        return OutOfMemoryError(shortage(wanting, self.used_bytes, free, self.memory_limit, spilled))


@lru_cache(maxsize=1)
def cpu_device() -> Device:
    """The CPU, without a limit."""
    return Device("cpu")


def cuda_device(ordinal: int = 0) -> Device:
    """GPU number ``ordinal``; DeviceError says what is missing: the package, the driver, or that GPU."""
    count = _gpu_count()
    if not 0 <= ordinal < count:
        have = "one GPU, cuda:0" if count == 1 else f"{count} GPUs, cuda:0 to cuda:{count - 1}"
        raise DeviceError(f"There is no cuda:{ordinal}: this machine has {have}.")
    return Device("cuda", ordinal)


def current_gpu() -> int:
    """The number of the GPU that this thread's launches go to."""
    return int(_cupy().cuda.runtime.getDevice())


def available_devices() -> list[Device]:
    """Every device that can be used here, the CPU first."""
    device_faults.check()
    try:
        count = _gpu_count() if has_driver() else 0
    except DeviceError:
        count = 0
    return [cpu_device(), *(Device("cuda", i) for i in range(count))]


def best_device() -> Device:
    """The first GPU, or the CPU where there is none."""
    devices = available_devices()
    return devices[min(1, len(devices) - 1)]


def _gpu_count() -> int:
    device_faults.check()
    cupy = _cupy()
    try:
        count = int(cupy.cuda.runtime.getDeviceCount())
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise device_faults.named(error, "") or DeviceError(
            f"No GPU can be used: {error}. Use device='cpu', or check the driver with nvidia-smi."
        ) from None
    if count == 0:
        raise DeviceError("No GPU can be used: CUDA finds none. Use device='cpu', or check CUDA_VISIBLE_DEVICES.")
    return count


@lru_cache(maxsize=1)
def _cupy() -> ModuleType:
    try:
        import cupy
    except ImportError as error:
        raise DeviceError(
            "The GPU needs CuPy and Numba-CUDA: pip install 'gquery[cu13]' ('gquery[cu12]' for a driver of CUDA 12). "
            f"Importing CuPy failed: {error}"
        ) from None
    module: ModuleType = cupy
    return module


def adopt(array: Any) -> Any:
    """An array of another library (``__cuda_array_interface__`` or DLPack) as CuPy's, or NumPy's where it lies on the
    host, without a copy."""
    if hasattr(array, "__cuda_array_interface__"):
        return _cupy().asarray(array)
    kind = int(array.__dlpack_device__()[0])
    if kind in (1, 3):  # the host's memory, pinned or not
        return np.from_dlpack(array)
    if kind in (2, 13):  # a GPU's, managed or not
        return _cupy().from_dlpack(array)
    raise InterfaceError(f"A {type(array).__name__} lies on a device (DLPack number {kind}) that gquery cannot read")
