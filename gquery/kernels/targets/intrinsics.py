"""Primitives that are a handful of machine instructions, emitted as LLVM into the calling function.

One definition serves cpu and cuda: `numba.extending.intrinsic` and `numba.cuda.extending.intrinsic` take the same body.
They are written as instructions and not as Numba functions because every Numba function that a kernel calls costs 5 to
10 ms to compile, and because LLVM says width, sign and wrapping exactly, where Numba's operators depend on the types
of both sides. Primitives with control flow stand in `gquery.kernels.primitives` and call these.

Integers wrap. Types are named as in `Register`: ``i64``, ``i128``, ``f64``, ``bool``, ``str``; ``u64`` is an index or
a bit pattern; ``*`` is a pointer to whatever the caller has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from gquery.runtime.records import dataclass

I1, I8, I16, I32, I64, I128 = (ir.IntType(n) for n in (1, 8, 16, 32, 64, 128))
F32, F64 = ir.FloatType(), ir.DoubleType()

Emit = Callable[..., Any]
"""``emit(builder, *values) -> value``; values of ``i128`` come and go as LLVM's i128, ``str`` as a pair of i64."""


@dataclass(frozen=True)
class Definition:
    """An intrinsic: its name, the types of its arguments and result, and the code that emits it."""

    name: str
    arguments: tuple[str, ...]
    result: str
    emit: Emit


DEFINITIONS: dict[str, Definition] = {}


def define(name: str, arguments: str, result: str, emit: Emit) -> None:
    """Register an intrinsic; ``arguments`` are type names with blanks between them."""
    DEFINITIONS[name] = Definition(name, tuple(arguments.split()), result, emit)


def constant(value: int, type_: Any = I64) -> Any:
    """An LLVM constant."""
    return ir.Constant(type_, value)


def element(b: Any, pointer: Any, index: Any, type_: Any) -> Any:
    """The address of element ``index`` of a pointer taken as a pointer to ``type_``."""
    return b.gep(b.bitcast(pointer, type_.as_pointer()), [index])


def _aligned_to(instruction: Any, alignment: int) -> Any:
    instruction.align = alignment
    return instruction


# ---- casts -------------------------------------------------------------------------------------------------------
define("i64", "i64", "i64", lambda b, x: x)
define("u64", "u64", "u64", lambda b, x: x)
define("f64", "f64", "f64", lambda b, x: x)
define("row_index", "i64", "u64", lambda b, x: x)
define("next_index", "u64", "u64", lambda b, x: b.add(x, constant(1)))
define("truth", "i64", "bool", lambda b, x: b.icmp_signed("!=", x, constant(0)))
define("from_bool", "bool", "i64", lambda b, x: b.zext(x, I64))
define("bits_f64", "f64", "i64", lambda b, x: b.bitcast(x, I64))
define("f64_from_bits", "i64", "f64", lambda b, x: b.bitcast(x, F64))
define("truncate_f64", "f64", "i64", lambda b, x: b.fptosi(x, I64))
define("f64_from_u64", "i64", "f64", lambda b, x: b.uitofp(x, F64))
define("round_f32", "f64", "f64", lambda b, x: b.fpext(b.fptrunc(x, F32), F64))

# ---- 64 and 128 bits ---------------------------------------------------------------------------------------------
_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def _comparison(operator: str) -> Emit:
    return lambda b, x, y: b.icmp_signed(operator, x, y)


def _choice(operator: str) -> Emit:
    return lambda b, x, y: b.select(b.icmp_signed(operator, x, y), x, y)


for _suffix, _type in (("i64", I64), ("i128", I128)):
    _two = f"{_suffix} {_suffix}"
    for _name, _operator in _COMPARE.items():
        define(f"{_name}_{_suffix}", _two, "bool", _comparison(_operator))
    define(f"add_{_suffix}", _two, _suffix, lambda b, x, y: b.add(x, y))
    define(f"sub_{_suffix}", _two, _suffix, lambda b, x, y: b.sub(x, y))
    define(f"mul_{_suffix}", _two, _suffix, lambda b, x, y: b.mul(x, y))
    define(f"neg_{_suffix}", _suffix, _suffix, lambda b, x: b.sub(ir.Constant(x.type, 0), x))
    define(
        f"abs_{_suffix}",
        _suffix,
        _suffix,
        lambda b, x: b.select(b.icmp_signed("<", x, ir.Constant(x.type, 0)), b.sub(ir.Constant(x.type, 0), x), x),
    )
    define(f"min_{_suffix}", _two, _suffix, _choice("<"))
    define(f"max_{_suffix}", _two, _suffix, _choice(">"))
