"""The kernels of `io.pages`: chunks of Parquet into a column's values or words, the texts of a dictionary taken apart,
some of the words picked, and what a footer tells of chunks."""

from __future__ import annotations

from typing import cast

import numpy as np

from gquery.columns.page_values import CHUNK_WORDS, PageKernels, Room, TextRoom, use_page_kernels
from gquery.device.array import Array
from gquery.device.host import address_of
from gquery.kernels.builtin.define import builtin_kernel
from gquery.kernels.primitives import footers, pages
from gquery.kernels.targets import get_target
from gquery.kernels.targets.base import Compiled, MorselTarget, arguments_of

_BLOCK = (  # words into values of one size, and their extremes
    "while lt_i64(k, end):",
    "    v = load_i64(words, k)",
    "    least = min_i64(least, v)",
    "    most = max_i64(most, v)",
    "    store_{type}({name}, add_i64(before, k), v)",
    "    k = add_i64(k, 1)",
)
_NULLABLE_BLOCK = (  # the same of values that may be NULL, and their flags
    "while lt_i64(k, end):",
    "    v, ok = load_i64(words, k), load_u8(add_i64(flags, k))",
    "    if eq_i64(ok, 1):",
    "        least = min_i64(least, v)",
    "        most = max_i64(most, v)",
    "    store_{type}({name}, add_i64(before, k), v)",
    "    store_u8(valid, add_i64(before, k), ok)",
    "    k = add_i64(k, 1)",
)
_OFFSETS = (  # lengths of texts into offsets, whose size is told below 0, and flags
    "while lt_i64(k, end):",
    "    total = add_i64(total, load_i64(words, k))",
    "    store_{type}({name}, add_i64(add_i64(before, k), 1), total)",
    "    if eq_i64(nullable, 1):",
    "        store_u8(valid, add_i64(before, k), load_u8(add_i64(flags, k)))",
    "    k = add_i64(k, 1)",
)
_VALUES = {"u8": "bytes", "u16": "shorts", "u32": "ints", "i64": "longs"}

READ = builtin_kernel(
    "state:*i64 words:*i64 size:i64 bytes:*u8 shorts:*u16 ints:*u32 longs:*i64 valid:*u8 "
    "low:*i64 high:*i64 block:i64 skip:i64 outcome:*i64",
    f"row = load_i64(state, {pages.ROW})",
    "place = div_i64(add_i64(row, skip), block)",
    f"flags, nullable = load_i64(state, {pages.FLAGS}), load_i64(state, {pages.IS_NULLABLE})",
    f"total, stop = load_i64(state, {pages.TEXT_USED}), load_i64(state, {pages.STOP})",
    "result, going = i64(0), i64(1)",
    "while eq_i64(going, 1):",
    "    result, going = read_chunks(state), i64(0)",
    f"    count, k = load_i64(state, {pages.MADE}), i64(0)",
    "    if ne_i64(size, 0):",
    "        while lt_i64(k, count):",
    "            before = sub_i64(row, k)",
    "            behind = sub_i64(mul_i64(add_i64(place, 1), block), skip)",
    "            end = min_i64(count, sub_i64(behind, before))",
    "            least, most = load_i64(low, place), load_i64(high, place)",
    *(
        "            " + line
        for type_, name in _VALUES.items()
        for line in (
            f"if eq_i64(size, {int(type_[1:]) // 8}):",
            "    if eq_i64(nullable, 0):",
            *("        " + each.format(type=type_, name=name) for each in _BLOCK),
            *("    " + each.format(type=type_, name=name) for each in _NULLABLE_BLOCK),
        )
    ),
    *(
        "            " + line
        for type_ in ("u32", "i64")
        for line in (
            f"if eq_i64(size, {-int(type_[1:]) // 8}):",
            *("    " + each.format(type=type_, name=_VALUES[type_]) for each in _OFFSETS),
        )
    ),
    "            store_i64(low, place, least)",
    "            store_i64(high, place, most)",
    "            row = add_i64(before, end)",
    "            k = i64(end)",
    "            if eq_i64(row, behind):",
    "                place = add_i64(place, 1)",
    f"        if eq_i64(result, {pages.MORE_ROOM}) and gt_i64(count, 0) and lt_i64(row, stop):",
    "            going = i64(1)",
    f"store_i64(state, {pages.ROW}, row)",
    "store_i64(outcome, i64(i), result)",
)
TEXTS = builtin_kernel(
    "source:i64 size:i64 count:i64 offsets:i64 characters:i64 found:*i64",
    "store_i64(found, i64(i), from_bool(text_entries(source, size, count, offsets, characters, 0)))",
)
PICK = builtin_kernel(
    "words:i64 count:i64 bits:i64 first:i64 found:*i64",
    "store_i64(found, i64(i), pick_words(words, count, bits, first))",
)
FOOTER = builtin_kernel("state:*i64 found:*i64", "store_i64(found, i64(i), from_bool(read_footer(state)))")
KERNELS = (READ, TEXTS, PICK, FOOTER)


