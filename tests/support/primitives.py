"""Running primitives on a target: many in one kernel, a row a case, compared with a reference in Python."""

from __future__ import annotations

import importlib
import inspect
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from gquery.kernels.ir.read import read_lines
from gquery.kernels.kernel import Kernel, Parameter
from gquery.kernels.lowering.assembler import LoweringError
from gquery.kernels.lowering.function import LoweredFunction
from gquery.kernels.lowering.library import Library
from gquery.kernels.lowering.module import module_text
from gquery.kernels.targets import get_target
from gquery.kernels.targets.binding import BODIES
from gquery.kernels.targets.intrinsics import Definition

TARGETS = ["python", "cpu", pytest.param("cuda", marks=pytest.mark.cuda)]


WORDS = {"i64": 1, "f64": 1, "bool": 1, "i128": 2, "str": 2}


def encode(kind: str, values: Sequence[Any]) -> Any:
    if kind == "f64":
        return np.array(values, np.float64)
    if kind == "i128":
        words = [w for v in values for w in (signed(v), v >> 64)]
        return np.array(words, np.int64)
    return np.array(values, np.int64)


def signed(v: int) -> int:
    return ((v + 2**63) & (2**64 - 1)) - 2**63


def decode(kind: str, array: Any) -> list[Any]:
    if kind == "i128":
        return [(int(h) << 64) | (int(low) & (2**64 - 1)) for low, h in array.reshape(-1, 2)]
    return [bool(x) for x in array] if kind == "bool" else list(array.tolist())


LOAD = {"str": "string32({0}, {0}_characters, i64(i))", "i64": "i64({0}[i])", "f64": "f64({0}[i])",
        "i128": "load_i128({0}, i64(i))"}  # fmt: skip
STORE = {"i64": "store_i64({0}, i64(i), {1})", "f64": "store_f64({0}, i64(i), {1})",
         "bool": "store_i64({0}, i64(i), from_bool({1}))", "i128": "store_i128({0}, i64(i), {1})",
         "str": "store_view({0}, i64(i), {1})"}  # fmt: skip