define("and_i64", "i64 i64", "i64", lambda b, x, y: b.and_(x, y))
define("or_i64", "i64 i64", "i64", lambda b, x, y: b.or_(x, y))
define("xor_i64", "i64 i64", "i64", lambda b, x, y: b.xor(x, y))
define("shl_i64", "i64 i64", "i64", lambda b, x, n: b.shl(x, b.and_(n, constant(63))))
define("shr_i64", "i64 i64", "i64", lambda b, x, n: b.ashr(x, b.and_(n, constant(63))))
define("shr_u64", "i64 i64", "i64", lambda b, x, n: b.lshr(x, b.and_(n, constant(63))))
define("lt_u64", "i64 i64", "bool", lambda b, x, y: b.icmp_unsigned("<", x, y))
define("eq_u32", "i64 i64", "bool", lambda b, x, y: b.icmp_unsigned("==", b.trunc(x, I32), b.trunc(y, I32)))
define("div_u64", "i64 i64", "i64", lambda b, x, y: b.udiv(x, y))
define("mod_u64", "i64 i64", "i64", lambda b, x, y: b.urem(x, y))
define("quotient_i64", "i64 i64", "i64", lambda b, x, y: b.sdiv(x, y))
define("remainder_i64", "i64 i64", "i64", lambda b, x, y: b.srem(x, y))


def _sum_word_i64(b: Any, x: Any, k: Any) -> Any:
    """Word 0 or 1 of 32 bits: the lower is unsigned, the upper carries the sign."""
    return b.select(b.icmp_signed("==", k, constant(0)), b.and_(x, constant(2**32 - 1)), b.ashr(x, constant(32)))


def _sum_word_i128(b: Any, x: Any, k: Any) -> Any:
    """Word 0 to 3 of 32 bits: all but the last are unsigned."""
    shifted = b.trunc(b.ashr(x, b.zext(b.shl(k, constant(5)), I128)), I64)
    low = b.and_(shifted, constant(2**32 - 1))
    return b.select(b.icmp_signed("==", k, constant(3)), shifted, low)


define("i128_from_i64", "i64", "i128", lambda b, x: b.sext(x, I128))
define("i64_from_i128", "i128", "i64", lambda b, x: b.trunc(x, I64))
define("low_i128", "i128", "i64", lambda b, x: b.trunc(x, I64))
define("high_i128", "i128", "i64", lambda b, x: b.trunc(b.ashr(x, constant(64, I128)), I64))
define("fits_i64_i128", "i128", "bool", lambda b, x: b.icmp_signed("==", b.sext(b.trunc(x, I64), I128), x))
define(
    "make_i128",
    "i64 i64",
    "i128",
    lambda b, high, low: b.or_(b.shl(b.sext(high, I128), constant(64, I128)), b.zext(low, I128)),
)
define("mul_i64_i128", "i64 i64", "i128", lambda b, x, y: b.mul(b.sext(x, I128), b.sext(y, I128)))
define("mul_u64_i128", "i64 i64", "i128", lambda b, x, y: b.mul(b.zext(x, I128), b.zext(y, I128)))
define("lt_u128", "i128 i128", "bool", lambda b, x, y: b.icmp_unsigned("<", x, y))
define("sum_word_i64", "i64 i64", "i64", _sum_word_i64)
define("sum_word_i128", "i128 i64", "i64", _sum_word_i128)
define("shl_i128", "i128 i64", "i128", lambda b, x, n: b.shl(x, b.zext(n, I128)))
define("shr_u128", "i128 i64", "i128", lambda b, x, n: b.lshr(x, b.zext(n, I128)))


def _load_i128(b: Any, pointer: Any, index: Any) -> Any:
    first = b.shl(index, constant(1))
    low = b.load(element(b, pointer, first, I64))
    high = b.load(element(b, pointer, b.or_(first, constant(1)), I64))
    return b.or_(b.shl(b.zext(high, I128), constant(64, I128)), b.zext(low, I128))


