"""What the CPU does its own way: pointers from addresses, and accumulators that belong to one worker."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from gquery.kernels.targets.intrinsics import F64, I8, I32, I64, Definition, Emit, constant, element

_BYTES = ir.VectorType(I8, 64)
ELEMENTS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f32", "f64")


def _accumulate(combine: Emit, type_: Any) -> Emit:
    def emit(b: Any, state: Any, slot: Any, value: Any) -> None:
        place = element(b, state, slot, type_)
        b.store(combine(b, b.load(place), value), place)

    return emit


def _fadd_atomic(b: Any, pointer: Any, index: Any, value: Any) -> Any:
    return b.atomic_rmw("fadd", element(b, pointer, index, F64), value, "monotonic")


def _reserve(b: Any, counter: Any, n: Any) -> Any:
    return b.atomic_rmw("add", element(b, counter, constant(0), I64), n, "monotonic")


def _prefetch(b: Any, pointer: Any, index: Any) -> None:
    """Have the line of word ``index`` of 64 bits come to this core, to be written."""
    _bring(b, b.bitcast(element(b, pointer, index, I64), I8.as_pointer()), constant(1, I32))


def _prefetch_bytes(b: Any, pointer: Any, index: Any) -> None:
    """Have the line of byte ``index`` come to this core, to be read."""
    _bring(b, element(b, pointer, index, I8), constant(0, I32))


def _prefetch_text(b: Any, address: Any) -> None:
    """Have the line at an address come to this core, to be read."""
    _bring(b, b.inttoptr(address, I8.as_pointer()), constant(0, I32))


def _bring(b: Any, place: Any, is_written: Any) -> None:
    type_ = ir.FunctionType(ir.VoidType(), [I8.as_pointer(), I32, I32, I32])
    take = b.module.declare_intrinsic("llvm.prefetch", [I8.as_pointer()], type_)
    b.call(take, [place, is_written, constant(3, I32), constant(1, I32)])


def _read_file(b: Any, file: Any, address: Any, size: Any, position: Any) -> Any:
    """Of the C library: each thread says which bytes it reads, so that several share a file."""
    read = b.module.globals.get("pread")
    if read is None:
        read = ir.Function(b.module, ir.FunctionType(I64, [I32, I64, I64, I64]), "pread")
    return b.call(read, [b.trunc(file, I32), address, size, position])


def _call_native(b: Any, function: Any, *words: Any) -> Any:
    """Of a library's function, whose error is an integer of 32 bits. One of fewer words takes no notice of the others."""
    type_ = ir.FunctionType(I32, [I64] * len(words))
    return b.sext(b.call(b.inttoptr(function, type_.as_pointer()), words), I64)


def _accumulate_u32(b: Any, state: Any, slot: Any, value: Any) -> None:
    place = element(b, state, slot, I32)
    b.store(b.add(b.load(place), b.trunc(value, I32)), place)


def _marks_word(b: Any, marks: Any, index: Any) -> Any:
    """A bit for each of 64 bytes, the first of which is byte ``index``: whether it is not 0."""
    found = b.load(b.bitcast(b.gep(marks, [index]), _BYTES.as_pointer()))
    return b.bitcast(b.icmp_unsigned("!=", found, ir.Constant(_BYTES, None)), I64)


def _byte_pairs(b: Any, one: Any, other: Any, first: Any, second: Any) -> Any:
    """A bit for each of the 64 bytes at one address that is ``first`` where the byte at the other is ``second``."""

    def found(address: Any, byte: Any) -> Any:
        bytes_ = b.load(b.inttoptr(address, _BYTES.as_pointer()))
        bytes_.align = 1
        alone = b.insert_element(ir.Constant(_BYTES, ir.Undefined), b.trunc(byte, I8), constant(0, I32))
        every = b.shuffle_vector(alone, alone, ir.Constant(ir.VectorType(I32, _BYTES.count), None))
        return b.icmp_unsigned("==", bytes_, every)

    return b.bitcast(b.and_(found(one, first), found(other, second)), I64)


_ACCUMULATE = {
    "add_i64": ("i64", _accumulate(lambda b, x, y: b.add(x, y), I64)),
    "min_i64": ("i64", _accumulate(lambda b, x, y: b.select(b.icmp_signed("<", y, x), y, x), I64)),
    "max_i64": ("i64", _accumulate(lambda b, x, y: b.select(b.icmp_signed(">", y, x), y, x), I64)),
    "add_f64": ("f64", _accumulate(lambda b, x, y: b.fadd(x, y), F64)),
}

CPU_DEFINITIONS = {
    **{f"{how}_{name}": Definition(f"{how}_{name}", ("*", "i64", type_), "void", emit)
       for name, (type_, emit) in _ACCUMULATE.items() for how in ("accumulate", "reduce")},
    "atomic_add_f64": Definition("atomic_add_f64", ("*", "i64", "f64"), "f64", _fadd_atomic),
    "accumulate_add_u32": Definition("accumulate_add_u32", ("*", "i64", "i64"), "void", _accumulate_u32),
    "call_native": Definition("call_native", ("i64",) * 5, "i64", _call_native),
    "byte_pairs": Definition("byte_pairs", ("i64",) * 4, "i64", _byte_pairs),
    "marks_word": Definition("marks_word", ("*", "i64"), "i64", _marks_word),
    "prefetch": Definition("prefetch", ("*", "i64"), "void", _prefetch),
    "prefetch_bytes": Definition("prefetch_bytes", ("*", "i64"), "void", _prefetch_bytes),
    "prefetch_text": Definition("prefetch_text", ("i64",), "void", _prefetch_text),
    "read_file": Definition("read_file", ("i64",) * 4, "i64", _read_file),
    "reserve": Definition("reserve", ("*", "i64"), "i64", _reserve),
}  # fmt: skip
