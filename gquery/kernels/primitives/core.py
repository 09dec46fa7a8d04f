"""Every basic primitive in plain Python: words of the python target and of the bodies in `kernels.primitives`.

Values are Python ints and floats (a pointer is a memoryview), so most primitives are one operator. Proved arithmetic
does not wrap here, because its result is proved to fit; hashes and bit patterns are cut to 64 bits, signed.
Strings are (address, length) as on every target; memory is read with `string_at` of ctypes.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable
from ctypes import memmove
from typing import Any

from gquery.kernels.checks import string_at

Pointer = Any
Str = tuple[int, int]
_Binary = Callable[[int, int], int]
_Comparison = Callable[[int, int], bool]
_Float = Callable[[float, float], float]
_MASK = (1 << 64) - 1
_TOP = 1 << 63
_WORD = 1 << 64
_INT128 = 1 << 127
_MASK_128 = (1 << 128) - 1


def _signed(x: int) -> int:
    """The 64 low bits of an integer as a signed number."""
    return ((x + _TOP) & _MASK) - _TOP


# ---- casts -------------------------------------------------------------------------------------------------------
i64 = u64 = row_index = from_bool = int
f64 = float
truth = bool
truncate_f64 = int


def next_index(i: int) -> int:
    """The index behind ``i``."""
    return i + 1


def bits_f64(x: float) -> int:
    """The bits of a double as an integer."""
    return int(struct.unpack("<q", struct.pack("<d", x))[0])


def f64_from_bits(x: int) -> float:
    """The double that has these bits."""
    return float(struct.unpack("<d", struct.pack("<q", x))[0])


def round_f32(x: float) -> float:
    """The nearest single-precision value, as a double; infinite where it is beyond them."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", x))[0])
    except OverflowError:
        return math.copysign(math.inf, x)


# ---- 64 and 128 bits ---------------------------------------------------------------------------------------------
add_i64: _Binary = operator.add
sub_i64: _Binary = operator.sub
mul_i64: _Binary = operator.mul
neg_i64: Callable[[int], int] = operator.neg
abs_i64: Callable[[int], int] = abs
min_i64: _Binary = min
max_i64: _Binary = max
eq_i64: _Comparison = operator.eq
ne_i64: _Comparison = operator.ne
lt_i64: _Comparison = operator.lt
le_i64: _Comparison = operator.le
gt_i64: _Comparison = operator.gt
ge_i64: _Comparison = operator.ge
and_i64: _Binary = operator.and_
or_i64: _Binary = operator.or_
xor_i64: _Binary = operator.xor
add_i128, sub_i128, mul_i128, mul_i64_i128 = add_i64, sub_i64, mul_i64, mul_i64
neg_i128, abs_i128, min_i128, max_i128 = neg_i64, abs_i64, min_i64, max_i64
eq_i128, ne_i128, lt_i128, le_i128, gt_i128, ge_i128 = eq_i64, ne_i64, lt_i64, le_i64, gt_i64, ge_i64


def shl_i64(x: int, n: int) -> int:
    """x << n for the last six bits of n, wrapped to 64 bits."""
    return _signed(x << (n & 63))


def shr_i64(x: int, n: int) -> int:
    """x >> n for the last six bits of n; the sign is kept."""
    return x >> (n & 63)


def shr_u64(x: int, n: int) -> int:
    """x >> n of the bits as an unsigned number; zeros come in."""
    return _signed((x & _MASK) >> (n & 63))


def lt_u64(x: int, y: int) -> bool:
    """x < y as unsigned numbers."""
    return (x & _MASK) < (y & _MASK)


def fail(status: Pointer, site: int) -> None:
    """Sets the bit of the error ``site`` in the status words (uint32)."""
    status[site >> 5] |= 1 << (site & 31)


def _checked(operation: Callable[..., int], limit: int) -> Callable[..., int]:
    def binary(a: int, b: int, status: Pointer, site: int) -> int:
        result = operation(a, b)
        if -limit <= result < limit:
            return result
        fail(status, site)
        return 0

    return binary


def _checked_unary(operation: Callable[[int], int], limit: int) -> Callable[..., int]:
    def unary(a: int, status: Pointer, site: int) -> int:
        result = operation(a)
        if result < limit:
            return result
        fail(status, site)
        return 0

    return unary