def _empty(type_: str) -> Array:
    return np.empty(0, f"{type_[0]}{int(type_[1:]) // 8}")


_NO_VALUES: dict[int, Array] = {array.itemsize: array for array in map(_empty, _VALUES)}
_NO_FLAGS = np.empty(0, np.uint8)
_asked: set[str] = set()  # digests of kernels that are being compiled
_found: list[_Kernels] = []  # once they are there: who reads asks for them at each piece


class _Kernels:
    """The kernels, compiled."""

    def __init__(self, read: Compiled, texts: Compiled, pick: Compiled, footer: Compiled) -> None:
        self._read, self._texts, self._pick, self._footer = read, texts, pick, footer

    def read_chunks(self, state: Array, words: Array, room: Room | TextRoom | None) -> int:
        outcome = np.zeros(1, np.int64)
        _run(self._read, *read_arguments(state, words, room, outcome))
        return int(outcome[0])

    def texts(self, source: Array, size: int, offsets: Array, characters: Array) -> bool:
        found, count = np.zeros(1, np.int64), len(offsets) - 1
        _run(self._texts, address_of(source), size, count, address_of(offsets), address_of(characters), found)
        return bool(found[0])

    def pick(self, words: Array, bits: Array, first: int) -> int:
        found = np.zeros(1, np.int64)
        _run(self._pick, address_of(words), len(words), address_of(bits), first, found)
        return int(found[0])

    def footer(self, raw: Array, groups: int, columns: int) -> Array | None:
        state, made = footer_state(raw, groups, columns)
        found = np.zeros(1, np.int64)
        _run(self._footer, state, found)
        return footer_words(state, made) if found[0] else None


def footer_state(raw: Array, groups: int, columns: int) -> tuple[Array, Array]:
    """The state from which `FOOTER` reads a footer of so many row groups of so many columns, and where it writes."""
    made, state = np.full((groups, columns, len(CHUNK_WORDS)), -1, np.int64), np.zeros(footers.STATE, np.int64)
    state[footers.SOURCE], state[footers.END] = address_of(raw), address_of(raw) + len(raw)
    state[footers.TABLE], state[footers.MADE] = address_of(_TABLE), address_of(made)
    state[footers.ROOM], state[footers.COLUMNS], state[footers.WORDS] = groups * columns, columns, len(CHUNK_WORDS)
    return state, made


def footer_words(state: Array, made: Array) -> Array | None:
    """What a footer told, if it did of all chunks; nothing of values where it does not say that they have the order of their
    type, as old files do not: what such writers counted is looked at by others."""
    groups, columns, _ = made.shape
    if (state[footers.GROUPS], state[footers.CHUNKS]) != (groups, groups * columns):
        return None
    if state[footers.ORDERS] != columns:
        made[:, :, CHUNK_WORDS.index("nulls") : CHUNK_WORDS.index("text_bytes")] = -1
    return made


def _table() -> Array:
    """Which fields of a footer's structs are wanted; see `kernels.primitives.footers`."""
    table = np.zeros((footers.KINDS, footers.FIELDS), np.int64)
    for struct, fields in footers.WANTED.items():
        for number, (what, detail) in fields.items():
            table[struct, number] = what + ((CHUNK_WORDS.index(detail) if isinstance(detail, str) else detail) << footers.DETAIL)
    return table


_TABLE = _table()


def read_arguments(state: Array, words: Array, room: Room | TextRoom | None, outcome: Array) -> tuple[int | Array, ...]:
    """The values of `READ`'s parameters."""
    if room is None:
        return (state, words, 0, *_NO_VALUES.values(), _NO_FLAGS, state, state, 1, 0, outcome)
    values = room.offsets if isinstance(room, TextRoom) else room.values
    size, valid = values.itemsize, _NO_FLAGS if room.valid is None else room.valid
    made = _NO_VALUES | {size: values.view(_NO_VALUES[size].dtype)}
    if isinstance(room, TextRoom):  # one block
        return (state, words, -size, *made.values(), valid, state, state, len(values), 0, outcome)
    return (state, words, size, *made.values(), valid, room.low, room.high, room.block, room.skip, outcome)


def _run(compiled: Compiled, *values: int | Array) -> None:
    target = get_target("cpu")
    target.run(compiled, 0, 1, arguments_of(target, compiled.kernel, values))


def find_kernels() -> PageKernels | None:
    """The kernels, if they are compiled; else they will be, in the background."""
    if not _found and (made := _compiled()) is not None:
        _found.append(made)
    return _found[0] if _found else None


def _compiled() -> _Kernels | None:
    target = cast(MorselTarget, get_target("cpu"))
    kernels = [each.kernel for each in KERNELS]
    missing = [k for k in kernels if not target.is_ready(k) and not target.is_cached(k)]
    if missing:
        new = [k for k in missing if k.digest not in _asked]
        _asked.update(k.digest for k in new)
        if new:
            target.compile_in_background(new)
        return None
    return _Kernels(*map(target.compile, kernels))


use_page_kernels(find_kernels)
