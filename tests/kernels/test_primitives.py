"""Every primitive gives the same on each target, at the edges of its types, as Python's own integers and floats say.

Numba takes 10 ms a primitive, so the primitives of one argument list run in one kernel, a row a case.
"""

from __future__ import annotations

import itertools
import math
import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tests.support.paths import ROOT
from tests.support.primitives import TARGETS, check, evaluate, signed

LOW, HIGH = -(2**63), 2**63 - 1
LOW_128, HIGH_128 = -(2**127), 2**127 - 1
INTEGERS = [0, 1, -1, 2, -2, 7, -7, 10**9, -(10**9), 2**31, 2**32, 2**62, -(2**62), LOW, LOW + 1, HIGH, HIGH - 1]
WIDE = [*INTEGERS, 2**63, -(2**63) - 1, 2**64, -(2**64), 2**96 + 12345, 10**38 - 1, 1 - 10**38, 2**126, LOW_128,
        HIGH_128]  # fmt: skip
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.1, 1e300, -1e300, 5e-324, 2.0**52, 2.0**53 + 2, -(2.0**63),
          1e18, 123456.789, math.inf, -math.inf, math.nan]  # fmt: skip


def pairs(values: Sequence[Any], more: Callable[[random.Random], Any], count: int) -> list[tuple[Any, Any]]:
    r = random.Random(42)
    return [*itertools.product(values, values), *((more(r), more(r)) for _ in range(count))]


def random_i64(r: random.Random) -> int:
    return r.getrandbits(64) - 2**63 >> r.randrange(64)


def random_i128(r: random.Random) -> int:
    return r.getrandbits(128) - 2**127 >> r.randrange(128)


def random_f64(r: random.Random) -> float:
    return r.choice((r.uniform(-1e3, 1e3), r.gauss(0, 1) * 10.0 ** r.randint(-30, 30), float(r.randint(-50, 50)) / 2))


# ---- references -------------------------------------------------------------------------------------------------
def within(low: int, high: int) -> Callable[[int], int | None]:
    return lambda v: v if low <= v <= high else None


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def rounded(a: int, b: int) -> int:
    return (2 * abs(a) + b) // (2 * b) * (1 if a >= 0 else -1)


def compare_f64(a: float, b: float) -> int:
    if a != a or b != b:
        return (a != a) - (b != b)
    return (a > b) - (a < b)


def integer_cases(suffix: str, low: int, high: int) -> dict[str, tuple[str, Callable[..., Any]]]:
    fit = within(low, high)
    comparisons = {"eq": int.__eq__, "ne": int.__ne__, "lt": int.__lt__, "le": int.__le__, "gt": int.__gt__,
                   "ge": int.__ge__}  # fmt: skip
    return {
        **{f"{name}_{suffix}(a, b)": ("bool", f) for name, f in comparisons.items()},
        f"min_{suffix}(a, b)": (suffix, min),
        f"max_{suffix}(a, b)": (suffix, max),
        f"add_{suffix}_checked(a, b, FAIL)": (suffix, lambda a, b: fit(a + b)),
        f"sub_{suffix}_checked(a, b, FAIL)": (suffix, lambda a, b: fit(a - b)),
        f"mul_{suffix}_checked(a, b, FAIL)": (suffix, lambda a, b: fit(a * b)),
        f"neg_{suffix}_checked(a, FAIL)": (suffix, lambda a, b: fit(-a)),
        f"abs_{suffix}_checked(a, FAIL)": (suffix, lambda a, b: fit(abs(a))),
    }


