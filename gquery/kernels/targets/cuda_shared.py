"""A block of a GPU: its threads, its barrier, its shared memory, and the atomics on that.

Shared memory is one array, whose size is said at launch: words that belong to one thread (*private*), or words of the
whole block (*shared*), of which the 32-bit ones are numbered over the same memory.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from gquery.kernels.targets.base import PRIVATE_THREADS
from gquery.kernels.targets.cuda_intrinsics import call, register
from gquery.kernels.targets.intrinsics import F64, I16, I32, I64, Definition, Emit, constant

_SHARED = 3  # LLVM's address space of shared memory


def _memory(b: Any) -> Any:
    """The block's dynamic shared memory, as 64-bit words."""
    memory = b.module.globals.get("gquery_shared")
    if memory is None:
        memory = ir.GlobalVariable(b.module, ir.ArrayType(I64, 0), "gquery_shared", _SHARED)
        memory.linkage = "external"
        memory.align = 8
    return memory


def _private(b: Any, word: Any) -> Any:
    """The address of this thread's word in shared memory."""
    index = b.add(b.mul(word, constant(PRIVATE_THREADS)), register(b, "tid.x"))
    return b.gep(_memory(b), [constant(0), index])


def _shared(b: Any, index: Any, type_: Any = I64) -> Any:
    """The address of element ``index`` of shared memory taken as elements of ``type_``."""
    start = b.gep(_memory(b), [constant(0), constant(0)])
    return b.gep(b.bitcast(start, type_.as_pointer(_SHARED)), [index])


def _shared_atomic(operation: str, type_: Any) -> Emit:
    def emit(b: Any, index: Any, value: Any) -> Any:
        value = value if type_ == I64 else b.trunc(value, type_)
        old = b.atomic_rmw(operation, _shared(b, index, type_), value, "monotonic")
        return old if type_ == I64 else b.zext(old, I64)

    return emit


def _shared_add_f64(b: Any, index: Any, value: Any) -> Any:
    return call(b, "llvm.nvvm.atomic.load.add.f64.p3f64", F64, _shared(b, index, F64), value)


def _shared_cas(b: Any, index: Any, old: Any, new: Any) -> Any:
    return b.extract_value(b.cmpxchg(_shared(b, index), old, new, "monotonic", "monotonic"), 0)


def _barrier(b: Any) -> None:
    call(b, "llvm.nvvm.barrier0", ir.VoidType())


_WORDS: tuple[tuple[str, str, str, Emit], ...] = (
    ("private_load", "i64", "i64", lambda b, w: b.load(_private(b, w))),
    ("private_store", "i64 i64", "void", lambda b, w, v: b.store(v, _private(b, w))),
    ("block_thread", "", "i64", lambda b: register(b, "tid.x")),
    ("block_threads", "", "i64", lambda b: register(b, "ntid.x")),
    ("block_barrier", "", "void", _barrier),
    ("shared_load_i64", "i64", "i64", lambda b, i: b.load(_shared(b, i))),
    ("shared_load_u32", "i64", "i64", lambda b, i: b.zext(b.load(_shared(b, i, I32)), I64)),
    ("shared_load_u16", "i64", "i64", lambda b, i: b.zext(b.load(_shared(b, i, I16)), I64)),
    ("shared_store_u16", "i64 i64", "void", lambda b, i, v: b.store(b.trunc(v, I16), _shared(b, i, I16))),
    ("shared_store_i64", "i64 i64", "void", lambda b, i, v: b.store(v, _shared(b, i))),
    ("shared_store_u32", "i64 i64", "void", lambda b, i, v: b.store(b.trunc(v, I32), _shared(b, i, I32))),
    ("shared_atomic_add_u32", "i64 i64", "i64", _shared_atomic("add", I32)),
    ("shared_atomic_min_i64", "i64 i64", "i64", _shared_atomic("min", I64)),
    ("shared_atomic_max_i64", "i64 i64", "i64", _shared_atomic("max", I64)),
    ("shared_cas_i64", "i64 i64 i64", "i64", _shared_cas),
    ("shared_atomic_add_f64", "i64 f64", "f64", _shared_add_f64),
)
SHARED_DEFINITIONS = {
    name: Definition(name, tuple(arguments.split()), result, emit) for name, arguments, result, emit in _WORDS
}
