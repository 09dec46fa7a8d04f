"""Hashes of rows by their keys, and the part of so many that each row belongs to.

The hash of a row is a contract between ranks, targets and the sides of a join: it depends on the values of the keys alone and
not on how they lie. Integers of any width, decimals of one scale, dates and booleans hash as the integer that they are, floats
as doubles (0.0 as -0.0, one NaN as another), text by its bytes, in a dictionary or not. NULL is a value of its own.

A part is taken from another mix of that hash than any hash table takes its slots from, so that the rows of one part fill the
slots of a table evenly; each ``seed`` gives one that is independent of the others, for parts of a part.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal
from weakref import WeakKeyDictionary

import numpy as np

from gquery.columns.opaque import Opaque
from gquery.columns.table import ColumnData, Dictionary
from gquery.device.array import Array
from gquery.device.buffer import Buffer
from gquery.device.device import Device, cpu_device
from gquery.errors import InternalError
from gquery.expression.types import VARCHAR, PhysicalType
from gquery.functions.vectors import characters_of, offsets_of
from gquery.kernels.bindings import Argument
from gquery.kernels.builtin.define import BuiltinKernel, address, builtin_kernel, launch
from gquery.kernels.kernel import Kernel
from gquery.kernels.primitives.python.integers import hash_i64
from gquery.runtime.records import dataclass
from gquery.runtime.tuples import NamedTuple

KeyKind = Literal["integer", "float", "i128", "string32", "string64", "view", "dictionary"]
StoredWord = Literal["hash", "u8", "u16", "u8 or own", "u16 or own"]
"""What is stored of a row: its hash, or its part in so many bits. Or own: rows of some hashes belong to one part."""

_HASHES: dict[KeyKind, str] = {
    "integer": "hash_i64({value})",
    "float": "hash_f64({value})",
    "i128": "hash_i128(load_i128(c{n}, i64({row})))",
    "string32": "hash_str(string32(c{n}, k{n}, i64({row})))",
    "string64": "hash_str(string64(c{n}, k{n}, i64({row})))",
    "view": "hash_str(view(c{n}, i64({row})))",
    "dictionary": "i64(t{n}[row_index({value})])",
}
_OWN: dict[Literal["u8", "u16"], StoredWord] = {"u8": "u8 or own", "u16": "u16 or own"}
_LOADED: dict[KeyKind, str] = {"integer": "i64", "float": "f64", "dictionary": "i64"}
_SAMPLED = "j0 = row_index(add_i64(mul_i64(i64(i), stride), mod_u64(hash_i64(i64(i)), stride)))"


class KeyShape(NamedTuple):
    """What a kernel's text must know of a key: how its values lie, their element type, whether there are NULLs."""

    kind: KeyKind
    element: str
    nullable: bool


@dataclass(frozen=True, eq=False)
class OwnPart:
    """Rows of these hashes (int64, ascending, on the host) belong to this part, whatever their hash says."""

    hashes: Array
    part: int


@dataclass(frozen=True, eq=False)
class PartRule:
    """Which part a hash belongs to, of so many."""

    parts: int
    seed: int = 0
    own: OwnPart | None = None


def hash_rows(keys: Sequence[ColumnData], rows: int, device: Device, workers: int = 1, stride: int = 1) -> Array:
    """The hashes (int64) of rows by their keys, one row of each ``stride``, ``rows`` in all: not the first one of each, as values
    may come in turns."""
    hashes = device.empty(rows, np.int64, "hashes of keys")
    kernel = _kernel(tuple([key_shape(k) for k in keys]), "hash", stride > 1)
    last: tuple[Argument, ...] = (stride, hashes) if stride > 1 else (hashes,)
    launch(kernel, rows, hashes, *key_arguments(keys, device), *last, workers=workers)
    return hashes


def label_rows(keys: Sequence[ColumnData], labels: Array, rule: PartRule, device: Device, workers: int = 1) -> None:
    """Store the part of each row in ``labels`` (uint8 or uint16)."""
    word: Literal["u8", "u16"] = "u8" if labels.dtype == np.uint8 else "u16"
    stored: StoredWord = word if rule.own is None else _OWN[word]
    kernel = _kernel(tuple([key_shape(k) for k in keys]), stored, False)
    last: list[Argument] = [rule.parts, hash_i64(rule.seed), labels]
    if rule.own is not None:
        last += [device.from_host(rule.own.hashes), int(rule.own.hashes.size), rule.own.part]
    launch(kernel, int(labels.size), labels, *key_arguments(keys, device), *last, workers=workers)


def key_shape(key: ColumnData) -> KeyShape:
    """What a kernel's text must know of a key column."""
    element, nullable = np.dtype(key.physical_type.numpy), key.validity is not None
    return KeyShape(_kind(key), f"{element.kind}{8 * element.itemsize}", nullable)