add_i64_checked, add_i128_checked = _checked(operator.add, _TOP), _checked(operator.add, _INT128)
sub_i64_checked, sub_i128_checked = _checked(operator.sub, _TOP), _checked(operator.sub, _INT128)
mul_i64_checked, mul_i128_checked = _checked(operator.mul, _TOP), _checked(operator.mul, _INT128)
neg_i64_checked, neg_i128_checked = _checked_unary(operator.neg, _TOP), _checked_unary(operator.neg, _INT128)
abs_i64_checked, abs_i128_checked = _checked_unary(abs, _TOP), _checked_unary(abs, _INT128)


def range_i64(v: int, low: int, high: int, status: Pointer, site: int) -> int:
    """``v``; where it is not within ``low`` to ``high``, sets the error ``site`` and gives ``low``."""
    if low <= v <= high:
        return v
    fail(status, site)
    return low


def range_i128(v: int, low_high: int, low_low: int, high_high: int, high_low: int, status: Pointer, site: int) -> int:
    """``v``; where it is not within bounds that come as words, sets the error ``site`` and gives the lower
    one."""
    low = make_i128(low_high, low_low)
    if low <= v <= make_i128(high_high, high_low):
        return v
    fail(status, site)
    return low


def div_i64(a: int, b: int) -> int:
    """a / b towards zero. b is not 0."""
    return a // b if (a < 0) == (b < 0) else -(-a // b)


def mod_i64(a: int, b: int) -> int:
    """The remainder of a / b, with the sign of a. b is not 0."""
    return a % abs(b) if a >= 0 else -(-a % abs(b))


def div_round_i64(a: int, b: int) -> int:
    """a / b for b > 0, halves away from zero."""
    return (2 * a + b) // (2 * b) if a >= 0 else -((b - 2 * a) // (2 * b))


div_i128, mod_i128, div_round_i128 = div_i64, mod_i64, div_round_i64


def quotient_i64(a: int, b: int) -> int:
    """a / b towards zero, wrapped to 64 bits. b is not 0."""
    return _signed(div_i64(a, b))


remainder_i64 = mod_i64
i128_from_i64 = i64_from_i128 = int


def low_i128(v: int) -> int:
    """The low 64 bits, as a signed integer."""
    return _signed(v)


def sum_word_i64(v: int, k: int) -> int:
    """Word ``k`` of 32 bits of an integer: 0 is unsigned, 1 carries the sign."""
    return v >> 32 if k else v & 0xFFFFFFFF


def sum_word_i128(v: int, k: int) -> int:
    """Word ``k`` of 32 bits of a 128-bit integer: 0 to 2 are unsigned, 3 carries the sign."""
    return v >> 96 if k == 3 else (v >> (32 * k)) & 0xFFFFFFFF


def high_i128(v: int) -> int:
    """The high 64 bits, with the sign."""
    return v >> 64


def make_i128(high: int, low: int) -> int:
    """The 128-bit integer of two words; the low one's bits are taken as unsigned."""
    return (high << 64) | (low & _MASK)


def fits_i64_i128(v: int) -> bool:
    """Whether a 128-bit integer fits 64 bits."""
    return -_TOP <= v < _TOP


def f64_from_i128(v: int) -> float:
    """The nearest double."""
    return float(v)


def mul_u64_i128(x: int, y: int) -> int:
    """The product of two unsigned 64-bit numbers."""
    return (x & _MASK) * (y & _MASK)


def lt_u128(x: int, y: int) -> bool:
    """x < y as unsigned 128-bit numbers."""
    return (x & _MASK_128) < (y & _MASK_128)


def shl_i128(x: int, n: int) -> int:
    """x << n, wrapped to 128 bits."""
    return ((x << n) + _INT128 & _MASK_128) - _INT128


def shr_u128(x: int, n: int) -> int:
    """x >> n of the bits as an unsigned number; zeros come in."""
    return (x & _MASK_128) >> n if n else x


