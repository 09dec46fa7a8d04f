"""Text scan: the rows whose text is LIKE a pattern, found in the characters of the whole column.

Row by row, neighbouring threads of a GPU read places that are a text apart, and wait for whoever has the longest text. Here
they read neighbouring words of the characters, whatever row these belong to:

    characters   ...ly final requests.|the special deposits haggle|carefully even...      | marks where rows begin
    threads      01234567 01234567 0...
    marks        00000000 00100000 0...                                                   a bit a word

1. *Mark*: a thread takes every 32nd word of 8 KiB of text and compares the aligned units of it with the few units that a part of
   the pattern has at an aligned place. A word that has one is marked in a bitmap of words.
2. *Candidates*: a thread takes a row, and looks for a mark among its words. No text is read, and nothing is searched.
3. *Verify*: the whole pattern is tested on the rows that have one. A thread goes from one candidate to the next, so that its
   neighbours have some to test at the same time.

Which part is looked for, a sample of the rows decides: the one of which the fewest rows are candidates. Where too many are, every
row is tested by itself. All of that happens on the device, so that nobody waits for a number, and the launches can be recorded.
"""

from __future__ import annotations

from gquery import tuning
from gquery.columns.table import ColumnData
from gquery.device.array import Array
from gquery.device.device import Device
from gquery.expression.facts import BITMAP_BITS
from gquery.expression.types import PhysicalType
from gquery.kernels.builtin.define import BuiltinKernel, address, builtin_kernel, launch
from gquery.kernels.kernel import Kernel
from gquery.kernels.patterns import KEY_WORDS, ScannedPattern

_THREADS = 32  # that take a tile together
_WORD = 8  # bytes that a thread reads at once
_STRIDE = _THREADS * _WORD
_WORDS = 32  # that a thread takes of a tile
_TILE = _THREADS * _WORDS * _WORD  # bytes
_AT_ONCE = 4  # words that are read before the first is looked at
_ROWS_A_THREAD = 256  # of which one thread tests those that are candidates: enough of them to keep its neighbours busy
_STRINGS = (
    (PhysicalType.STRING32, "i32", "string32"),
    (PhysicalType.STRING64, "i64", "string64"),
)
_TEXTS = "offsets:*{element} characters:i64"

# of 16-bit units in a word: 1 in each, the top bit of each
_ONES, _TOPS = 0x0001000100010001, 0x8000800080008000 - 2**64
_HOLDS_UNIT = {
    4: "eq_u32(low, key0) or eq_u32(low, key1) or eq_u32(low, key2) or eq_u32(low, key3)"
    " or eq_u32(high, key0) or eq_u32(high, key1) or eq_u32(high, key2) or eq_u32(high, key3)",
    2: f"ne_i64(and_i64(or_i64(and_i64(sub_i64(low, {_ONES}), xor_i64(low, -1)),"
    f" and_i64(sub_i64(high, {_ONES}), xor_i64(high, -1))), {_TOPS}), 0)",
}
_BELOW = "sub_i64(and_i64(hits, sub_i64(0, hits)), 1)"  # the bits below the lowest of the hits
_SPLIT = {
    4: ("low = word{n}", "high = shr_u64(word{n}, 32)"),
    2: (f"low = xor_i64(word{{n}}, mul_i64(key0, {_ONES}))", f"high = xor_i64(word{{n}}, mul_i64(key1, {_ONES}))"),
}


def _indented(lines: tuple[str, ...], levels: int) -> list[str]:
    return ["    " * levels + line for line in lines]


