"""Text scan: the rows whose text is LIKE a pattern, found in the characters of the whole column.

Row by row, neighbouring threads of a GPU read places that are a text apart, and wait for whoever has the longest text. Here
they read neighbouring words of the characters, whatever row these belong to:

    characters   ...ly final requests.|the special deposits haggle|carefully even...      | marks where rows begin
    threads      01234567 01234567 0...
    marks        00000000 00100000 0...                                                   a bit a word

1. *Mark*: a thread takes every 32nd word of 8 KiB of text and compares the aligned units of it with the few units that a part of
   the pattern can have at an aligned place. A word that has one is marked in a bitmap of words.
2. *Candidates*: a thread takes a row, and looks for a mark among its words. No text is read, and nothing is searched.
3. *Verify*: the whole pattern is tested on the rows that have one. A thread goes from one candidate to the next, so that its
   neighbours have some to test at the same time.

Two *windows*, runs of a few bytes of the parts, are looked for at once, each with a bitmap of its own: the text is read once, and
a candidate has marks of both. Which ones, a sample of the rows decides: those that the fewest rows have units of. Where too many
rows have, every row is tested by itself. All of that happens on the device: nobody waits for a number, and the launches can be
recorded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from gquery import tuning
from gquery.columns.table import ColumnData
from gquery.device.array import Array
from gquery.device.device import Device
from gquery.expression.facts import BITMAP_BITS
from gquery.expression.types import PhysicalType
from gquery.kernels.builtin.define import BuiltinKernel, address, builtin_kernel, launch
from gquery.kernels.kernel import Kernel
from gquery.kernels.patterns import KEY_WORDS, PackedPattern, ScannedPattern
from gquery.runtime.tuples import NamedTuple

_THREADS = 32  # that take a tile together
_WORD = 8  # bytes that a thread reads at once
_STRIDE = _THREADS * _WORD
_WORDS = 32  # that a thread takes of a tile
_TILE = _THREADS * _WORDS * _WORD  # bytes
_AT_ONCE = 4  # words, or rows' marks, that are read before the first is looked at
_ROWS_A_THREAD = 256  # of which one thread tests those that are candidates: enough of them to keep its neighbours busy
_MOST_WINDOWS = 2  # of a pattern that are looked for at once
_LOW = 2**32 - 1
_STRINGS = (
    (PhysicalType.STRING32, "i32", "string32"),
    (PhysicalType.STRING64, "i64", "string64"),
)
_TEXTS = "offsets:*{element} characters:i64"

# of 16-bit units in a word: 1 in each, the top bit of each
_ONES, _TOPS = 0x0001000100010001, 0x8000800080008000 - 2**64
_UNITS = (4, 2)  # bytes
_BELOW = "sub_i64(and_i64({hits}, sub_i64(0, {hits})), 1)"  # the bits below the lowest of the hits


def _holds_unit(word: str, unit: int, window: int) -> tuple[tuple[str, ...], str]:
    """Lines, and a condition behind them: whether a word holds a unit of a window."""
    if unit == 4:
        keys = [f"key{window}_{k}" for k in range(4)]
        return (f"low = {word}", f"high = shr_u64({word}, 32)"), " or ".join(
            f"eq_u32({half}, {key})" for half in ("low", "high") for key in keys
        )
    split = tuple(
        f"{half} = xor_i64({word}, mul_i64(key{window}_{k}, {_ONES}))" for k, half in enumerate(("low", "high"))
    )
    zeros = [f"and_i64(sub_i64({half}, {_ONES}), xor_i64({half}, -1))" for half in ("low", "high")]
    return split, f"ne_i64(and_i64(or_i64({zeros[0]}, {zeros[1]}), {_TOPS}), 0)"


def _indented(lines: tuple[str, ...], levels: int) -> list[str]:
    return ["    " * levels + line for line in lines]


def _marks(element: str, unit: int, windows: int) -> BuiltinKernel:
    """For thread ``i``: its words of tile ``i // 32``, the first of which has the first character. The bitmaps of two windows
    take turns, 32 bits of one and 32 of the other."""
    loop = [f"word{n} = load_word(min_i64(add_i64(at, {n * _STRIDE}), last))" for n in range(_AT_ONCE)]
    for w in range(windows):
        loop.append("found = i64(0)")
        for n in range(_AT_ONCE):
            lines, holds = _holds_unit(f"word{n}", unit, w)
            loop += [*lines, f"found = or_i64(found, i64({1 << n}) if {holds} else i64(0))"]
        loop.append(f"hits{w} = or_i64(hits{w}, shl_i64(found, n))")
    loop += [f"n = add_i64(n, {_AT_ONCE})", f"at = add_i64(at, {_AT_ONCE * _STRIDE})"]
    body = [
        "if ne_i64(runs, 0):",
        f"    place = add_i64(mul_i64(shr_i64(i64(i), 5), {_THREADS * _WORDS}), and_i64(i64(i), 31))",
        "    at = add_i64(begin, shl_i64(place, 3))",
        *(f"    hits{w} = i64(0)" for w in range(windows)),
        "    n = i64(0)",
        f"    while lt_i64(n, {_WORDS}) and le_i64(at, last):",
        *_indented(tuple(loop), 2),
    ]
    for w in range(windows):
        hits = f"hits{w}"
        at = "shr_i64(word, 5)" if windows == 1 else f"or_i64(shl_i64(shr_i64(word, 5), 1), {w})"
        body += [
            f"    while ne_i64({hits}, 0):",
            f"        word = add_i64(place, mul_i64(popcount({_BELOW.format(hits=hits)}), {_THREADS}))",
            f"        {hits} = and_i64({hits}, sub_i64({hits}, 1))",
            "        if le_i64(add_i64(begin, shl_i64(word, 3)), last):",
            f"            atomic_or_u32(marked, {at}, shl_i64(1, and_i64(word, 31)))",
        ]
    prologue = (
        "runs = load_i64(chosen, 0)",
        *(f"key{p}_{k} = load_i64(chosen, {1 + p * KEY_WORDS + k})" for p in range(windows) for k in range(unit)),
        "begin = and_i64(add_i64(characters, i64(offsets[row_index(0)])), -8)",
        "last = and_i64(sub_i64(add_i64(characters, i64(offsets[row_index(rows)])), 1), -8)",
    )
    parameters = _TEXTS.format(element=element) + " rows:i64 chosen:*i64 marked:*u32"
    return builtin_kernel(parameters, *body, prologue=prologue)


MARKS = {
    (type_, unit, windows): _marks(element, unit, windows)
    for type_, element, _ in _STRINGS
    for unit in _UNITS
    for windows in (1, _MOST_WINDOWS)
}


def _candidates(element: str, windows: int) -> BuiltinKernel:
    """For thread ``i``: which of its rows have a mark of each window among their words. It takes several rows, every 32nd: what
    all of them load comes first, so that the loads wait together. Of a row without bytes one is looked at, which does no harm."""
    word, load, both = ("u32", "load_u32", 1) if windows == 1 else ("i64", "load_i64", 2**32 + 1)
    lines = [f"first = add_i64(mul_i64(shr_i64(i64(i), 5), {_THREADS * _AT_ONCE}), and_i64(i64(i), 31))"]
    for k in range(_AT_ONCE):
        lines += [
            f"row{k} = min_i64(add_i64(first, {_THREADS * k}), sub_i64(rows, 1))",
            f"start{k} = add_i64(i64(offsets[row_index(row{k})]), shift)",
        ]
    for k in range(_AT_ONCE):
        behind = f"add_i64(i64(offsets[row_index(add_i64(row{k}, 1))]), shift)"
        lines.append(f"final{k} = max_i64(sub_i64({behind}, 1), start{k})")
    for k in range(_AT_ONCE):
        lines += [f"low{k} = {load}(marked, shr_i64(start{k}, 8))", f"high{k} = {load}(marked, shr_i64(final{k}, 8))"]
    for k in range(_AT_ONCE):
        from_first = f"and_i64(shl_i64(-1, and_i64(shr_i64(start{k}, 3), 31)), {_LOW})"
        to_last = f"sub_i64(shl_i64(2, and_i64(shr_i64(final{k}, 3), 31)), 1)"
        lines += [
            f"low = and_i64(low{k}, mul_i64({from_first}, {both}))",
            f"high = and_i64(high{k}, mul_i64({to_last}, {both}))",
            f"at = shr_i64(start{k}, 8)",
            "found = and_i64(low, high)",
            f"if lt_i64(at, shr_i64(final{k}, 8)):",
            "    found = or_i64(low, high)",
            "    at = add_i64(at, 1)",
            f"    while lt_i64(at, shr_i64(final{k}, 8)):",
            f"        found = or_i64(found, {load}(marked, at))",
            "        at = add_i64(at, 1)",
            "if ne_i64(found, 0):"
            if windows == 1
            else f"if ne_i64(and_i64(found, {_LOW}), 0) and ne_i64(shr_u64(found, 32), 0):",
            f"    atomic_or_u32(bits, shr_i64(row{k}, 5), shl_i64(1, and_i64(row{k}, 31)))",
        ]
    return builtin_kernel(
        _TEXTS.format(element=element) + f" rows:i64 chosen:*i64 marked:*{word} bits:*u32",
        "if ne_i64(runs, 0):",
        *_indented(tuple(lines), 1),
        prologue=(
            "runs = load_i64(chosen, 0)",
            "shift = sub_i64(characters, and_i64(add_i64(characters, i64(offsets[row_index(0)])), -8))",
        ),
    )


_CANDIDATES = {
    (type_, windows): _candidates(element, windows) for type_, element, _ in _STRINGS for windows in (1, _MOST_WINDOWS)
}


def _sample(element: str, string: str, unit: int) -> BuiltinKernel:
    """Counts those of some rows, one in each stretch of ``stride`` rows, that have units of two windows of the pattern, for each
    pair of windows; of the one, if there is one."""
    lines, holds = _holds_unit("word", unit, 0)
    return builtin_kernel(
        _TEXTS.format(element=element) + " stride:i64 longest:i64 keys:*i64 windows:i64 counts:*i64",
        f"text = {string}(offsets, characters, add_i64(mul_i64(i64(i), stride), mod_u64(hash_i64(i64(i)), stride)))",
        "last = add_i64(str_address(text), sub_i64(min_i64(str_bytes(text), longest), 1))",
        "held = i64(0)",
        "window = i64(0)",
        "while lt_i64(window, windows):",
        f"    key = mul_i64(window, {KEY_WORDS})",
        *(f"    key0_{k} = load_i64(keys, add_i64(key, {k}))" for k in range(unit)),
        "    at = and_i64(str_address(text), -8)",
        "    found = i64(0)",
        "    while eq_i64(found, 0) and le_i64(at, last):",
        "        word = load_word(at)",
        *_indented(lines, 2),
        f"        found = i64(1) if {holds} else i64(0)",
        "        at = add_i64(at, 8)",
        "    held = or_i64(held, shl_i64(found, window))",
        "    window = add_i64(window, 1)",
        *_each_pair(
            "both = or_i64(shl_i64(1, first), shl_i64(1, second))",
            "if eq_i64(and_i64(held, both), both):",
            "    atomic_add_i64(counts, add_i64(mul_i64(first, windows), second), 1)",
        ),
    )


def _each_pair(*lines: str) -> tuple[str, ...]:
    """Lines for each pair of windows, ``first`` and ``second``: of a single one for itself."""
    return (
        "first = i64(0)",
        "while lt_i64(first, max_i64(sub_i64(windows, 1), 1)):",
        "    second = min_i64(add_i64(first, 1), sub_i64(windows, 1))",
        "    while lt_i64(second, windows):",
        *_indented(lines, 2),
        "        second = add_i64(second, 1)",
        "    first = add_i64(first, 1)",
    )


_SAMPLES = {(type_, unit): _sample(element, string, unit) for type_, element, string in _STRINGS for unit in _UNITS}


_CHOOSE = builtin_kernel(
    "keys:*i64 windows:i64 counts:*i64 most:i64 chosen:*i64",
    "least = add_i64(most, 1)",
    *_each_pair(
        "count = load_i64(counts, add_i64(mul_i64(first, windows), second))",
        "if lt_i64(count, least):",
        "    least = count",
        "    store_i64(chosen, 0, i64(1))",
        "    n = i64(0)",
        f"    while lt_i64(n, {KEY_WORDS}):",
        f"        store_i64(chosen, add_i64(n, 1), load_i64(keys, add_i64(mul_i64(first, {KEY_WORDS}), n)))",
        f"        store_i64(chosen, add_i64(n, {1 + KEY_WORDS}), load_i64(keys, add_i64(mul_i64(second, {KEY_WORDS}), n)))",
        "        n = add_i64(n, 1)",
    ),
)

_PATTERN = " chosen:*i64 numbers:*i64 parts:*i64 needles:i64 bits:*u32"
_PIECES = (
    "runs = load_i64(chosen, 0)",
    "stop = load_i64(numbers, 0)",
    "begin = load_i64(numbers, 1)",
    "middle = load_i64(numbers, 2)",
    "end = load_i64(numbers, 3)",
    "first = make_str(needles, begin)",
    "between = make_str(add_i64(needles, begin), middle)",
    "final = make_str(add_i64(add_i64(needles, begin), middle), end)",
)
_MATCHES = "str_has_parts(str_inside({string}(offsets, characters, {row}), first, final), parts, stop, between)"

# a thread has words of the bitmap of its own
_VERIFY = {
    type_: builtin_kernel(
        _TEXTS.format(element=element) + " rows:i64" + _PATTERN,
        "if ne_i64(runs, 0):",
        f"    row = mul_i64(i64(i), {_ROWS_A_THREAD})",
        f"    beyond = min_i64(add_i64(row, {_ROWS_A_THREAD}), rows)",
        "    while lt_i64(row, beyond):",
        "        left = i64(0)",
        "        while eq_i64(left, 0) and lt_i64(row, beyond):",
        "            left = shr_u64(load_u32(bits, shr_i64(row, 5)), and_i64(row, 31))",
        "            if eq_i64(left, 0):",
        "                row = add_i64(or_i64(row, 31), 1)",
        "        if lt_i64(row, beyond):",
        "            row = add_i64(row, popcount(sub_i64(and_i64(left, sub_i64(0, left)), 1)))",
        "            if not " + _MATCHES.format(string=string, row="row") + ":",
        "                others = xor_i64(shl_i64(1, and_i64(row, 31)), -1)",
        "                kept = and_i64(load_u32(bits, shr_i64(row, 5)), others)",
        "                store_u32(bits, shr_i64(row, 5), kept)",
        "            row = add_i64(row, 1)",
        prologue=_PIECES,
    )
    for type_, element, string in _STRINGS
}

_EACH_ROW = {
    type_: builtin_kernel(
        _TEXTS.format(element=element) + _PATTERN,
        "if eq_i64(runs, 0):",
        "    if " + _MATCHES.format(string=string, row="i64(i)") + ":",
        "        bit_set(bits, i64(i))",
        prologue=_PIECES,
    )
    for type_, element, string in _STRINGS
}


def matching_rows(
    column: ColumnData, pattern: ScannedPattern, packed: Array, device: Device, context: str = ""
) -> Array:
    """The bitmap (uint32, on ``device``) of the rows whose text matches; bits of rows that are NULL mean nothing. The column has
    offsets, and at most 2^32 rows less some. ``packed`` is what `ScannedPattern.packed` gives, there: all that depends on more
    of the pattern than `ScannedPattern.is_like` compares."""
    bits = device.zeros(max(1, -(-column.length // BITMAP_BITS)), "uint32", context)
    if column.length:
        characters, size = 0, 0
        if column.characters is not None:
            characters, size = address(column.characters.on(device, context)), column.characters.nbytes
        texts = Texts(column.physical_type, column.length, column.data.on(device, context), characters, size)
        mark_matches(texts, pattern, packed, bits, device, context)
    return bits


class Texts(NamedTuple):
    """Texts on a device: the type of their offsets and how many there are; where character 0 is, which need not be theirs, and
    how many bytes they have at most."""

    physical_type: PhysicalType
    rows: int
    offsets: Array
    characters: int
    size: int


def mark_matches(
    column: Texts, pattern: ScannedPattern, packed: Array, bits: Array, device: Device, context: str = ""
) -> None:
    """Set the bits of the texts that match, in a bitmap of zeros; see `matching_rows`."""
    rows, limits, type_, size = column.rows, tuning.text_scans, column.physical_type, column.size
    texts = column.offsets, column.characters
    places = PackedPattern(pattern)
    keys, parts = packed[places.keys : places.parts], packed[places.parts : places.needles]
    counts, chosen = device.zeros(pattern.windows**2, "int64"), device.zeros(1 + _MOST_WINDOWS * KEY_WORDS, "int64")
    sampled = min(rows, limits.sampled_rows)
    stride, longest, windows = rows // sampled, limits.sampled_bytes, pattern.windows
    launch(_SAMPLES[type_, pattern.unit], sampled, bits, *texts, stride, longest, keys, windows, counts)
    launch(_CHOOSE, 1, bits, keys, windows, counts, int(limits.most_frequent * sampled), chosen)
    # the first character may lie anywhere in its word
    tiles, together = -(-(size + _WORD) // _TILE), windows_at_once(pattern)
    marks = device.zeros(together * tiles * _THREADS * _WORDS // BITMAP_BITS, "uint32", context)
    launch(MARKS[type_, pattern.unit, together], _THREADS * tiles, bits, *texts, rows, chosen, marks)
    found = marks if together == 1 else marks.view("int64")
    threads = _THREADS * -(-rows // (_THREADS * _AT_ONCE))
    launch(_CANDIDATES[type_, together], threads, bits, *texts, rows, chosen, found, bits)
    pieces = chosen, packed[: places.keys], parts, address(packed[places.needles :]), bits
    launch(_VERIFY[type_], -(-rows // _ROWS_A_THREAD), bits, *texts, rows, *pieces)
    launch(_EACH_ROW[type_], rows, bits, *texts, *pieces)


def windows_at_once(pattern: ScannedPattern) -> int:
    """How many windows of a pattern are looked for at once."""
    return min(pattern.windows, _MOST_WINDOWS)


def scan_kernels(type_: PhysicalType, pattern: ScannedPattern) -> list[Kernel]:
    """The kernels that `matching_rows` runs for a column of such a physical type."""
    unit, together = pattern.unit, windows_at_once(pattern)
    needed = [_SAMPLES[type_, unit], _CHOOSE, MARKS[type_, unit, together], _CANDIDATES[type_, together]]
    return [builtin.kernel for builtin in (*needed, _VERIFY[type_], _EACH_ROW[type_])]


def scans_of_other_patterns(needed: Collection[Kernel]) -> Iterator[Kernel]:
    """The kernels that are not among those ``needed``, but run where such texts are scanned for patterns of other lengths."""
    for type_, _, _ in _STRINGS:
        if _EACH_ROW[type_].kernel in needed:
            for builtins in (_SAMPLES, MARKS, _CANDIDATES):
                of_type = (builtin.kernel for key, builtin in builtins.items() if key[0] is type_)
                yield from (kernel for kernel in of_type if kernel not in needed)
