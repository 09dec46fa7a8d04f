"""Arithmetic facts: sizes of types and units of time. What was chosen, and not given, stands in `gquery.tuning`."""

from __future__ import annotations

BYTE_BITS = 8
BYTE_SHIFT = 3  # from the number of a bit to that of its byte
INT64_BITS = 64
INT64_BYTES = 8
MANTISSA_BITS = 53  # of a double in binary
EXACT_FLOAT = 2**MANTISSA_BITS  # doubles have all integers up to it
UINT64_MAX = 2**64 - 1
UINT32_MAX = 2**32 - 1
INT128_BITS = 128
INT64_DIGITS = 18  # decimal digits that an int64 always holds
MOST_PRECISION = 38  # the most that a DECIMAL has
MOST_ROWS_LOG10 = 10  # of row numbers of 32 bits, rounded up
BITMAP_BITS = 32  # of a word of a bitmap, and of the words that hold the errors of kernels
ROW_ID_BITS = 32
ROW_ID_BYTES = 4
SUM_WORD_BITS = 32  # of a word of a multiword sum: up to LARGE_ROWS of them add up within 64 bits
SMALL_SUM_WORD_BITS = 16  # of one of a sum of more rows
MOST_ROW_IDS = 2**ROW_ID_BITS - 2  # the two last ones mean something else
NOT_IN = 2**ROW_ID_BITS - 1  # the slot of a row that is in no group
LARGE_ROWS = 2**31  # from which on row numbers exceed an int32
UNBOUNDED = 2**62  # rows, steps, groups: a bound from here on says nothing, and the sum of two is an int64
MICROS_PER_DAY = 86_400_000_000
MICROS_PER_HOUR, MICROS_PER_MINUTE = 3_600_000_000, 60_000_000
PARTS_PER_DAY = {"hour_of_day": 24, "minute_of_day": 1440}
LEAST_DAYS = {"year": 365, "month": 28, "day": 1, "minute": 1 / 1440}  # of a part of time
DAYS_PER_MONTH = 30  # where intervals are compared
FIRST_SURROGATE, BEHIND_SURROGATES = 0xD800, 0xE000  # code points between them are no characters


def power_of_ten(places: int) -> int:
    """What one is, unscaled, in a decimal with so many places (0 or more)."""
    power: int = 10**places
    return power


OLDEST_CAPABILITY = (7, 5)
"""The compute capability of the oldest GPUs that Numba and libNVVM compile for."""