def _marks(element: str, unit: int) -> BuiltinKernel:
    """For thread ``i``: its words of tile ``i // 32``, the first of which has the first character."""
    loop: list[str] = []
    for n in range(_AT_ONCE):
        loop.append(f"word{n} = load_word(min_i64(add_i64(at, {n * _STRIDE}), last))")
    loop.append("found = i64(0)")
    for n in range(_AT_ONCE):
        loop += [line.format(n=n) for line in _SPLIT[unit]]
        loop.append(f"found = or_i64(found, i64({1 << n}) if {_HOLDS_UNIT[unit]} else i64(0))")
    loop += [
        "hits = or_i64(hits, shl_i64(found, n))",
        f"n = add_i64(n, {_AT_ONCE})",
        f"at = add_i64(at, {_AT_ONCE * _STRIDE})",
    ]
    body = [
        "if ne_i64(runs, 0):",
        f"    place = add_i64(mul_i64(shr_i64(i64(i), 5), {_THREADS * _WORDS}), and_i64(i64(i), 31))",
        "    at = add_i64(begin, shl_i64(place, 3))",
        "    hits = i64(0)",
        "    n = i64(0)",
        f"    while lt_i64(n, {_WORDS}) and le_i64(at, last):",
        *_indented(tuple(loop), 2),
        "    while ne_i64(hits, 0):",
        f"        word = add_i64(place, mul_i64(popcount({_BELOW}), {_THREADS}))",
        "        hits = and_i64(hits, sub_i64(hits, 1))",
        "        if le_i64(add_i64(begin, shl_i64(word, 3)), last):",
        "            atomic_or_u32(marks, shr_i64(word, 5), shl_i64(1, and_i64(word, 31)))",
    ]
    prologue = (
        "runs = load_i64(chosen, 0)",
        *(f"key{k} = load_i64(chosen, {3 + k})" for k in range(unit)),
        "begin = and_i64(add_i64(characters, i64(offsets[row_index(0)])), -8)",
        "last = and_i64(sub_i64(add_i64(characters, i64(offsets[row_index(rows)])), 1), -8)",
    )
    parameters = _TEXTS.format(element=element) + " rows:i64 chosen:*i64 marks:*u32"
    return builtin_kernel(parameters, *body, prologue=prologue)


MARKS = {(type_, unit): _marks(element, unit) for type_, element, _ in _STRINGS for unit in _HOLDS_UNIT}

_CANDIDATES = {
    type_: builtin_kernel(
        _TEXTS.format(element=element) + " chosen:*i64 marks:*u32 bits:*u32",
        "v0 = i64(offsets[i])",
        "if ne_i64(runs, 0):",
        "    start = sub_i64(add_i64(characters, v0), begin)",
        "    stop = sub_i64(add_i64(characters, i64(offsets[next_index(i)])), begin)",
        "    if lt_i64(start, stop):",
        "        at = shr_i64(start, 8)",
        "        beyond = shr_i64(sub_i64(stop, 1), 8)",
        "        found = and_i64(load_u32(marks, at), shl_i64(-1, and_i64(shr_i64(start, 3), 31)))",
        "        while eq_i64(found, 0) and lt_i64(at, beyond):",
        "            at = add_i64(at, 1)",
        "            found = load_u32(marks, at)",
        "        if eq_i64(at, beyond):",
        "            found = and_i64(found, sub_i64(shl_i64(2, and_i64(shr_i64(sub_i64(stop, 1), 3), 31)), 1))",
        "        if ne_i64(found, 0):",
        "            atomic_or_u32(bits, shr_i64(i64(i), 5), shl_i64(1, and_i64(i64(i), 31)))",
        hoisted=("v0",),
        prologue=(
            "runs = load_i64(chosen, 0)",
            "begin = and_i64(add_i64(characters, i64(offsets[row_index(0)])), -8)",
        ),
    )
    for type_, element, _ in _STRINGS
}


def _sample(element: str, string: str, unit: int) -> BuiltinKernel:
    """Counts the candidates among some rows, one in each stretch of ``stride`` rows, for each part of the pattern."""
    return builtin_kernel(
        _TEXTS.format(element=element) + " stride:i64 longest:i64 keys:*i64 candidates:i64 counts:*i64",
        f"text = {string}(offsets, characters, add_i64(mul_i64(i64(i), stride), mod_u64(hash_i64(i64(i)), stride)))",
        "last = add_i64(str_address(text), sub_i64(min_i64(str_bytes(text), longest), 1))",
        "part = i64(0)",
        "while lt_i64(part, candidates):",
        f"    key = mul_i64(part, {KEY_WORDS})",
        *(f"    key{k} = load_i64(keys, add_i64(key, {2 + k}))" for k in range(unit)),
        "    at = and_i64(str_address(text), -8)",
        "    found = i64(0)",
        "    while eq_i64(found, 0) and le_i64(at, last):",
        "        word = load_word(at)",
        *_indented(tuple(line.format(n="") for line in _SPLIT[unit]), 2),
        f"        found = i64(1) if {_HOLDS_UNIT[unit]} else i64(0)",
        "        at = add_i64(at, 8)",
        "    if ne_i64(found, 0):",
        "        atomic_add_i64(counts, part, 1)",
        "    part = add_i64(part, 1)",
    )