@pytest.mark.parametrize("target", TARGETS)
def test_i64(target: str) -> None:
    expected = integer_cases("i64", LOW, HIGH)
    expected["mul_i64_i128(a, b)"] = ("i128", lambda a, b: a * b)
    expected["sum_word_i64(a, 0)"] = ("i64", lambda a, b: a & 0xFFFFFFFF)
    expected["sum_word_i64(a, 1)"] = ("i64", lambda a, b: a >> 32)
    expected["and_i64(a, b)"] = ("i64", int.__and__)
    expected["or_i64(a, b)"] = ("i64", int.__or__)
    expected["xor_i64(a, b)"] = ("i64", int.__xor__)
    expected["shl_i64(a, 5)"] = ("i64", lambda a, b: signed(a << 5))
    expected["shr_i64(a, 5)"] = ("i64", lambda a, b: a >> 5)
    expected["i64_from_i128(i128_from_i64(a))"] = ("i64", lambda a, b: a)
    expected["truth(a)"] = ("bool", lambda a, b: a != 0)
    check(target, ["i64", "i64"], pairs(INTEGERS, random_i64, 300), expected)


@pytest.mark.parametrize("target", TARGETS)
def test_i64_proved(target: str) -> None:
    small = [v for v in INTEGERS if abs(v) < 2**31]
    expected: dict[str, tuple[str, Callable[..., Any]]] = {
        "add_i64(a, b)": ("i64", lambda a, b: a + b),
        "sub_i64(a, b)": ("i64", lambda a, b: a - b),
        "mul_i64(a, b)": ("i64", lambda a, b: a * b),
        "neg_i64(a)": ("i64", lambda a, b: -a),
        "abs_i64(a)": ("i64", lambda a, b: abs(a)),
        "range_i64(a, -5, 9, FAIL)": ("i64", lambda a, b: a if -5 <= a <= 9 else None),
        "f64(a)": ("f64", lambda a, b: float(a)),
    }
    check(target, ["i64", "i64"], pairs(small, lambda r: r.randint(-(2**31), 2**31), 100), expected)