def _kind(key: ColumnData) -> KeyKind:
    match key.dictionary, key.physical_type:
        case Opaque(), _:
            raise InternalError("the values of an opaque column are no keys")
        case Dictionary(), _:
            return "dictionary"
        case _, PhysicalType.F32 | PhysicalType.F64:
            return "float"
        case _, PhysicalType.I128:
            return "i128"
        case _, PhysicalType.STRING32:
            return "string32"
        case _, PhysicalType.STRING64:
            return "string64"
        case _, PhysicalType.VIEW:
            return "view"
        case _:
            return "integer"


def key_arguments(keys: Sequence[ColumnData], device: Device) -> list[Argument]:
    """What the parameters of `key_parameters` stand for, of key columns on a device."""
    made: list[Argument] = []
    for key in keys:
        made.append(key.data.on(device))
        if isinstance(key.dictionary, Dictionary):
            made.append(entry_hashes(key.dictionary).on(device))
        elif key.physical_type in (PhysicalType.STRING32, PhysicalType.STRING64):
            made.append(0 if key.characters is None else address(key.characters.on(device)))
        if key.validity is not None:
            made.append(key.validity.on(device))
    return made


def key_parameters(shapes: Sequence[KeyShape]) -> list[str]:
    """Those that `key_arguments` gives: of each key values ``c``, characters ``k`` or hashes of entries ``t``, flags ``m``."""
    made: list[str] = []
    for n, shape in enumerate(shapes):
        made.append(f"c{n}:*{shape.element}")
        if shape.kind == "dictionary":
            made.append(f"t{n}:*i64")
        elif shape.kind in ("string32", "string64"):
            made.append(f"k{n}:i64")
        if shape.nullable:
            made.append(f"m{n}:*u8")
    return made


@lru_cache(maxsize=256)
def _kernel(shapes: tuple[KeyShape, ...], stored: StoredWord, sampled: bool) -> BuiltinKernel:
    """The kernel for keys of these shapes: one that a registry need not know, as most programs partition by few."""
    parameters, lines, hoisted = key_parameters(shapes), [_SAMPLED] * sampled, []
    for n, shape in enumerate(shapes):
        row = "j0" if sampled else "i"
        loaded = _LOADED.get(shape.kind)
        if loaded is not None:
            lines.append(f"v{2 * n} = {loaded}(c{n}[{row}])")
            hoisted.append(f"v{2 * n}")
        hashed = _HASHES[shape.kind].format(n=n, row=row, value=f"v{2 * n}")
        if shape.nullable:
            lines += [f"v{2 * n + 1} = i64(m{n}[{row}])", f"x{n} = i64(0)", f"if ne_i64(v{2 * n + 1}, 0):"]
            hoisted.append(f"v{2 * n + 1}")
        lines.append(f"{'    ' * shape.nullable}x{n} = {hashed}")
    total = "x0" if shapes else "i64(0)"
    for n in range(1, len(shapes)):
        total = f"hash_combine({total}, x{n})"
    lines.append(f"hash = {total}")
    more, last = _storing(stored)
    names = [*parameters, *["stride:i64"] * sampled, *more]
    is_plain = not sampled and all(shape.kind in _LOADED for shape in shapes)
    return builtin_kernel(" ".join(names), *lines, *last, hoisted=tuple(hoisted) if is_plain else ())


def _storing(stored: StoredWord) -> tuple[list[str], list[str]]:
    """Parameters and lines that store a hash or what is made of it."""
    if stored == "hash":
        return ["hashes:*i64"], ["store_i64(hashes, i64(i), hash)"]
    word, _, own = stored.partition(" ")
    parameters = ["parts:i64", "seed:i64", f"labels:*{word}"]
    lines = ["part = high_i128(mul_u64_i128(hash_combine(hash, seed), parts))"]
    if own:
        parameters += ["s0:*i64", "own_hashes:i64", "own_part:i64"]
        lines += [
            "low = i64(0)",
            "high = own_hashes",
            "while lt_i64(low, high):",
            "    middle = shr_i64(add_i64(low, high), 1)",
            "    found = i64(s0[row_index(middle)])",
            "    if eq_i64(found, hash):",
            "        part = own_part",
            "    if lt_i64(found, hash):",
            "        low = add_i64(middle, 1)",
            "    else:",
            "        high = middle",
        ]
    return parameters, [*lines, f"store_{word}(labels, i64(i), part)"]


_entries: WeakKeyDictionary[Dictionary, Buffer] = WeakKeyDictionary()


def entry_hashes(dictionary: Dictionary) -> Buffer:
    """The hash of each entry of a dictionary, as that of a row with its text."""
    known = _entries.get(dictionary)
    if known is None:
        values = dictionary.values
        offsets, characters = Buffer(offsets_of(values).astype(np.int64)), Buffer(characters_of(values))
        text = ColumnData(VARCHAR, PhysicalType.STRING64, len(values), offsets, None, characters)
        known = _entries[dictionary] = Buffer(hash_rows([text], len(values), cpu_device()))
    return known


def kernel_for(keys: Sequence[ColumnData], stored: StoredWord = "u8") -> Kernel:
    """The kernel that such keys are hashed by, so that it can be compiled where there is no GPU."""
    return _kernel(tuple([key_shape(k) for k in keys]), stored, False).kernel