_SAMPLES = {
    (type_, unit): _sample(element, string, unit) for type_, element, string in _STRINGS for unit in _HOLDS_UNIT
}

_CHOOSE = builtin_kernel(
    "keys:*i64 candidates:i64 counts:*i64 most:i64 chosen:*i64",
    "best = i64(-1)",
    "least = add_i64(most, 1)",
    "part = i64(0)",
    "while lt_i64(part, candidates):",
    "    if lt_i64(load_i64(counts, part), least):",
    "        least = load_i64(counts, part)",
    "        best = part",
    "    part = add_i64(part, 1)",
    "if ge_i64(best, 0):",
    "    store_i64(chosen, 0, i64(1))",
    "    part = i64(0)",
    f"    while lt_i64(part, {KEY_WORDS}):",
    f"        store_i64(chosen, add_i64(part, 1), load_i64(keys, add_i64(mul_i64(best, {KEY_WORDS}), part)))",
    "        part = add_i64(part, 1)",
)

_PATTERN = " chosen:*i64 parts:*i64 stop:i64 needles:i64 begin:i64 middle:i64 end:i64 bits:*u32"
_PIECES = (
    "runs = load_i64(chosen, 0)",
    "first = make_str(needles, begin)",
    "between = make_str(add_i64(needles, begin), middle)",
    "final = make_str(add_i64(add_i64(needles, begin), middle), end)",
)
_MATCHES = "str_has_parts(str_inside({string}(offsets, characters, {row}), first, final), parts, stop, between)"

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
}  # a thread has words of the bitmap of its own

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


def matching_rows(column: ColumnData, pattern: ScannedPattern, device: Device, context: str = "") -> Array:
    """The bitmap (uint32, on ``device``) of the rows whose text matches; bits of rows that are NULL mean nothing. The column has
    offsets, and at most 2^32 rows less some."""
    rows, limits = column.length, tuning.text_scans
    bits = device.zeros(max(1, -(-rows // BITMAP_BITS)), "uint32", context)
    if rows == 0:
        return bits
    type_, offsets = column.physical_type, column.data.on(device, context)
    texts = offsets, 0 if column.characters is None else address(column.characters.on(device, context))
    keys, needles = pattern.keys.on(device), address(pattern.needles.on(device))
    counts, chosen = device.zeros(pattern.candidates, "int64"), device.zeros(1 + KEY_WORDS, "int64")
    sampled = min(rows, limits.sampled_rows)
    stride, longest, candidates = rows // sampled, limits.sampled_bytes, pattern.candidates
    launch(_SAMPLES[type_, pattern.unit], sampled, bits, *texts, stride, longest, keys, candidates, counts)
    launch(_CHOOSE, 1, bits, keys, candidates, counts, int(limits.most_frequent * sampled), chosen)
    size = 0 if column.characters is None else column.characters.nbytes
    tiles = -(-(size + _WORD) // _TILE)  # the first character may lie anywhere in its word
    marks = device.zeros(tiles * _THREADS * _WORDS // BITMAP_BITS, "uint32", context)
    launch(MARKS[type_, pattern.unit], _THREADS * tiles, bits, *texts, rows, chosen, marks)
    launch(_CANDIDATES[type_], rows, bits, *texts, chosen, marks, bits)
    parts = pattern.parts.on(device)
    pieces = chosen, parts, int(parts.size), needles, pattern.begin, pattern.middle, pattern.end, bits
    launch(_VERIFY[type_], -(-rows // _ROWS_A_THREAD), bits, *texts, rows, *pieces)
    launch(_EACH_ROW[type_], rows, bits, *texts, *pieces)
    return bits


def scan_kernels(type_: PhysicalType, pattern: ScannedPattern) -> list[Kernel]:
    """The kernels that `matching_rows` runs for a column of such a physical type."""
    by_unit, unit = (_SAMPLES, MARKS), pattern.unit
    needed = [
        *(kernels[type_, unit] for kernels in by_unit),
        _CHOOSE,
        _CANDIDATES[type_],
        _VERIFY[type_],
        _EACH_ROW[type_],
    ]
    return [builtin.kernel for builtin in needed]
