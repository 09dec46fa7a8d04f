"""Running sums of whole arrays: reduce, then scan. CuPy compiles functions of its own for each type, 0.13 s each.

A GPU's array is cut into parts, one a warp. The first kernel adds up each part, and groups of parts; the second adds up what
stands before its part, a few words, and goes over the part again. Sums wrap.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from gquery import tuning
from gquery.device.array import Array
from gquery.kernels.builtin.define import BuiltinKernel, builtin_kernel, element_word, fill, launch, namespace
from gquery.kernels.builtin.elements import contiguous, converted

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

_WARP = 32  # lanes, which take neighbouring elements
_STEP = 4 * _WARP  # elements of which a warp has the loads under way at once
_GROUP = 128  # parts


def _value(form: str, at: str) -> str:
    """An element, or, of a bitmap's words, how many bits are set."""
    return f"popcount(i64(c0[row_index({at})]))" if form == "bits" else f"i64(c0[row_index({at})])"


def _loads(form: str) -> list[str]:
    return [f"    v{n} = {_value(form, f'add_i64(at, {n * _WARP})')}" for n in range(4)]


def _element(form: str) -> str:
    return form.replace("bits", "u32")


_PLACES = ("part = shr_i64(i64(i), 5)", "own = and_i64(i64(i), 31)", "at = add_i64(mul_i64(part, size), own)",
           "end = min_i64(mul_i64(add_i64(part, 1), size), rows)")  # fmt: skip


def _summing(form: str) -> BuiltinKernel:
    """The sums of groups of parts, which are 0 before, where there are several; from ``groups`` on those of the parts."""
    return builtin_kernel(
        f"c0:*{_element(form)} rows:i64 size:i64 groups:i64 sums:*i64",
        *_PLACES,
        "n = i64(0)",
        f"while lt_i64(add_i64(at, {_STEP - _WARP}), end):",
        *_loads(form),
        "    n = add_i64(n, add_i64(add_i64(v0, v1), add_i64(v2, v3)))",
        f"    at = add_i64(at, {_STEP})",
        "while lt_i64(at, end):",
        f"    n = add_i64(n, {_value(form, 'at')})",
        f"    at = add_i64(at, {_WARP})",
        "n = last_lane(prefix_sum(n))",
        "if eq_i64(own, 0):",
        "    store_i64(sums, add_i64(groups, part), n)",
        "    if gt_i64(groups, 1):",
        "        accumulate_add_i64(sums, shr_i64(part, 7), n)",
    )


@cache
def _scanning(form: str, made: str) -> BuiltinKernel:
    """The running sums, ``less`` smaller: of so many elements at once, and of what is left of the last part. Those of offsets
    stand one place ``behind``, and a 0 before them."""
    stored = [f"    store_{made}(made, add_i64(to, {n * _WARP}), add_i64(before, v{n}))" for n in range(4)]
    following = [f"    before = add_i64(before, last_lane(v{n}))" for n in range(4)]
    return builtin_kernel(
        f"c0:*{_element(form)} rows:i64 size:i64 groups:i64 sums:*i64 less:i64 behind:i64 made:*{made}",
        *_PLACES,
        "if eq_i64(i64(i), 0) and ne_i64(behind, 0):",
        f"    store_{made}(made, 0, 0)",
        "group = shr_i64(part, 7)",
        "n = i64(0)",
        "place = own",
        "while lt_i64(place, group):",
        "    n = add_i64(n, i64(sums[row_index(place)]))",
        f"    place = add_i64(place, {_WARP})",
        "place = add_i64(own, shl_i64(group, 7))",
        "while lt_i64(place, part):",
        "    n = add_i64(n, i64(sums[row_index(add_i64(groups, place))]))",
        f"    place = add_i64(place, {_WARP})",
        "before = sub_i64(last_lane(prefix_sum(n)), less)",
        f"while le_i64(add_i64(sub_i64(at, own), {_STEP}), end):",
        "    to = add_i64(at, behind)",
        *_loads(form),
        *[f"    v{n} = prefix_sum(v{n})" for n in range(4)],
        *[line for both in zip(stored, following, strict=True) for line in both],
        f"    at = add_i64(at, {_STEP})",
        "while lt_i64(sub_i64(at, own), end):",
        "    v0 = i64(0)",
        "    if lt_i64(at, end):",
        f"        v0 = {_value(form, 'at')}",
        "    v0 = prefix_sum(v0)",
        "    if lt_i64(at, end):",
        f"        store_{made}(made, add_i64(at, behind), add_i64(before, v0))",
        "    before = add_i64(before, last_lane(v0))",
        f"    at = add_i64(at, {_WARP})",
    )