@pytest.mark.parametrize("target", TARGETS)
def test_i64_division(target: str) -> None:
    cases = [(a, b) for a, b in pairs(INTEGERS, random_i64, 300) if b != 0]
    check(target, ["i64", "i64"], [c for c in cases if c != (LOW, -1)], {
        "div_i64(a, b)": ("i64", truncated),
        "mod_i64(a, b)": ("i64", lambda a, b: a - truncated(a, b) * b),
    })  # fmt: skip
    check(target, ["i64", "i64"], [(a, abs(b)) for a, b in cases if b != LOW], {
        "div_round_i64(a, b)": ("i64", rounded),
        "floor_div_i64(a, b)": ("i64", lambda a, b: a // b),
        "floor_mod_i64(a, b)": ("i64", lambda a, b: a % b),
    })  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
def test_integers_as_floats(target: str) -> None:
    check(target, ["i64", "i64"], pairs(INTEGERS, random_i64, 300), {
        "f32_from_i64(a)": ("f64", lambda a, b: float(np.int64(a).astype(np.float32))),
        "f32_from_u64(a)": ("f64", lambda a, b: float(np.uint64(a % 2**64).astype(np.float32))),
        "f64_from_decimal_i64(a, 1)": ("f64", lambda a, b: float(a)),
        "f64_from_decimal_i128(i128_from_i64(a), i128_from_i64(1))": ("f64", lambda a, b: by_words(a)),
    })  # fmt: skip


def by_words(a: int) -> float:
    """The doubles of the words of an integer."""
    return -float(-1 - a) - 1.0 if a >> 64 == -1 else float(a % 2**64) + float(a >> 64) * 2.0**64


@pytest.mark.parametrize("target", TARGETS)
def test_i128(target: str) -> None:
    expected = integer_cases("i128", LOW_128, HIGH_128)
    expected["fits_i64_i128(a)"] = ("bool", lambda a, b: LOW <= a <= HIGH)
    expected["high_i128(a)"] = ("i64", lambda a, b: a >> 64)
    expected["low_i128(a)"] = ("i64", lambda a, b: signed(a))
    expected["make_i128(high_i128(a), low_i128(a))"] = ("i128", lambda a, b: a)
    expected["f64_from_i128(a)"] = ("f64", lambda a, b: by_words(a))
    for k in range(4):
        expected[f"sum_word_i128(a, {k})"] = ("i64", lambda a, b, k=k: a >> 96 if k == 3 else a >> 32 * k & 0xFFFFFFFF)
    text = "range_i128(a, -1, -5, 0, 9, FAIL)"
    expected[text] = ("i128", lambda a, b: a if -5 <= a <= 9 else None)
    check(target, ["i128", "i128"], pairs(WIDE, random_i128, 300), expected)


@pytest.mark.parametrize("target", TARGETS)
def test_i128_division(target: str) -> None:
    cases = [(a, b) for a, b in pairs(WIDE, random_i128, 300) if b != 0 and (a, b) != (LOW_128, -1)]
    check(target, ["i128", "i128"], cases, {
        "div_i128(a, b)": ("i128", truncated),
        "mod_i128(a, b)": ("i128", lambda a, b: a - truncated(a, b) * b),
    })  # fmt: skip
    check(target, ["i128", "i128"], [(a, abs(b)) for a, b in cases if b != LOW_128], {
        "div_round_i128(a, b)": ("i128", rounded)
    })  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
def test_f64(target: str) -> None:
    def divide(a: float, b: float) -> float:
        with np.errstate(all="ignore"):
            return float(np.float64(a) / np.float64(b))

    expected: dict[str, tuple[str, Callable[..., Any]]] = {
        "eq_f64(a, b)": ("bool", lambda a, b: compare_f64(a, b) == 0),
        "ne_f64(a, b)": ("bool", lambda a, b: compare_f64(a, b) != 0),
        "lt_f64(a, b)": ("bool", lambda a, b: compare_f64(a, b) < 0),
        "le_f64(a, b)": ("bool", lambda a, b: compare_f64(a, b) <= 0),
        "gt_f64(a, b)": ("bool", lambda a, b: compare_f64(a, b) > 0),
        "ge_f64(a, b)": ("bool", lambda a, b: compare_f64(a, b) >= 0),
        "min_f64(a, b)": ("f64", lambda a, b: b if compare_f64(b, a) < 0 else a),
        "max_f64(a, b)": ("f64", lambda a, b: b if compare_f64(b, a) > 0 else a),
        "add_f64(a, b)": ("f64", lambda a, b: a + b),
        "sub_f64(a, b)": ("f64", lambda a, b: a - b),
        "mul_f64(a, b)": ("f64", lambda a, b: a * b),
        "div_f64(a, b)": ("f64", divide),
        "mod_f64(a, b)": ("f64", lambda a, b: math.nan if b == 0 or math.isinf(a) else math.fmod(a, b)),
        "lt_i64(f64_order(a), f64_order(b))": ("bool", lambda a, b: compare_f64(a, b) < 0),
        "eq_i64(hash_f64(a), hash_f64(b))": ("bool", lambda a, b: compare_f64(a, b) == 0),
    }
    check(target, ["f64", "f64"], pairs(FLOATS, random_f64, 300), expected)


def half_away(a: float) -> float:
    if not abs(a) < 2**52:
        return a
    whole = math.trunc(a)
    return math.copysign(whole + (abs(a - whole) >= 0.5) * math.copysign(1, a), a)


def half_even(a: float) -> float:
    return math.copysign(float(round(a)), a) if math.isfinite(a) else a


@pytest.mark.parametrize("target", TARGETS)
def test_f64_rounding(target: str) -> None:
    r = random.Random(7)
    edges = [0.49999999999999994, -0.49999999999999994, 4503599627370495.5]
    cases = [(x,) for x in [*FLOATS, *edges, *(random_f64(r) for _ in range(300))]]
    with np.errstate(all="ignore"):
        check(target, ["f64"], cases, {
            "neg_f64(a)": ("f64", lambda a: -a),
            "abs_f64(a)": ("f64", abs),
            "f64_is_nan(a)": ("bool", math.isnan),
            "floor_f64(a)": ("f64", lambda a: float(np.floor(a))),
            "ceil_f64(a)": ("f64", lambda a: float(np.ceil(a))),
            "trunc_f64(a)": ("f64", lambda a: float(np.trunc(a))),
            "round_f64(a)": ("f64", half_away),
            "round_even_f64(a)": ("f64", half_even),
            "round_f32(a)": ("f64", lambda a: float(np.float32(a))),
            "sign_f64(a)": ("f64", lambda a: 0.0 if a != a or a == 0 else math.copysign(1.0, a)),
            "f64_unorder(f64_order(a))": ("f64", lambda a: a + 0.0),
            "f64_from_bits(bits_f64(a))": ("f64", lambda a: a),
            "i64_from_f64_checked(a, -128, 127, FAIL)":
                ("i64", lambda a: round(a) if math.isfinite(a) and a >= -128 and round(a) <= 127 else None),
            "sqrt(a)": ("f64", lambda a: float(np.sqrt(a))),
        })  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
def test_f64_functions(target: str) -> None:
    names = {"ln": np.log, "log10": np.log10, "log2": np.log2, "exp": np.exp, "sin": np.sin, "cos": np.cos,
             "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh,
             "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh}  # fmt: skip
    values = [x for x in FLOATS if not 1e10 < abs(x) < math.inf]
    got = evaluate(target, ["f64"], [(x,) for x in values], [(f"{name}_f64(a)", "f64", False) for name in names])
    with np.errstate(all="ignore"):
        for (name, f), found in zip(names.items(), got, strict=True):
            np.testing.assert_allclose(found, f(np.array(values)), rtol=1e-13, err_msg=name)


@pytest.mark.parametrize("target", TARGETS)
def test_gamma(target: str) -> None:
    """At its poles and beyond doubles; between them as Python's own."""
    values = [
        0.5,
        1.0,
        3.0,
        171.6,
        171.7,
        1e300,
        5e-324,
        -0.5,
        -1.0,
        -170.5,
        -1e300,
        0.0,
        math.inf,
        -math.inf,
        math.nan,
    ]
    gamma = [math.gamma(0.5), 1.0, 2.0, math.gamma(171.6), math.inf, math.inf, math.inf, math.gamma(-0.5), math.nan,
             math.gamma(-170.5), math.nan, math.nan, math.inf, math.nan, math.nan]  # fmt: skip
    log = [math.lgamma(x) if x > 0 or x in (-0.5, -170.5) else math.nan if math.isnan(x) else math.inf for x in values]
    got = evaluate(
        target, ["f64"], [(x,) for x in values], [(f"{n}(a)", "f64", False) for n in ("gamma_f64", "lgamma_f64")]
    )
    for found, wanted in zip(got, (gamma, log), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize("target", TARGETS)
def test_f64_to_integers(target: str) -> None:
    values = [0.0, 0.5, 1.5, 2.5, -0.5, -1.5, 1e15 + 0.5, -(2.0**62), 2.0**62]
    check(target, ["f64"], [(v,) for v in values], {"i64_from_f64(a)": ("i64", round)})
    check(target, ["f64"], [(v,) for v in [*values, 1e30, -1e30, 2.0**126, -(2.0**127), 9.3e18]], {
        "i128_from_f64(a)": ("i128", round)
    })  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
def test_hashes_agree(target: str) -> None:
    cases = pairs(INTEGERS, random_i64, 50)
    texts = [("hash_i64(a)", "i64", False), ("hash_combine(a, b)", "i64", False)]
    assert evaluate(target, ["i64", "i64"], cases, texts) == evaluate("python", ["i64", "i64"], cases, texts)
    wide = [(v,) for v in WIDE]
    text = [("hash_i128(a)", "i64", False)]
    assert evaluate(target, ["i128"], wide, text) == evaluate("python", ["i128"], wide, text)


@pytest.mark.parametrize("target", TARGETS)
def test_hash_of_one_integer_in_both_widths(target: str) -> None:
    texts = [("hash_i128(i128_from_i64(a))", "i64", False), ("hash_i64(a)", "i64", False)]
    wide, narrow = evaluate(target, ["i64"], [(v,) for v in INTEGERS], texts)
    assert wide == narrow


@pytest.mark.parametrize("target", TARGETS)
def test_dates(target: str) -> None:
    import datetime

    epoch = datetime.date(1970, 1, 1)
    r = random.Random(3)
    days = [0, -1, 59, 60, -719162, 2932896, *(r.randint(-719162, 2932896) for _ in range(500))]
    edges = ((1, 1), (2, 28), (3, 1), (12, 31))
    days += [(datetime.date(y, m, d) - epoch).days for y in (1900, 1999, 2000, 2024) for m, d in edges]

    def of(f: Callable[[datetime.date], int]) -> Callable[[int, int], int]:
        return lambda a, b: f(epoch + datetime.timedelta(a))

    def add_months(a: int, b: int) -> int:
        from gquery.functions.calendar import add_months

        return add_months(a, b)

    def first(year: int, month: int) -> int:
        return (datetime.date(year, month, 1) - epoch).days

    cases = [(d, r.choice((0, 1, -1, 12, -13, 25))) for d in days]
    cases = [c for c in cases if -710000 < c[0] < 2900000] + [(-719162, 0), (2932896, 0)]
    check(target, ["i64", "i64"], cases, {
        "date_year(a)": ("i64", of(lambda d: d.year)),
        "date_month(a)": ("i64", of(lambda d: d.month)),
        "date_day(a)": ("i64", of(lambda d: d.day)),
        "date_quarter(a)": ("i64", of(lambda d: (d.month + 2) // 3)),
        "date_dow(a)": ("i64", of(lambda d: d.isoweekday() % 7)),
        "date_isodow(a)": ("i64", of(lambda d: d.isoweekday())),
        "date_doy(a)": ("i64", of(lambda d: d.timetuple().tm_yday)),
        "date_week(a)": ("i64", of(lambda d: d.isocalendar()[1])),
        "date_isoyear(a)": ("i64", of(lambda d: d.isocalendar()[0])),
        "date_from_ymd(date_year(a), date_month(a), date_day(a))": ("i64", lambda a, b: a),
        "date_add_months(a, b)": ("i64", add_months),
        "date_trunc_year(a)": ("i64", of(lambda d: first(d.year, 1))),
        "date_trunc_quarter(a)": ("i64", of(lambda d: first(d.year, (d.month - 1) // 3 * 3 + 1))),
        "date_trunc_month(a)": ("i64", of(lambda d: first(d.year, d.month))),
        "date_trunc_week(a)": ("i64", lambda a, b: a - (epoch + datetime.timedelta(a)).weekday()),
        "date_last_day(a)": ("i64", lambda a, b: add_months(a - (epoch + datetime.timedelta(a)).day + 1, 1) - 1),
    })  # fmt: skip


def test_what_collects_tests_changes_no_primitive() -> None:
    """Kernels that such a process compiles are kept on disk, for others whose primitives are as they were written."""
    text = """
import importlib, pkgutil
import gquery.kernels.primitives as primitives
names = [m.name for m in pkgutil.walk_packages(primitives.__path__, primitives.__name__ + ".")]
written = {name: dict(vars(importlib.import_module(name))) for name in names}
import tests.support
for module in pkgutil.iter_modules(tests.support.__path__):
    try:
        importlib.import_module("tests.support." + module.name)
    except ModuleNotFoundError as missing:
        assert not missing.name.startswith(("gquery", "tests")), missing
for name, before in written.items():
    now = vars(importlib.import_module(name))
    changed = [k for k, v in before.items() if not k.startswith("__") and now[k] is not v]
    assert not changed, (name, changed)
"""
    done = subprocess.run([sys.executable, "-c", text], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