def evaluate(
    target: str,
    kinds: Sequence[str],
    cases: Sequence[tuple[Any, ...]],
    results: Sequence[tuple[str, str, bool]],
    failed: bool = False,
) -> list[list[Any]]:
    """For each (text, kind of result, may fail) over variables ``a``, ``b`` ... the values; None where it failed, or with
    ``failed`` what it gave, where all have to fail."""
    n = len(cases)
    parameters: list[Parameter] = []
    body: list[str] = []
    arrays: list[Any] = []
    for k, kind in enumerate(kinds):
        if kind == "str":
            offsets, characters = strings([case[k] for case in cases])
            parameters += [Parameter(f"c{k}", "i32", True), Parameter(f"c{k}_characters", "i64", False)]
            arrays += [offsets, characters]
            body.append(f"{'abcd'[k]} = {LOAD[kind].format(f'c{k}')}")
            continue
        parameters.append(Parameter(f"c{k}", "f64" if kind == "f64" else "i64", True))
        arrays.append(encode(kind, [case[k] for case in cases]))
        body.append(f"{'abcd'[k]} = {LOAD[kind].format(f'c{k}')}")
    for k, (text, kind, fails) in enumerate(results):
        parameters.append(Parameter(f"o{k}", "f64" if kind == "f64" else "i64", True))
        arrays.append(np.zeros(n * WORDS[kind], np.float64 if kind == "f64" else np.int64))
        if fails:
            parameters.append(Parameter(f"s{k}", "u32", True))
            arrays.append(np.zeros(n // 32 + 1, np.uint32))
            text = text.replace("FAIL", f"s{k}, i64(i)")
        body.append(STORE[kind].format(f"o{k}", text))
    outputs = run(target, Kernel(tuple(parameters), (), read_lines(*body), (), frozenset()), n, arrays)
    by_name = dict(zip((p.name for p in parameters), outputs, strict=True))
    characters = [(a, o) for p, a, o in zip(parameters, arrays, outputs, strict=True) if p.name.endswith("_characters")]
    found = []
    for k, (_, kind, fails) in enumerate(results):
        values = text_of(by_name[f"o{k}"], characters) if kind == "str" else decode(kind, by_name[f"o{k}"])
        if fails:
            bits = by_name[f"s{k}"]
            has_failed = [bool(int(bits[i >> 5]) >> (i & 31) & 1) for i in range(n)]
            assert not failed or all(has_failed), results[k]
            values = [None if bad and not failed else v for bad, v in zip(has_failed, values, strict=True)]
        found.append(values)
    return found


def strings(values: Sequence[bytes]) -> tuple[Any, Any]:
    """Offsets and characters. The characters start at an odd address, as those of a slice may."""
    offsets = np.zeros(len(values) + 1, np.int32)
    offsets[1:] = np.cumsum([len(v) for v in values])
    return offsets + 3, np.frombuffer(b"xyz" + b"".join(values) + b"after", np.uint8)


def text_of(views: Any, characters: Sequence[tuple[Any, int]]) -> list[bytes]:
    """The bytes of views into character buffers, given as (host copy, address where the kernel ran)."""
    found = []
    for start, length in views.reshape(-1, 2).tolist():
        array, base = next((a, b) for a, b in characters if b <= start <= b + a.size and length >= 0)
        found.append(array[start - base : start - base + length].tobytes())
    return found


def run(name: str, kernel: Kernel, rows: int, arrays: Sequence[Any]) -> list[Any]:
    """What the parameters are after the kernel ran over ``rows`` rows; a scalar given as an array is its address."""
    target = get_target(name)
    if name == "cuda":
        import cupy

        arrays = [cupy.asarray(a) if isinstance(a, np.ndarray) else a for a in arrays]
    values = [
        a if p.is_pointer or isinstance(a, int) else address(a) for p, a in zip(kernel.parameters, arrays, strict=True)
    ]
    arguments = [target.argument(p, v) for p, v in zip(kernel.parameters, values, strict=True)]
    target.run(target.compile(kernel), 0, rows, arguments)
    return [v if isinstance(v, int | np.ndarray) else v.get() for v in values]


def address(array: Any) -> int:
    return int(array.ctypes.data if isinstance(array, np.ndarray) else array.data.ptr)


def same(x: Any, y: Any) -> bool:
    if isinstance(x, float) and isinstance(y, float):
        return (x != x and y != y) or (x == y and math.copysign(1, x) == math.copysign(1, y))
    return bool(x == y)


def check(
    target: str,
    kinds: Sequence[str],
    cases: Sequence[tuple[Any, ...]],
    expected: dict[str, tuple[str, Callable[..., Any]]],
) -> None:
    """``expected``: text -> (kind of result, reference); a reference gives None where the primitive has to fail."""
    results = [(text, kind, "FAIL" in text) for text, (kind, _) in expected.items()]
    for (text, (_, reference)), got in zip(expected.items(), evaluate(target, kinds, cases, results), strict=True):
        for case, value in zip(cases, got, strict=True):
            want = reference(*case)
            assert same(value, want), f"{text} of {case}: {value}, not {want}"


# ---- all of them, lowered -----------------------------------------------------------------------------------------
_KINDS = {
    "int": ("i64", "i128"),
    "float": ("f64",),
    "bool": ("bool",),
    "Str": ("str",),
    "Pointer": ("*", "*i64", "*u32"),
}
"""By the annotation of a parameter, what its argument may be."""


def every_one(library: Library, lacking: Sequence[str] = ()) -> Iterator[LoweredFunction]:
    """All primitives of a target but those ``lacking`` that it has not, and those of users, which are Numba's; bodies for the
    first types that they have a meaning for."""
    modules = [importlib.import_module(f"gquery.kernels.primitives.{name}") for name in BODIES if name != "user"]
    modules += library.primitives.own_bodies
    bodies = {n for m in modules for n, f in vars(m).items() if inspect.isfunction(f) and f.__module__ == m.__name__}
    for name in sorted({*library.primitives.definitions, *bodies} - {*lacking}):
        meaning = library.primitives.meaning(name)
        assert meaning is not None
        yield (
            library.find(name, meaning.arguments)
            if isinstance(meaning, Definition)
            else _body(library, name, [p.annotation for p in inspect.signature(meaning).parameters.values()])
        )


def _body(library: Library, name: str, annotations: Sequence[str]) -> LoweredFunction:
    said: LoweringError | None = None
    for types in itertools.product(*[_KINDS[a] for a in annotations]):
        try:
            return library.find(name, types)
        except LoweringError as error:
            said = said or error
    raise said or AssertionError(name)


def mathematics(library: Library) -> list[LoweredFunction]:
    """The functions of `math` that a target has."""
    return [library.find(f"math_{name}", ()) for name in library.mathematics]


def exported(functions: Sequence[LoweredFunction], head: Sequence[str]) -> str:
    """A module in which functions can be seen from outside, so that their code is in what is made of it."""
    text = module_text(LoweredFunction("all", (), "void", "", tuple(functions)), head, ())
    for function in functions:
        result, _, _ = function.text.removeprefix("define internal ").partition("(")
        text = text.replace(f"define internal {result}(", f"define {result}(")
    return text