SUMS = {form: _summing(form) for form in ("u8", "u32", "i64", "bits")}
SCANS = {
    f"{form} {made}": _scanning(form, made)
    for form, made in (("u8", "u32"), ("u8", "i64"), ("u32", "u32"), ("u32", "i64"), ("i64", "i64"), ("bits", "i64"))
}
"""Those that are compiled before anybody asks for them."""


def running_sums(values: Array, dtype: DTypeLike, out: Array | None = None, less: int = 0) -> Array:
    """For each element the sum up to it, ``less`` smaller, in ``out`` if that is given; wrapped. From integers or flags to uint32
    or integers of 64 bits."""
    xp = namespace(values)
    if xp is not np:
        given = values if element_word(values) in SUMS else converted(values, np.int64)
        return _scanned(given, element_word(given), xp.empty(values.size, dtype) if out is None else out, less)
    sums: Array = np.cumsum(values, dtype=dtype, out=out)
    if less:
        sums -= np.dtype(dtype).type(less)
    return sums


def group_numbers(starts: Array, dtype: DTypeLike) -> Array:
    """For each place the number of its group, from 0 on, where a group starts at each flag that is 1, as the first is."""
    return running_sums(starts, dtype, less=1)


def bits_before(bits: Array) -> Array:
    """For each word of a bitmap (uint32) how many bits are set up to its end (int64)."""
    xp = namespace(bits)
    if xp is np:
        return np.cumsum(np.bitwise_count(bits), dtype=np.int64)
    return _scanned(bits, "bits", xp.empty(bits.size, np.int64), 0)


def offsets_of(lengths: Array, dtype: DTypeLike = np.int64, out: Array | None = None) -> Array:
    """Where each run begins when runs of these lengths lie one after another, and at last where all end: one more than there are
    lengths, in ``out`` if that is given."""
    made: Array = namespace(lengths).empty(lengths.size + 1, dtype) if out is None else out
    if namespace(made) is np or not lengths.size:
        fill(made[:1], 0)
        running_sums(lengths, dtype, made[1:])
        return made
    given = lengths if element_word(lengths) in SUMS else converted(lengths, np.int64)
    return _scanned(given, element_word(given), made, 0, behind=1)


def _scanned(values: Array, form: str, made: Array, less: int, behind: int = 0) -> Array:
    xp, rows, limits = namespace(values), int(values.size), tuning.built_in_kernels
    if not rows:
        return made
    divided = min(-(-rows // limits.scanned_by), limits.scanned_large)
    wanted = max(limits.scanned_rows, divided, -(-rows // limits.scanned_parts))
    size = -(-wanted // _STEP) * _STEP
    parts = -(-rows // size)
    groups, sums = -(-parts // _GROUP), None
    given = contiguous(values)
    if parts > 1:
        sums = (xp.zeros if groups > 1 else xp.empty)(groups + parts, np.int64)
        launch(SUMS[form], _WARP * parts, given, given, rows, size, groups, sums)
    scan = _scanning(form, "u32" if made.dtype.itemsize == np.dtype(np.uint32).itemsize else "i64")
    launch(scan, _WARP * parts, given, given, rows, size, groups, sums, less, behind, made)
    return made
