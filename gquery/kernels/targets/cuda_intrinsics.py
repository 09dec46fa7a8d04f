"""What a GPU does its own way: thread numbers, shuffles, atomics on doubles, arithmetic without FMA."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from gquery.kernels.targets.intrinsics import (
    F64,
    I1,
    I8,
    I16,
    I32,
    I64,
    Definition,
    Emit,
    atomics,
    constant,
    in_space,
    pair_load,
    store_at,
)

_GLOBAL = 1  # LLVM's address space of global memory


def call(b: Any, name: str, result: Any, *values: Any) -> Any:
    """Call an instruction that LLVM knows as a function."""
    module = b.module
    type_ = ir.FunctionType(result, [v.type for v in values])
    function = module.globals.get(name) or ir.Function(module, type_, name)
    return b.call(function, values)


def register(b: Any, name: str) -> Any:
    """A special register, such as the thread's number, as a 64-bit integer."""
    return b.zext(call(b, f"llvm.nvvm.read.ptx.sreg.{name}", I32), I64)


def _thread(b: Any) -> Any:
    return b.add(b.mul(register(b, "ctaid.x"), register(b, "ntid.x")), register(b, "tid.x"))


def _threads(b: Any) -> Any:
    return b.mul(register(b, "nctaid.x"), register(b, "ntid.x"))


def _shuffle_word(b: Any, x: Any, lane: Any, how: str) -> Any:
    mask, clamp = constant(0xFFFFFFFF, I32), constant(31, I32)
    return call(b, f"llvm.nvvm.shfl.sync.{how}.i32", I32, mask, x, lane, clamp)


def _shuffle(b: Any, x: Any, lane: Any, how: str = "down") -> Any:
    lane = b.trunc(lane, I32)
    low = _shuffle_word(b, b.trunc(x, I32), lane, how)
    high = _shuffle_word(b, b.trunc(b.lshr(x, constant(32)), I32), lane, how)
    return b.or_(b.shl(b.zext(high, I64), constant(32)), b.zext(low, I64))


def _members(b: Any, row: Any, end: Any) -> Any:
    """The lanes of a warp that have a row before ``end``, where its lanes' rows are neighbours and the first a multiple of 32."""
    left = b.sub(end, b.and_(row, constant(-32)))
    some = b.sub(b.shl(constant(1), left), constant(1))
    return b.select(b.icmp_unsigned("<", left, constant(32)), some, constant(0xFFFFFFFF))


def _ballot(b: Any, members: Any, vote: Any) -> Any:
    """A bit for each lane of ``members``, all of which come here. Written into the kernel itself and not as a function: the
    compiler may move calls of functions into branches."""
    result, by_bits = ir.LiteralStructType((I32, I1)), constant(3, I32)
    votes = call(b, "llvm.nvvm.vote.sync", result, b.trunc(members, I32), by_bits, vote)
    return b.zext(b.extract_value(votes, 0), I64)


def _is_first_lane_with(b: Any, key: Any) -> Any:
    """Whether none of the lanes that came here together, and stand before this one, has the same key (its lower 32 bits). Lanes
    that come later, or in another branch, do not count."""
    active = b.asm(ir.FunctionType(I32, []), "activemask.b32 $0;", "=r", [], True)
    peers = call(b, "llvm.nvvm.match.any.sync.i32", I32, active, b.trunc(key, I32))
    lane = b.and_(call(b, "llvm.nvvm.read.ptx.sreg.tid.x", I32), constant(31, I32))
    before = b.sub(b.shl(constant(1, I32), lane), constant(1, I32))
    return b.icmp_unsigned("==", b.and_(peers, before), constant(0, I32))


def _add_f64(b: Any, pointer: Any, index: Any, value: Any) -> Any:
    place = in_space(b, pointer, index, F64, _GLOBAL)
    return call(b, f"llvm.nvvm.atomic.load.add.f64.p{_GLOBAL}f64", F64, place, value)


def _rounded(name: str) -> Emit:
    """An operation that NVVM may not contract into an FMA, which would round otherwise than the CPU does."""
    return lambda b, x, y: call(b, f"llvm.nvvm.{name}.rn.d", F64, x, y)


def _product_apart(b: Any, x: Any, y: Any) -> Any:
    """A product that the compiler moves, and does not look into (`lowering.grid`)."""
    return b.asm(ir.FunctionType(I64, [I64, I64]), "mul.lo.s64 $0, $1, $2;", "=l,l,l", [x, y], False)


def _sub(b: Any, x: Any, y: Any) -> Any:
    minus = b.bitcast(b.xor(b.bitcast(y, I64), constant(1 << 63)), F64)
    return call(b, "llvm.nvvm.add.rn.d", F64, x, minus)


def _load_global(b: Any, address: Any, type_: Any = I64) -> Any:
    """A load from an address that is known to lie in global memory, as all text does."""
    return b.load(b.inttoptr(address, type_.as_pointer(_GLOBAL)))


