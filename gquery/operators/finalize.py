"""From the accumulated words of groups to the results of aggregates: in the text of a kernel, and by array functions,
which are quicker where groups are few.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import assert_never

import numpy as np

from gquery.device.array import Array
from gquery.errors import OutOfRangeError
from gquery.expression.facts import INT64_BITS, power_of_ten
from gquery.expression.types import INT64, INT128, Bounds, Kind, Register, type_bounds
from gquery.functions.aggregate_record import Mean, State
from gquery.kernels import ir
from gquery.kernels.builtin import wide_arrays
from gquery.kernels.builtin.elements import are_positive, clear_others, converted, every, hide_nulls
from gquery.kernels.builtin.extremes import extremes
from gquery.kernels.code import Code
from gquery.kernels.number_registers import words_of
from gquery.kernels.values import Value
from gquery.planner.aggregates import (
    AggregatePlan,
    ExactSum,
    GroupWords,
    OrderedWord,
    SumOfDoubles,
    TextWords,
    Word,
)

_TOTAL = Bounds(INT128.low + 1, INT128.high - 1)  # of a sum that is divided: the ends stand for what is beyond 128 bits
_AVERAGE_OVERFLOW = "Overflow in avg: the sum of its values has more than 128 bits. Cast its argument to DOUBLE."

# ---- in a kernel -----------------------------------------------------------------------------------------------------


def emit_result(plan: AggregatePlan, words: Mapping[int, ir.Expression], code: Code) -> Value:
    """The lines that make an aggregate's value from the words of a group, which variables hold; an OutOfRangeError is a site.
    Where there is no value, ``var`` holds anything."""
    ok = None
    if plan.count is not None and plan.result.nullable:
        ok = code.let(code.call("gt_i64", words[plan.count], code.integer(0)))
    return Value(_finalized(plan, words, code), ok, plan.result)


def _finalized(plan: AggregatePlan, words: Mapping[int, ir.Expression], code: Code) -> ir.Expression:
    match plan.finalize:
        case State(number):
            return _value(plan.states[number], plan, words, code)
        case Mean(total, count):
            divisor = _value(plan.states[count.number], plan, words, code)
            return _divided(_double(plan.states[total.number], words, code), divisor, plan, code)
        case _:
            assert_never(plan.finalize)


def _value(state: GroupWords, plan: AggregatePlan, words: Mapping[int, ir.Expression], code: Code) -> ir.Expression:
    """What words of a group stand for; a sum within the type of the result."""
    match state:
        case Word(word) | SumOfDoubles(word):
            return words[word]
        case OrderedWord(word):
            return code.let(code.call("f64_unorder", words[word]))
        case TextWords(address, length):
            return code.let(code.call("make_str", words[address], words[length]))
        case ExactSum((word,), bits=0):
            var, limit = words[word], type_bounds(plan.result.dtype)
            if limit is not None and plan.result.bounds is not None and not INT64.within(limit):
                site = code.site(OutOfRangeError, _overflow(plan))
                ends = code.constant(plan.result.bounds.low), code.constant(plan.result.bounds.high)
                var = code.let(code.call("range_i64", var, *ends, code.status(), site))
            return code.let(code.call("i128_from_i64", var)) if plan.result.register is Register.I128 else var
        case ExactSum(numbers, bits):
            assert plan.result.bounds is not None
            var = _total([words[n] for n in numbers], bits, plan.result.bounds, _overflow(plan), code)
            return code.let(code.call("i64_from_i128", var)) if plan.result.register is Register.I64 else var
        case _:
            assert_never(state)


def _double(state: GroupWords, words: Mapping[int, ir.Expression], code: Code) -> ir.Expression:
    """A total as DOUBLE: whatever its result's type, exact sums may have 128 bits."""
    match state:
        case SumOfDoubles(word):
            return words[word]
        case ExactSum((word,), bits=0):
            return code.call("f64", words[word])
        case ExactSum(numbers, bits):
            total = _total([words[n] for n in numbers], bits, _TOTAL, _AVERAGE_OVERFLOW, code)
            return code.call("f64_from_i128", total)
        case _:
            raise AssertionError(state)


def _total(sum_words: Sequence[ir.Expression], bits: int, limit: Bounds, message: str, code: Code) -> ir.Name:
    """The words of a multiword sum, carries passed on, as a 128-bit integer within ``limit``."""
    site, status = code.site(OutOfRangeError, message), code.status()
    mask, width = code.integer((1 << bits) - 1), code.integer(bits)
    halves: list[ir.Expression] = [code.integer(0), code.integer(0)]
    carry = sum_words[0]
    for n, sum_word in enumerate(sum_words[1:]):
        part = code.call("shl_i64", code.call("and_i64", carry, mask), code.integer(n * bits % INT64_BITS))
        half = n * bits // INT64_BITS
        halves[half] = code.let(part if n * bits % INT64_BITS == 0 else code.call("or_i64", halves[half], part))
        carry = code.let(code.call("add_i64", sum_word, code.call("shr_i64", carry, width)))
    shift = (len(sum_words) - 1) * bits
    if shift > INT64_BITS:  # the last carry has to fit what is left of 128 bits
        spare = code.integer(shift - INT64_BITS)
        again = code.call("shr_i64", code.call("shl_i64", carry, spare), spare)
        with code.when(code.call("ne_i64", again, carry)):
            code.do(code.call("fail", status, site))
    top = code.call("shl_i128", code.call("i128_from_i64", carry), code.integer(shift))
    total = code.let(code.call("add_i128", top, code.call("make_i128", halves[1], halves[0])))
    ends = [code.constant(word) for bound in (limit.low, limit.high) for word in words_of(bound)]
    return code.let(code.call("range_i128", total, *ends, status, site))