def div_u64(x: int, y: int) -> int:
    """x / y as unsigned numbers. y is not 0."""
    return _signed((x & _MASK) // (y & _MASK))


def mod_u64(x: int, y: int) -> int:
    """The remainder of x / y as unsigned numbers. y is not 0."""
    return _signed((x & _MASK) % (y & _MASK))


def f64_from_u64(x: int) -> float:
    """The nearest double of an unsigned number."""
    return float(x & _MASK)


def i128_from_f64(x: float) -> int:
    """The integer nearest to a double, halves to even. It fits 128 bits."""
    return round(x)


def load_i128(pointer: Pointer, i: int) -> int:
    """Element ``i`` of an array of 128-bit integers, two int64 words each, the low one first."""
    high, low = int(pointer[2 * i + 1]), int(pointer[2 * i])
    return high << 64 | low & _MASK


def store_i128(pointer: Pointer, i: int, v: int) -> None:
    """Sets element ``i`` of an array of 128-bit integers, two int64 words each, the low one first."""
    pointer[2 * i], pointer[2 * i + 1] = _signed(v), v >> 64


# ---- doubles -----------------------------------------------------------------------------------------------------
add_f64: _Float = operator.add
sub_f64: _Float = operator.sub
mul_f64: _Float = operator.mul
neg_f64: Callable[[float], float] = operator.neg
abs_f64: Callable[[float], float] = math.fabs
fmod_f64: _Float = math.fmod
f64_is_nan = math.isnan


def div_f64(x: float, y: float) -> float:
    """x / y as IEEE has it: infinite or NaN for y = 0."""
    if y:
        return x / y
    return math.nan if x == 0 or x != x else math.copysign(math.inf, x) * math.copysign(1.0, y)


def eq_f64(x: float, y: float) -> bool:
    """Whether x = y; NaN is equal to NaN, as in SQL."""
    return x == y or (x != x and y != y)


def lt_f64(x: float, y: float) -> bool:
    """Whether x < y; NaN is greater than anything else, as in SQL."""
    return x < y or (y != y and x == x)


def ne_f64(x: float, y: float) -> bool:
    """Whether x and y differ; NaN is equal to NaN."""
    return not eq_f64(x, y)


def gt_f64(x: float, y: float) -> bool:
    """Whether x > y; NaN is greater than anything else."""
    return lt_f64(y, x)


def le_f64(x: float, y: float) -> bool:
    """Whether x <= y; NaN is greater than anything else."""
    return not lt_f64(y, x)


def ge_f64(x: float, y: float) -> bool:
    """Whether x >= y; NaN is greater than anything else."""
    return not lt_f64(x, y)


def min_f64(x: float, y: float) -> float:
    """The lesser one; NaN is greater than anything else."""
    return y if lt_f64(y, x) else x


def max_f64(x: float, y: float) -> float:
    """The greater one; NaN is greater than anything else."""
    return y if lt_f64(x, y) else x


# ---- hashes: the same numbers as `targets.intrinsics` ------------------------------------------------------------
def _mix(x: int) -> int:
    x &= _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    x ^= x >> 31
    return x if x < _TOP else x - _WORD


def hash_i64(x: int) -> int:
    """A hash of 64 bits, the same on every target."""
    return _mix(x + 0x9E3779B97F4A7C15)


def hash_combine(h: int, x: int) -> int:
    """A hash of a hash and one more."""
    return _mix(h * 0xBF58476D1CE4E5B9 + x)


def hash_i128(x: int) -> int:
    """A hash of 64 bits; an integer that fits 64 bits hashes as it does there."""
    low = low_i128(x)
    beyond = high_i128(x) ^ (low >> 63)
    return hash_i64(low ^ _signed(beyond * 0x5851F42D4C957F2D))


# ---- memory ------------------------------------------------------------------------------------------------------
def _store_signed(bits: int) -> Callable[[Pointer, int, int], None]:
    half, mask = 1 << (bits - 1), (1 << bits) - 1

    def store(pointer: Pointer, i: int, v: int) -> None:
        pointer[i] = ((v + half) & mask) - half

    return store


def _store_unsigned(bits: int) -> Callable[[Pointer, int, int], None]:
    mask = (1 << bits) - 1

    def store(pointer: Pointer, i: int, v: int) -> None:
        pointer[i] = v & mask

    return store


store_i8, store_i16, store_i32, store_i64 = (_store_signed(n) for n in (8, 16, 32, 64))
store_u8, store_u16, store_u32, store_u64 = (_store_unsigned(n) for n in (8, 16, 32, 64))


def store_f64(pointer: Pointer, i: int, v: float) -> None:
    """Sets element ``i`` of a float64 array."""
    pointer[i] = v


def store_f32(pointer: Pointer, i: int, v: float) -> None:
    """Sets element ``i`` of a float32 array to the nearest single-precision value."""
    pointer[i] = round_f32(v)


def store_bool(pointer: Pointer, i: int, v: bool) -> None:
    """Sets element ``i`` of a uint8 array to 1 or 0."""
    pointer[i] = 1 if v else 0


load_u32: Callable[[Pointer, int], int] = operator.getitem
load_i64 = load_u32


def load_u8(address: int) -> int:
    """The byte at an address."""
    return string_at(address, 1)[0]


def load_word(address: int) -> int:
    """The eight bytes at an address, the first one lowest; they may lie beyond a text's end, within its buffer."""
    return int.from_bytes(string_at(address, 8), "little", signed=True)


load_word_unaligned = load_word


def copy_bytes(source: int, target: int, length: int) -> None:
    """Copies ``length`` bytes between addresses; the ranges do not overlap."""
    memmove(target, source, length)


def store_byte(address: int, v: int) -> None:
    """Sets the byte at an address to the last eight bits of ``v``."""
    memmove(address, bytes([v & 255]), 1)


def store_word_unaligned(address: int, v: int) -> None:
    """Sets the eight bytes at an address, the lowest one first."""
    memmove(address, (v & _MASK).to_bytes(8, "little"), 8)


def zero_bytes(word: int) -> int:
    """The top bit of each byte that is 0, and of some above the first such."""
    return _signed((word - 0x0101010101010101) & ~word & 0x8080808080808080)


def byte_swap(word: int) -> int:
    """The word with its eight bytes in the other order."""
    return int.from_bytes((word & _MASK).to_bytes(8, "little"), "big", signed=True)


def lowest_byte(word: int) -> int:
    """The number of the byte that has the lowest set bit. The word is not 0."""
    return ((word & -word).bit_length() - 1) >> 3


# ---- bitmaps in words of 32 bits -----------------------------------------------------------------------------------
def word_index(i: int) -> int:
    """The 32-bit word that holds bit ``i`` of a bitmap."""
    return i >> 5


def bit_at(word: int, i: int) -> bool:
    """Bit ``i`` of a bitmap, of whose words this is the one that holds it."""
    return bool(word >> (i & 31) & 1)


def bits_from(word: int, i: int) -> int:
    """How many bits are set from bit ``i`` on, within the 32-bit word that holds it."""
    return (word >> (i & 31)).bit_count()


def popcount(word: int) -> int:
    """How many bits are set."""
    return (word & _MASK).bit_count()


# ---- strings: making, reading ------------------------------------------------------------------------------------
def make_str(address: int, length: int) -> Str:
    """The text of ``length`` UTF-8 bytes at an address. It does not own them."""
    return address, length


def str_address(s: Str) -> int:
    """The address of a text's first byte."""
    return s[0]


def str_bytes(s: Str) -> int:
    """How many bytes a text has."""
    return s[1]


def string32(offsets: Pointer, characters: int, i: int) -> Str:
    """Text ``i`` of a column with int32 offsets; its bytes are the column's."""
    start = offsets[i]
    return characters + start, offsets[i + 1] - start


string64 = string32


def view(pointer: Pointer, i: int) -> Str:
    """Text ``i`` of a column of views: an address and a length, two int64 words each."""
    return pointer[2 * i], pointer[2 * i + 1]


load_pair = view


def store_view(pointer: Pointer, i: int, s: Str) -> None:
    """Sets element ``i`` of a column of views; the bytes are not copied."""
    pointer[2 * i], pointer[2 * i + 1] = s


# ---- what is atomic elsewhere: one thread runs here --------------------------------------------------------------
def atomic_add_i64(pointer: Pointer, i: int, v: int) -> int:
    """Adds to element ``i``, against other threads; what was there before."""
    old = int(pointer[i])
    pointer[i] = _signed(old + v)
    return old


def atomic_min_i64(pointer: Pointer, i: int, v: int) -> int:
    """Lowers element ``i`` to ``v``, against other threads; what was there before."""
    old = int(pointer[i])
    if v < old:
        pointer[i] = v
    return old


def atomic_max_i64(pointer: Pointer, i: int, v: int) -> int:
    """Raises element ``i`` to ``v``, against other threads; what was there before."""
    old = int(pointer[i])
    if v > old:
        pointer[i] = v
    return old


def atomic_add_f64(pointer: Pointer, i: int, v: float) -> float:
    """Adds to element ``i``, against other threads; what was there before."""
    old = float(pointer[i])
    pointer[i] = old + v
    return old


def atomic_or_u32(pointer: Pointer, i: int, v: int) -> int:
    """Sets bits of element ``i``, against other threads; what was there before."""
    old = int(pointer[i])
    pointer[i] = old | v
    return old


def atomic_add_u32(pointer: Pointer, i: int, v: int) -> int:
    """Adds to element ``i``, wrapped to 32 bits, against other threads; what was there before."""
    old = int(pointer[i])
    pointer[i] = (old + v) & 0xFFFFFFFF
    return old


atomic_min_u32, atomic_max_u32 = atomic_min_i64, atomic_max_i64


def cas_i64(pointer: Pointer, i: int, old: int, new: int) -> int:
    """Sets element ``i`` to ``new`` if it is ``old``, against other threads; what was there before."""
    found = int(pointer[i])
    if found == old:
        pointer[i] = new
    return found


def cas_u32(pointer: Pointer, i: int, old: int, new: int) -> int:
    """Sets element ``i`` to ``new`` if it is ``old``, against other threads; what was there before."""
    found = int(pointer[i])
    if found == old & 0xFFFFFFFF:
        pointer[i] = new & 0xFFFFFFFF
    return found


# ---- accumulators: the worker's own, so plain --------------------------------------------------------------------
def accumulate_add_i64(state: Pointer, slot: int, v: int) -> None:
    """Adds to a slot of the state (int64), wrapped to 64 bits."""
    total = state[slot] + v
    state[slot] = total if -_TOP <= total < _TOP else _signed(total)


def accumulate_add_u32(state: Pointer, slot: int, v: int) -> None:
    """Adds to a slot of an array of counts (uint32), wrapped to 32 bits."""
    state[slot] = (state[slot] + v) & 0xFFFFFFFF


def accumulate_min_i64(state: Pointer, slot: int, v: int) -> None:
    """Lowers a slot of the state (int64) to ``v``, if that is less."""
    if v < state[slot]:
        state[slot] = v


def accumulate_max_i64(state: Pointer, slot: int, v: int) -> None:
    """Raises a slot of the state (int64) to ``v``, if that is greater."""
    if v > state[slot]:
        state[slot] = v


def accumulate_add_f64(state: Pointer, slot: int, v: float) -> None:
    """Adds to a slot of the state (float64)."""
    state[slot] += v


reduce_add_i64, reduce_min_i64, reduce_max_i64, reduce_add_f64 = (
    accumulate_add_i64,
    accumulate_min_i64,
    accumulate_max_i64,
    accumulate_add_f64,
)


def prefetch(pointer: Pointer, i: int) -> None:
    """Nothing: the interpreter waits for everything but memory."""


def reserve(counter: Pointer, n: int) -> int:
    """Reserves ``n`` elements behind a counter; where they begin."""
    return atomic_add_i64(counter, 0, n)


# ---- bitmaps and tables of groups: as in `primitives.tables` and `primitives.groups`, with fewer calls ---------------
_LIMIT = 512


def bit_set(bits: Pointer, k: int) -> None:
    """Sets bit ``k`` of a bitmap of 32-bit words."""
    bits[k >> 5] |= 1 << (k & 31)


def bit_test(bits: Pointer, k: int) -> bool:
    """Whether bit ``k`` of a bitmap of 32-bit words is set."""
    return bool(bits[k >> 5] >> (k & 31) & 1)


def slot_insert(slots: Pointer, mask: int, stride: int, key: int, status: Pointer, site: int) -> int:
    """Where the accumulated words of ``key`` begin among ``mask`` + 2 slots; -1 and the error ``site`` where none is free."""
    if key == 0:
        slots[(mask + 1) * stride] = 1
        return (mask + 1) * stride + 1
    slot = hash_i64(key) & mask
    for _ in range(_LIMIT):
        at = slot * stride
        found = slots[at]
        if found == 0:
            slots[at] = key
            return at + 1
        if found == key:
            return at + 1
        slot = (slot + 1) & mask
    fail(status, site)
    return -1


# ---- functions that Python's math raises from, where IEEE gives a value ---------------------------------------------
def pow_f64(x: float, y: float) -> float:
    """x to the power of y, as IEEE has it: infinite or NaN instead of an error."""
    try:
        return math.pow(x, y)
    except OverflowError:
        return -math.inf if x < 0 and y % 2 == 1 else math.inf
    except ValueError:
        if x == 0:
            return math.copysign(math.inf, x) if y % 2 == 1 else math.inf
        return math.nan