def _lanes_alike(b: Any, lanes: Any, x: Any, k: Any) -> Any:
    """Those of ``lanes`` that have the same bit ``k`` in ``x``, of 32 bits, as the calling one. All of a warp come here."""
    bit = b.and_(b.lshr(b.trunc(x, I32), b.trunc(k, I32)), constant(1, I32))
    all_lanes, result = constant(0xFFFFFFFF, I32), ir.LiteralStructType((I32, I1))
    is_set = b.icmp_unsigned("!=", bit, constant(0, I32))
    votes = b.extract_value(call(b, "llvm.nvvm.vote.sync", result, all_lanes, constant(3, I32), is_set), 0)
    alike = b.xor(votes, b.sub(bit, constant(1, I32)))
    return b.zext(b.and_(b.trunc(lanes, I32), alike), I64)


def _lanes_before(b: Any, lanes: Any) -> Any:
    """How many of ``lanes`` come before the calling one."""
    before = call(b, "llvm.nvvm.read.ptx.sreg.lanemask.lt", I32)
    return b.zext(b.ctpop(b.and_(b.trunc(lanes, I32), before)), I64)


def _warp_barrier(b: Any) -> None:
    """Behind it, all lanes of the warp see what each stored before it."""
    call(b, "llvm.nvvm.bar.warp.sync", ir.VoidType(), constant(0xFFFFFFFF, I32))


def _load_unaligned(b: Any, address: Any) -> Any:
    """Eight bytes from any address on. A GPU loads a word from a multiple of its size, or byte by byte: so it is put
    together from the two words that it may lie in, which are one where the address is a multiple of 8."""
    shift = b.shl(b.and_(address, constant(7)), constant(3))
    first = _load_global(b, b.and_(address, constant(-8)))
    second = _load_global(b, b.and_(b.add(address, constant(7)), constant(-8)))
    upper = b.shl(b.shl(second, b.sub(constant(63), shift)), constant(1))  # nothing, where the shift is 0
    return b.or_(b.lshr(first, shift), upper)


_WORDS: tuple[tuple[str, str, str, Emit], ...] = (
    ("thread_index", "", "u64", _thread),
    ("thread_count", "", "u64", _threads),
    ("lane", "", "i64", lambda b: b.and_(register(b, "tid.x"), constant(31))),
    ("lanes", "", "i64", lambda b: constant(32)),
    ("shuffle_down_i64", "i64 i64", "i64", _shuffle),
    ("shuffle_from_i64", "i64 i64", "i64", lambda b, x, lane: _shuffle(b, x, lane, "idx")),
    ("shuffle_down_f64", "f64 i64", "f64", lambda b, x, n: b.bitcast(_shuffle(b, b.bitcast(x, I64), n), F64)),
    ("members", "u64 u64", "i64", _members),
    ("ballot", "i64 bool", "i64", _ballot),
    ("is_first_lane_with", "i64", "bool", _is_first_lane_with),
    ("atomic_add_f64", "* i64 f64", "f64", _add_f64),
    ("mul_i64_apart", "i64 i64", "i64", _product_apart),
    ("add_f64", "f64 f64", "f64", _rounded("add")),
    ("mul_f64", "f64 f64", "f64", _rounded("mul")),
    ("fmod_f64", "f64 f64", "f64", lambda b, x, y: call(b, "__nv_fmod", F64, x, y)),
    ("sub_f64", "f64 f64", "f64", _sub),
    ("load_u8", "i64", "i64", lambda b, a: b.zext(_load_global(b, a, I8), I64)),
    ("load_word", "i64", "i64", _load_global),
    ("load_word_unaligned", "i64", "i64", _load_unaligned),
    ("store_word", "i64 i64", "void", store_at(I64, _GLOBAL)),
    ("store_half", "i64 i64", "void", store_at(I32, _GLOBAL)),
    ("store_quarter", "i64 i64", "void", store_at(I16, _GLOBAL)),
    ("store_byte", "i64 i64", "void", store_at(I8, _GLOBAL)),
    ("warp_barrier", "", "void", _warp_barrier),
    ("lanes_alike", "i64 i64 i64", "i64", _lanes_alike),
    ("lanes_before", "i64", "i64", _lanes_before),
    ("lane_count", "i64", "i64", lambda b, lanes: b.zext(b.ctpop(b.trunc(lanes, I32)), I64)),
    ("load_pair", "* i64", "str", pair_load(16)),  # one instruction: memory of its own begins at multiples of 256
)
# Where the space is not said, an assembler writes a loop for shared memory beside each atomic, of some 20 instructions. libNVVM's
# optimizer finds it out by itself; drafts are made without that.
CUDA_DEFINITIONS = atomics(_GLOBAL) | {
    name: Definition(name, tuple(arguments.split()), result, emit) for name, arguments, result, emit in _WORDS
}