def _divided(total: ir.Expression, count: ir.Expression, plan: AggregatePlan, code: Code) -> ir.Expression:
    """The average of values whose sum is ``total``."""
    divisor = code.call("f64", code.call("max_i64", count, code.integer(1)))
    result = code.let(code.call("div_f64", total, divisor))
    scale = _scale(plan)
    return code.let(code.call("div_f64", result, code.constant(float(power_of_ten(scale))))) if scale else result


def _scale(plan: AggregatePlan) -> int:
    assert plan.arg is not None
    return plan.arg.dtype.scale if plan.arg.dtype.kind is Kind.DECIMAL else 0


# ---- by array functions ----------------------------------------------------------------------------------------------


def finalize_aggregate(plan: AggregatePlan, words: Sequence[Array], xp: ModuleType) -> tuple[Array, Array | None]:
    """The values of an aggregate (an array in its register's layout; two int64 words a row for 128 bits and strings)
    and their validity (uint8), from arrays of accumulated words; OutOfRangeError where a sum does not fit its type."""
    valid = None if plan.count is None else words[plan.count] > 0 if xp is np else are_positive(words[plan.count])
    validity = None
    if valid is not None and plan.result.nullable:
        validity = valid if valid.dtype == np.uint8 else valid.astype(np.uint8)
    match plan.finalize:
        case State(number):
            return _values(plan.states[number], plan, words, valid, xp), validity
        case Mean(total, count):
            counts = _values(plan.states[count.number], plan, words, None, xp)
            return _average(_doubles(plan.states[total.number], words), counts, plan, xp), validity
        case _:
            assert_never(plan.finalize)


def _values(
    state: GroupWords, plan: AggregatePlan, words: Sequence[Array], valid: Array | None, xp: ModuleType
) -> Array:
    """What words of groups stand for; sums within the type of the result. A group without a value has an identity, which is no
    address and no number: 0 in its place."""
    match state:
        case Word(word):
            return _or_zero(words[word], valid, xp)
        case SumOfDoubles(word):
            return words[word]
        case OrderedWord(word):
            doubles: Array = wide_arrays.f64_unorder(_or_zero(words[word], valid, xp))
            return doubles
        case TextWords(address, length):
            if xp is not np:
                from gquery.kernels.builtin.group_ranges import pairs_of  # of GPUs alone

                views = pairs_of(words[address], words[length])
                if valid is not None:
                    hide_nulls(views, valid, 2)
                return views
            views = np.stack((words[address], words[length]), axis=1)
            return _or_zero(views, None if valid is None else valid[:, None], xp).reshape(-1)
        case ExactSum((word,), bits=0):
            return _fit_i64(words[word], plan)
        case ExactSum(numbers, bits):
            return _fit_wide(wide_arrays.multiword_to_i128([words[n] for n in numbers], bits), plan, xp)
        case _:
            assert_never(state)


def _or_zero(values: Array, valid: Array | None, xp: ModuleType) -> Array:
    if valid is None:
        return values
    if xp is np:
        return np.where(valid, values, 0)
    own = converted(values, np.int64)
    clear_others(own, valid)
    return own


def _doubles(state: GroupWords, words: Sequence[Array]) -> Array:
    """Totals as doubles."""
    match state:
        case SumOfDoubles(word) | ExactSum((word,), bits=0):
            return words[word] if words[word].dtype == np.float64 else converted(words[word], np.float64)
        case ExactSum(numbers, bits):
            return _exact_total(wide_arrays.multiword_to_i128([words[n] for n in numbers], bits))
        case _:
            raise AssertionError(state)


def _overflow(plan: AggregatePlan) -> str:
    return f"Overflow in {plan.call.function}: the result does not fit {plan.result.dtype}. Cast its argument to a wider type."


def _fit_i64(values: Array, plan: AggregatePlan) -> Array:
    limit = type_bounds(plan.result.dtype)
    if limit is not None and plan.result.bounds is not None and not INT64.within(limit) and values.size:
        least, most = extremes(values)
        if int(least.item()) < limit.low or int(most.item()) > limit.high:
            raise OutOfRangeError(_overflow(plan))
    if plan.result.register is Register.I128:
        values = wide_arrays.i128_from_i64(values).reshape(-1)
    return values


def _fit_wide(wide: Array, plan: AggregatePlan, xp: ModuleType) -> Array:
    limit = type_bounds(plan.result.dtype)
    assert limit is not None
    if not wide_arrays.i128_within(wide, limit.low, limit.high):
        raise OutOfRangeError(_overflow(plan))
    if plan.result.register is Register.I64:
        wide = every(wide.reshape(-1), 2)
    return wide.reshape(-1)


def _exact_total(wide: Array) -> Array:
    """128-bit sums as doubles; OutOfRangeError where one was larger."""
    if not wide_arrays.i128_within(wide, _TOTAL.low, _TOTAL.high):
        raise OutOfRangeError(_AVERAGE_OVERFLOW)
    totals: Array = wide_arrays.f64_from_i128(wide)
    return totals


def _average(total: Array, counts: Array, plan: AggregatePlan, xp: ModuleType) -> Array:
    scale = _scale(plan)
    average: Array = total / xp.maximum(counts, 1).astype("float64")
    return average / float(power_of_ten(scale)) if scale else average
