"""The text scan, against Python's own search: parts at every alignment, texts without a gap between them, NULLs, slices."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from gquery import tuning
from gquery.columns.table import ColumnData
from gquery.device.buffer import Buffer
from gquery.device.device import Device, cpu_device
from gquery.expression.types import VARCHAR, PhysicalType
from gquery.kernels.builtin import define, text_scan
from gquery.kernels.patterns import like_pattern, longest_part, scanned_pattern
from tests.support.tuned import Tune

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)]
PATTERNS = [
    "%special%", "%special%requests%", "%requests%special%", "%abc%", "%abcd%", "%abcabca%", "%aaa%", "%aaaaaaaa%",
    "%aa%aaaaaaa%", "%aaaa%aaaa%", "a%abcabcabc%", "%abcabcabc%c", "ab%abcabcabc%bc", "%abcabcabcabcabcabcabcabcabc%",
    "%b%c%special%", "%日本語%", "%日本%語%", "%éa%", "%zzzzzzzz%", "%\0\0\0%", "%\0\0\0\0\0\0\0\0%", "special%special%special",
]  # fmt: skip
PIECES = [
    "",
    "a",
    "b",
    "c",
    "abc",
    "aaa",
    "special",
    "specia",
    "requests",
    "request",
    "日本",
    "語",
    "é",
    "\0",
    " ",
    "zzzz",
]


def texts(seed: int, rows: int) -> list[str | None]:
    r = random.Random(seed)
    made: list[str | None] = ["".join(r.choices(PIECES, k=r.choice([0, 1, 2, 3, 9, 40]))) for _ in range(rows)]
    for at in range(0, rows - 1, 7):  # a part that begins in one row and ends in the next
        cut = r.randrange(1, 7)
        made[at], made[at + 1] = (made[at] or "") + "special"[:cut], "special"[cut:] + (made[at + 1] or "")
    made += ["x" * k + "special" + "y" * (k % 5) for k in range(40)] + ["a" * k for k in range(40)]
    return [None if r.random() < 0.1 else text for text in made]


def plain(values: Sequence[str | None], under_null: str = "special requests aaaaaaaa") -> ColumnData:
    """A column with 32-bit offsets; NULLs have text in the characters."""
    data = [(under_null if s is None else s).encode() for s in values]
    offsets = np.cumsum([0, *map(len, data)]).astype(np.int32)
    validity = Buffer(np.array([s is not None for s in values], np.uint8)) if None in values else None
    joined = np.frombuffer(b"".join(data) + b" " * 8, np.uint8)[: int(offsets[-1])]
    return ColumnData(VARCHAR, PhysicalType.STRING32, len(values), Buffer(offsets), validity, Buffer(joined))


def forms(values: Sequence[str | None]) -> list[ColumnData]:
    """The same texts with 32- and 64-bit offsets, and as a slice of a longer column at another alignment."""
    column = plain(values)
    wide = replace(column, physical_type=PhysicalType.STRING64, data=Buffer(column.data.host.astype(np.int64)))
    longer = plain(["spe", None, "cial", *values, "special", "requests"])
    return [column, wide, longer.slice(3, 3 + len(values))]


def matches(pattern: str, text: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("%"))), text, re.DOTALL) is not None


def found(column: ColumnData, pattern: str, device: Device, form: str | None = None) -> list[bool]:
    scanned = scanned_pattern(like_pattern(pattern, ""))
    if form is not None:
        scanned = scanned.in_form_of(scanned_pattern(like_pattern(form, "")))
    bits = device.to_host(text_scan.matching_rows(column, scanned, device.from_host(scanned.packed()), device))
    assert bits.dtype == np.uint32
    assert not np.unpackbits(bits.view(np.uint8), bitorder="little")[column.length :].any()
    return [bool(b) for b in np.unpackbits(bits.view(np.uint8), bitorder="little")[: column.length]]


def check(column: ColumnData, values: Sequence[str | None], pattern: str, device: Device) -> None:
    for row, (bit, text) in enumerate(zip(found(column, pattern, device), values, strict=True)):
        assert text is None or bit == matches(pattern, text), (pattern, row, text)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("frequent", [0.0, 1.0], ids=["row by row", "scan"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_rows_are_pythons(pattern: str, frequent: float, device: str, tune: Tune) -> None:
    """Compiled, whatever a sample says, with tiles that end within the texts."""
    tune(tuning.built_in_kernels, interpreted_rows=0)
    tune(tuning.text_scans, most_frequent=frequent)
    place = cpu_device() if device == "cpu" else Device("cuda")
    values = texts(len(pattern), 700)
    for column in forms(values):
        check(column, values, pattern, place)


def test_interpreted_alike(tune: Tune) -> None:
    tune(tuning.built_in_kernels, interpreted_rows=2**40, compiled_after=2**40)
    values = texts(1, 40)
    for pattern in ("%special%requests%", "%abc%", "a%abcabcabc%"):
        check(plain(values), values, pattern, cpu_device())


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("form", ["%abcd%", "%abc%", "%special%", "%special%requests%", "%éa%éa%é%"])
def test_patterns_in_the_form_of_others(form: str, device: str, tune: Tune) -> None:
    """A recorded run looks for all patterns that have room in what was recorded for one."""
    tune(tuning.built_in_kernels, interpreted_rows=0)
    tune(tuning.text_scans, most_frequent=1.0)
    place, values = cpu_device() if device == "cpu" else Device("cuda"), texts(11, 120)
    column, other = plain(values), scanned_pattern(like_pattern(form, ""))
    alike = []
    for pattern in PATTERNS:
        bits = found(column, pattern, place, form)
        assert all(t is None or b == matches(pattern, t) for b, t in zip(bits, values, strict=True)), pattern
        alike.append(scanned_pattern(like_pattern(pattern, "")).in_form_of(other).is_like(other))
    assert alike.count(True) == {"%abc%": 4, "%special%": 13, "%special%requests%": 15}.get(form, len(PATTERNS))


@pytest.mark.parametrize("device", DEVICES)
def test_tiles(device: str, tune: Tune) -> None:
    """A tile of many rows, of rows without text, of a part of a row; a part that lies in two tiles."""
    tune(tuning.built_in_kernels, interpreted_rows=0)
    tune(tuning.text_scans, most_frequent=1.0)
    place = cpu_device() if device == "cpu" else Device("cuda")
    long = ["y" * k + "special" for k in (8_170, 8_190, 16_384, 40_000)] + [
        "special" + "y" * 40_000,
        "y" * 70_000,
    ]
    values: list[str | None] = [*[""] * 500, *long, *[""] * 500, "special", *["spec", "ial"] * 300, *["special"] * 200]
    for column in forms(values):
        check(column, values, "%special%", place)


@pytest.mark.parametrize("device", DEVICES)
def test_no_texts(device: str) -> None:
    place = cpu_device() if device == "cpu" else Device("cuda")
    pattern = scanned_pattern(b"\xffspecial\xff")
    assert not place.to_host(
        text_scan.matching_rows(plain([]), pattern, place.from_host(pattern.packed()), place)
    ).any()
    for values in ([""], [None], ["", None] * 3_000):
        check(plain(values, ""), values, "%special%", place)
    nothing = replace(plain([""] * 10), characters=None)
    check(nothing, [""] * 10, "%special%", place)


def test_beyond_two_gigabytes(tune: Tune) -> None:
    """Offsets of 64 bits that begin behind 2^31 characters, none of which is read: memory that is never touched."""
    tune(tuning.built_in_kernels, interpreted_rows=0)
    tune(tuning.text_scans, most_frequent=1.0)
    values = texts(3, 200)
    column = forms(values)[1]
    assert column.characters is not None
    characters = np.zeros(2**31 + 2**20, np.uint8)
    start = 2**31 - 1_003  # the texts lie on both sides
    characters[start : start + column.characters.nbytes] = column.characters.host
    far = replace(column, data=Buffer(column.data.host + start), characters=Buffer(characters))
    check(far, values, "%special%", cpu_device())


@pytest.mark.parametrize("device", DEVICES)
def test_every_row_has_a_mark(device: str, tune: Tune) -> None:
    """Of the part itself, of a unit of it, or in a word that two or more rows have bytes of."""
    tune(tuning.built_in_kernels, interpreted_rows=0)
    tune(tuning.text_scans, most_frequent=1.0)
    place = cpu_device() if device == "cpu" else Device("cuda")
    for values in (
        ["special"] * 1_000,
        ["x" * (k % 9) + "special" for k in range(1_000)],
        ["spec"] * 999,
        ["sp", "ecial"] * 700,
    ):
        for column in forms(values):
            check(column, values, "%special%", place)
            check(column, values, "%spe%", place)


def unit_keys(part: str) -> list[int]:
    return [int.from_bytes(part[k : k + 4].encode(), "little") for k in range(4)]


def two_keys(window: str) -> tuple[int, ...]:
    return tuple(int.from_bytes(window[k : k + 2].encode(), "little") for k in range(2))


def test_the_least_frequent_parts_are_looked_for(tune: Tune, monkeypatch: pytest.MonkeyPatch) -> None:
    """And where all parts are frequent, nothing is scanned: the answer is the same."""
    values: list[str | None] = [*["often requests"] * 900, *["often requests, once special"] * 10]
    chosen: list[list[int]] = []
    real = define.launch

    def launch(builtin: object, rows: int, like: object, *given: object, workers: int = 1) -> None:
        real(builtin, rows, like, *given, workers=workers)  # type: ignore[arg-type]
        if builtin is text_scan._CHOOSE:
            chosen.append(np.asarray(given[-1]).tolist())

    monkeypatch.setattr(text_scan, "launch", launch)
    check(plain(values), values, "%requests%special%", cpu_device())
    assert chosen[-1] == [1, *unit_keys("requests"), *unit_keys("special")]
    check(plain(values), values, "%nowhere%special%requests%", cpu_device())
    assert chosen[-1] == [1, *unit_keys("nowhere"), *unit_keys("special")]
    check(plain(values), values, "%often%special%", cpu_device())
    assert chosen[-1] == [1, *unit_keys("special"), *unit_keys("special")]
    check(plain(values), values, "%requests%often%", cpu_device())
    assert chosen[-1][0] == 0
    some = [f"{word:_^30}" for word in ("goose", "ogle", "google")]
    values += some[:2] * 300 + some[2:] * 5  # windows of the same part: units of both are rare
    tune(tuning.text_scans, most_frequent=0.02)
    check(plain(values), values, "%google%", cpu_device())
    assert chosen[-1][0] == 1
    assert {tuple(chosen[-1][1:3]), tuple(chosen[-1][5:7])} < {two_keys(w) for w in ("goo", "oog", "ogl", "gle")}
    assert tuning.text_scans.most_frequent < 0.9


def test_patterns_that_are_scanned() -> None:
    longest = {
        "%abc%": 3,
        "abc%": 0,
        "%abc": 0,
        "abc%def": 0,
        "%a%abcd%": 4,
        "%a_c%": 0,
        "abc": 0,
        "": 0,
        "%": 0,
        "%é%": 2,
    }
    assert {p: longest_part(like_pattern(p, "")) for p in longest} == longest
    assert longest_part(like_pattern("%a!%b!_c%", "!")) == 5


def test_random_patterns(tune: Tune) -> None:
    """Parts of two letters, over texts of two letters: occurrences overlap each other and the borders of rows."""
    tune(tuning.built_in_kernels, interpreted_rows=0)
    tune(tuning.text_scans, most_frequent=1.0)
    r = random.Random(5)
    values: list[str | None] = ["".join(r.choices("ab", k=r.randrange(30))) for _ in range(400)]
    columns = forms(values)
    for _ in range(60):
        parts = ["".join(r.choices("ab", k=r.choice([3, 4, 5, 6, 7, 8, 9, 12]))) for _ in range(r.choice([1, 1, 2, 3]))]
        ends = ["".join(r.choices("ab", k=r.choice([0, 0, 1, 2]))) for _ in range(2)]
        check(r.choice(columns), values, "%".join([ends[0], *parts, ends[1]]), cpu_device())