def _store_i128(b: Any, pointer: Any, index: Any, value: Any) -> None:
    first = b.shl(index, constant(1))
    b.store(b.trunc(value, I64), element(b, pointer, first, I64))
    high = b.trunc(b.lshr(value, constant(64, I128)), I64)
    b.store(high, element(b, pointer, b.or_(first, constant(1)), I64))


define("load_i128", "* i64", "i128", _load_i128)
define("store_i128", "* i64 i128", "void", _store_i128)


# ---- doubles: NaN equals NaN and is greater than everything else -------------------------------------------------
def _eq(b: Any, x: Any, y: Any) -> Any:
    both_nan = b.and_(b.fcmp_unordered("uno", x, x), b.fcmp_unordered("uno", y, y))
    return b.or_(b.fcmp_ordered("==", x, y), both_nan)


def _lt(b: Any, x: Any, y: Any) -> Any:
    only_y_nan = b.and_(b.fcmp_ordered("ord", x, x), b.fcmp_unordered("uno", y, y))
    return b.or_(b.fcmp_ordered("<", x, y), only_y_nan)


define("eq_f64", "f64 f64", "bool", _eq)
define("ne_f64", "f64 f64", "bool", lambda b, x, y: b.not_(_eq(b, x, y)))
define("lt_f64", "f64 f64", "bool", _lt)
define("gt_f64", "f64 f64", "bool", lambda b, x, y: _lt(b, y, x))
define("le_f64", "f64 f64", "bool", lambda b, x, y: b.not_(_lt(b, y, x)))
define("ge_f64", "f64 f64", "bool", lambda b, x, y: b.not_(_lt(b, x, y)))
define("min_f64", "f64 f64", "f64", lambda b, x, y: b.select(_lt(b, y, x), y, x))
define("max_f64", "f64 f64", "f64", lambda b, x, y: b.select(_lt(b, x, y), y, x))
define("f64_is_nan", "f64", "bool", lambda b, x: b.fcmp_unordered("uno", x, x))
define("add_f64", "f64 f64", "f64", lambda b, x, y: b.fadd(x, y))
define("sub_f64", "f64 f64", "f64", lambda b, x, y: b.fsub(x, y))
define("mul_f64", "f64 f64", "f64", lambda b, x, y: b.fmul(x, y))
define("div_f64", "f64 f64", "f64", lambda b, x, y: b.fdiv(x, y))
define("fmod_f64", "f64 f64", "f64", lambda b, x, y: b.frem(x, y))
_SIGN = 1 << 63
define("neg_f64", "f64", "f64", lambda b, x: b.bitcast(b.xor(b.bitcast(x, I64), constant(_SIGN)), F64))
define("abs_f64", "f64", "f64", lambda b, x: b.bitcast(b.and_(b.bitcast(x, I64), constant(_SIGN - 1)), F64))

# ---- the mixer of hashes: Murmur3's finaliser with the constants of splitmix64 -----------------------------------
_MIX_1, _MIX_2, _GOLDEN = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 0x9E3779B97F4A7C15


def _mix(b: Any, x: Any) -> Any:
    x = b.mul(b.xor(x, b.lshr(x, constant(30))), constant(_MIX_1))
    x = b.mul(b.xor(x, b.lshr(x, constant(27))), constant(_MIX_2))
    return b.xor(x, b.lshr(x, constant(31)))


define("hash_i64", "i64", "i64", lambda b, x: _mix(b, b.add(x, constant(_GOLDEN))))
define("hash_combine", "i64 i64", "i64", lambda b, h, x: _mix(b, b.add(b.mul(h, constant(_MIX_1)), x)))


# ---- rows that threads run together --------------------------------------------------------------------------------
define("lane", "", "i64", lambda b: constant(0))
define("lanes", "", "i64", lambda b: constant(1))
define("warp_barrier", "", "void", lambda b: None)


# ---- memory ------------------------------------------------------------------------------------------------------
define("words_behind", "* i64", "*", lambda b, p, i: b.bitcast(element(b, p, i, I64), I8.as_pointer()))


def _store(type_: Any) -> Emit:
    return lambda b, pointer, index, value: b.store(b.trunc(value, type_), element(b, pointer, index, type_))


for _bits in (8, 16, 32):
    define(f"store_i{_bits}", "* i64 i64", "void", _store(ir.IntType(_bits)))
    define(f"store_u{_bits}", "* i64 i64", "void", _store(ir.IntType(_bits)))
