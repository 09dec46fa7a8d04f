"""String primitives on each target, against Python's strings and, where DuckDB has rules of its own, against DuckDB."""

from __future__ import annotations

import itertools
import random
import re
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import gquery
from tests.support.primitives import TARGETS, check, evaluate

WORDS = ["", "a", "b", "ab", "abc", "special", "requests", "the special  requests", "aXbXc", "wörld", "日本語", "é",
         "😀x", "  pad ", "\u2003wide\u3000", "\u00a0", "   ", "special request", "12345678", "123456789", "aaaaaaaaab",
         "aaaaaaaaaaaaaaaaab", "\u007f\u0080", "AbC", "ẞpecial"]  # fmt: skip


def texts(count: int) -> list[str]:
    r = random.Random(5)
    return [*WORDS, *("".join(r.choice("ab 日é") for _ in range(r.randrange(30))) for _ in range(count))]


def encoded(cases: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [tuple(v.encode() if isinstance(v, str) else v for v in case) for case in cases]


@pytest.mark.parametrize("target", TARGETS)
def test_comparisons_and_search(target: str) -> None:
    alike = [("which begin " + s, "which begin " + t) for s, t in itertools.product(WORDS, texts(8)[-8:])]
    cases = encoded([*itertools.product(WORDS, WORDS), *zip(texts(80), reversed(texts(80))), *alike])

    def position(s: bytes, t: bytes) -> int:
        return s.decode().find(t.decode()) + 1

    check(target, ["str", "str"], cases, {
        "eq_str(a, b)": ("bool", bytes.__eq__),
        "ne_str(a, b)": ("bool", bytes.__ne__),
        "lt_str(a, b)": ("bool", bytes.__lt__),
        "le_str(a, b)": ("bool", bytes.__le__),
        "gt_str(a, b)": ("bool", bytes.__gt__),
        "ge_str(a, b)": ("bool", bytes.__ge__),
        "str_contains(a, b)": ("bool", lambda s, t: t in s),
        "str_starts_with(a, b)": ("bool", lambda s, t: s.startswith(t)),
        "str_ends_with(a, b)": ("bool", lambda s, t: s.endswith(t)),
        "str_position(a, b)": ("i64", position),
        "str_length(a)": ("i64", lambda s, t: len(s.decode())),
        "str_bytes(a)": ("i64", lambda s, t: len(s)),
    })  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("count", [1, 2, 3, 7, 25])
def test_one_of(target: str, count: int) -> None:
    """IN over texts that no dictionary has: a chain of comparisons where they are few, a loop where they are more."""
    wanted = ["ab", "", "日本語", *WORDS, *WORDS][:count]
    strings = [*texts(60), None, "ab\x00", "b"]
    listed = ", ".join(f"'{w}'" for w in wanted)
    with gquery.connect(device=target) as db:
        db.sql("SET interpret_limit = 0")
        db.register("t", pa.table({"s": strings}))
        found = db.sql(f"SELECT s, reverse(reverse(s)) IN ({listed}), s || 'b' NOT IN ({listed}, 'bb', 'bbb') FROM t")
        rows = found.fetchall()
    assert rows == [
        (s, None if s is None else s in wanted, None if s is None else s + "b" not in [*wanted, "bb", "bbb"])
        for s in strings
    ]


@pytest.mark.parametrize("target", TARGETS)
def test_views(target: str) -> None:
    strings = texts(60)
    numbers = [0, 1, 2, 3, 5, 100, -1, -2, -3, -100]
    rows = [(s, x, y) for s in strings[:25] for x in numbers for y in numbers] + [(s, 2, -1) for s in strings]
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (a VARCHAR, b BIGINT, c BIGINT)")
    connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
    queries = {
        "str_substring(a, b, c)": "substring(a, b, c)",
        "str_substring_from(a, b)": "substring(a, b)",
        "str_left(a, b)": "left(a, b)",
        "str_right(a, b)": "right(a, b)",
        "str_trim(a)": "trim(a)",
        "str_ltrim(a)": "ltrim(a)",
        "str_rtrim(a)": "rtrim(a)",
    }
    got = evaluate(target, ["str", "i64", "i64"], encoded(rows), [(text, "str", False) for text in queries])
    for (text, sql), values in zip(queries.items(), got, strict=True):
        want = [row[0] for row in connection.execute(f"SELECT {sql} FROM t ORDER BY rowid").fetchall()]
        for row, value, expected in zip(rows, values, want, strict=True):
            assert value.decode() == expected, f"{text} of {row}"
    (codes,) = evaluate(target, ["str", "i64", "i64"], encoded(rows), [("str_ascii(a)", "i64", False)])
    assert codes == [row[0] for row in connection.execute("SELECT ascii(a) FROM t ORDER BY rowid").fetchall()]


@pytest.mark.parametrize("target", TARGETS)
def test_parts(target: str) -> None:
    strings = [*texts(40), ",", ",,", "a,b,,c,", "aaa", "aaaa", "ababa", "añb日c", "1234567,1234567,", "x" * 70 + "--" + "y" * 9]
    marks = ["", ",", "a", "aa", "aba", "--", "é", "日本", "1234567,", "not there at all"]
    numbers = [0, 1, 2, 3, 4, 9, -1, -2, -3, -4, -9, 2**63 - 1, -(2**63)]
    rows = list(itertools.product(strings, marks, numbers))
    connection = duckdb.connect()
    connection.register("t", pa.table(dict(zip("abc", map(list, zip(*rows)), strict=True))))
    want = [row[0] for row in connection.execute("SELECT split_part(a, b, c) FROM t").fetchall()]
    (got,) = evaluate(target, ["str", "str", "i64"], encoded(rows), [("str_part(a, b, c)", "str", False)])
    for row, value, expected in zip(rows, got, want, strict=True):
        assert value.decode() == expected, row


def prepared(pattern: str) -> bytes:
    return pattern.encode().replace(b"%", b"\xff").replace(b"_", b"\xfe")


def like(text: bytes, pattern: bytes, accumulator: bool) -> bool:
    parts = {0xFF: ".*", 0xFE: "."}
    source, rest = "", pattern
    while rest:
        if rest[0] in parts:
            source, rest = source + parts[rest[0]], rest[1:]
        else:
            end = next((k for k, byte in enumerate(rest) if byte in parts), len(rest))
            source, rest = source + re.escape(rest[:end].decode()), rest[end:]
    flags = re.DOTALL | (re.IGNORECASE | re.ASCII if accumulator else 0)
    return re.fullmatch(source, text.decode(), flags) is not None


@pytest.mark.parametrize("target", TARGETS)
def test_like(target: str) -> None:
    patterns = ["", "%", "_", "%%", "a%", "%a", "%a%", "%special%requests%", "%special%", "_b%", "%_b", "a_c",
                "%語", "日_語", "%é%", "_", "__", "%__%", "%aab", "%a%b%a%", "a%b", "%X%X%", "____", "%1234567%9",
                "_%_", "special_request"]  # fmt: skip
    cases = [(s.encode(), prepared(p)) for s in texts(100) for p in patterns]
    check(target, ["str", "str"], cases, {"str_like(a, b)": ("bool", lambda s, p: like(s, p, False))})
    lower = [(s, p.lower()) for s, p in cases]
    check(target, ["str", "str"], lower, {"str_ilike(a, b)": ("bool", lambda s, p: like(s, p, True))})


@pytest.mark.parametrize("target", TARGETS)
def test_hash_agrees(target: str) -> None:
    cases = [(s.encode(),) for s in texts(50)]
    wanted = [("hash_str(a)", "i64", False)]
    assert evaluate(target, ["str"], cases, wanted) == evaluate("python", ["str"], cases, wanted)


def test_words_from_anywhere_as_a_gpu_reads_them() -> None:
    """Two aligned words, moved: the same code compiled for the CPU."""
    import numpy as np
    from numba import njit
    from numba.extending import intrinsic

    from gquery.kernels.targets.cuda_intrinsics import CUDA_DEFINITIONS
    from gquery.kernels.targets.intrinsics_numba import build

    load = build(CUDA_DEFINITIONS["load_word_unaligned"], intrinsic)
    load_at = njit(lambda address: load(address))
    data = np.frombuffer(random.Random(3).randbytes(64), np.uint8).copy()
    start = -data.ctypes.data % 8
    for k in range(start, start + 40):
        assert load_at(data.ctypes.data + k) == int.from_bytes(data[k : k + 8].tobytes(), "little", signed=True)