define("store_i64", "* i64 i64", "void", lambda b, p, i, v: b.store(v, element(b, p, i, I64)))
define("store_u64", "* i64 i64", "void", lambda b, p, i, v: b.store(v, element(b, p, i, I64)))
define("store_f32", "* i64 f64", "void", lambda b, p, i, v: b.store(b.fptrunc(v, F32), element(b, p, i, F32)))
define("store_f64", "* i64 f64", "void", lambda b, p, i, v: b.store(v, element(b, p, i, F64)))
define("store_bool", "* i64 bool", "void", lambda b, p, i, v: b.store(b.zext(v, I8), element(b, p, i, I8)))
define("load_u8", "i64", "i64", lambda b, a: b.zext(b.load(b.inttoptr(a, I8.as_pointer())), I64))
define("load_word", "i64", "i64", lambda b, a: b.load(b.inttoptr(a, I64.as_pointer())))
define("load_word_unaligned", "i64", "i64", lambda b, a: _aligned_to(b.load(b.inttoptr(a, I64.as_pointer())), 1))
define("store_byte", "i64 i64", "void", lambda b, a, v: b.store(b.trunc(v, I8), b.inttoptr(a, I8.as_pointer())))
define(
    "store_word_unaligned",
    "i64 i64",
    "void",
    lambda b, a, v: _aligned_to(b.store(v, b.inttoptr(a, I64.as_pointer())), 1),
)


def store_at(type_: Any, space: int = 0) -> Emit:
    """A store to an address, a multiple of the type's size, in one of LLVM's address spaces."""

    def emit(b: Any, address: Any, value: Any) -> None:
        b.store(value if type_ == I64 else b.trunc(value, type_), b.inttoptr(address, type_.as_pointer(space)))

    return emit


define("store_word", "i64 i64", "void", store_at(I64))
define("store_half", "i64 i64", "void", store_at(I32))
define("store_quarter", "i64 i64", "void", store_at(I16))
define("load_u32", "* i64", "i64", lambda b, p, i: b.zext(b.load(element(b, p, i, I32)), I64))
define("load_i64", "* i64", "i64", lambda b, p, i: b.load(element(b, p, i, I64)))


def _zero_bytes(b: Any, word: Any) -> Any:
    """The top bit of each byte of ``word`` that is 0; above the lowest of them others may be set, too."""
    below = b.and_(b.sub(word, constant(0x0101010101010101)), b.not_(word))
    return b.and_(below, constant(0x8080808080808080))


define("zero_bytes", "i64", "i64", _zero_bytes)

# ---- bitmaps in words of 32 bits: that of row i, and what it says of the row --------------------------------------
define("word_index", "u64", "u64", lambda b, i: b.lshr(i, constant(5)))
define("bit_at", "i64 u64", "bool", lambda b, w, i: b.trunc(b.lshr(w, b.and_(i, constant(31))), I1))
define(
    "bits_from",  # how many bits are set from the row's own on
    "i64 u64",
    "i64",
    lambda b, w, i: b.zext(b.ctpop(b.trunc(b.lshr(w, b.and_(i, constant(31))), I32)), I64),
)
define("popcount", "i64", "i64", lambda b, w: b.ctpop(w))
define("byte_swap", "i64", "i64", lambda b, x: b.bswap(x))
define("lowest_byte", "i64", "i64", lambda b, x: b.lshr(b.cttz(x, constant(1, I1)), constant(3)))
define("lowest_bit", "i64", "i64", lambda b, x: b.cttz(x, constant(1, I1)))

# ---- strings -----------------------------------------------------------------------------------------------------
define("make_str", "i64 i64", "str", lambda b, address, length: (address, length))
define("str_address", "str", "i64", lambda b, s: s[0])
define("str_bytes", "str", "i64", lambda b, s: s[1])


def _view(b: Any, pointer: Any, index: Any) -> Any:
    first = b.shl(index, constant(1))
    length = b.load(element(b, pointer, b.or_(first, constant(1)), I64))
    return b.load(element(b, pointer, first, I64)), length


def _store_view(b: Any, pointer: Any, index: Any, s: Any) -> None:
    first = b.shl(index, constant(1))
    b.store(s[0], element(b, pointer, first, I64))
    b.store(s[1], element(b, pointer, b.or_(first, constant(1)), I64))


def _string(type_: Any) -> Emit:
    def emit(b: Any, offsets: Any, characters: Any, index: Any) -> Any:
        start = b.load(element(b, offsets, index, type_))
        end = b.load(element(b, offsets, b.add(index, constant(1)), type_))
        if type_ is not I64:
            start, end = b.zext(start, I64), b.zext(end, I64)
        return b.add(characters, start), b.sub(end, start)

    return emit


def pair_load(alignment: int) -> Emit:
    """Two neighbouring words at once, those of pair ``index``."""

    def emit(b: Any, pointer: Any, index: Any) -> Any:
        place = element(b, pointer, index, ir.VectorType(I64, 2))
        both = _aligned_to(b.load(place), alignment)
        return b.extract_element(both, constant(0, I32)), b.extract_element(both, constant(1, I32))

    return emit


define("load_pair", "* i64", "str", pair_load(8))
define("string32", "* i64 i64", "str", _string(I32))
define("string64", "* i64 i64", "str", _string(I64))
define("view", "* i64", "str", _view)
define("store_view", "* i64 str", "void", _store_view)


# ---- atomics; all relaxed: the end of a kernel orders them -------------------------------------------------------
def in_space(b: Any, pointer: Any, index: Any, type_: Any, space: int) -> Any:
    """The address of element ``index`` in one of LLVM's address spaces, in which it is known to lie."""
    place = element(b, pointer, index, type_)
    return b.addrspacecast(place, type_.as_pointer(space)) if space else place


def _atomic(operation: str, type_: Any, space: int) -> Emit:
    def emit(b: Any, pointer: Any, index: Any, value: Any) -> Any:
        value = value if value.type == type_ else b.trunc(value, type_)
        old = b.atomic_rmw(operation, in_space(b, pointer, index, type_, space), value, "monotonic")
        return old if type_ == I64 else b.zext(old, I64)

    return emit


def _compare_and_swap(type_: Any, space: int) -> Emit:
    def emit(b: Any, pointer: Any, index: Any, old: Any, new: Any) -> Any:
        if type_ != I64:
            old, new = b.trunc(old, type_), b.trunc(new, type_)
        pair = b.cmpxchg(in_space(b, pointer, index, type_, space), old, new, "monotonic", "monotonic")
        found = b.extract_value(pair, 0)
        return found if type_ == I64 else b.zext(found, I64)

    return emit


def atomics(space: int = 0) -> dict[str, Definition]:
    """Those on memory of one of LLVM's address spaces; 0: of any."""
    operations = {"add_i64": ("add", I64), "min_i64": ("min", I64), "max_i64": ("max", I64), "or_u32": ("or", I32),
                  "add_u32": ("add", I32), "min_u32": ("umin", I32), "max_u32": ("umax", I32)}  # fmt: skip
    found = {f"atomic_{n}": ("* i64 i64", _atomic(*of, space)) for n, of in operations.items()}
    found |= {f"cas_{n}": ("* i64 i64 i64", _compare_and_swap(t, space)) for n, t in (("u32", I32), ("i64", I64))}
    return {name: Definition(name, tuple(given.split()), "i64", emit) for name, (given, emit) in found.items()}


DEFINITIONS.update(atomics())


# ---- whether a sum, difference or product of 64 bits wraps ----------------------------------------------------------
define("add_wraps", "i64 i64", "bool", lambda b, x, y: b.extract_value(b.sadd_with_overflow(x, y), 1))
define("sub_wraps", "i64 i64", "bool", lambda b, x, y: b.extract_value(b.ssub_with_overflow(x, y), 1))
define("mul_wraps", "i64 i64", "bool", lambda b, x, y: b.extract_value(b.smul_with_overflow(x, y), 1))
define("never", "f64 f64", "bool", lambda b, x, y: ir.Constant(ir.IntType(1), 0))
define("never_i64", "i64 i64", "bool", lambda b, x, y: ir.Constant(ir.IntType(1), 0))


def _beyond_i64(b: Any, x: Any, y: Any) -> Any:
    """Whether a double has no integer of 64 bits: NaN, and what is out of their range."""
    least, beyond = (ir.Constant(ir.DoubleType(), v) for v in (-(2.0**63), 2.0**63))
    return b.not_(b.and_(b.fcmp_ordered(">=", x, least), b.fcmp_ordered("<", x, beyond)))


define("beyond_i64", "f64 f64", "bool", _beyond_i64)
