"""LIKE with a constant pattern: its parts, on strings that nearly match, at every alignment, against DuckDB and Python."""

from __future__ import annotations

import random
import re
from types import FunctionType

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery.kernels.patterns import like_pattern, part_table
from gquery.kernels.primitives import search
from tests.support.harness import assert_same
from tests.support.primitives import signed

PATTERNS = [
    "%special%requests%", "%a%", "%ab%", "a%", "%a", "a%b", "a%a", "ab%b%ba", "%", "%%", "", "a", "%abcdefgh%", "%abcdefghi%",
    "%abcdefghi%abcdefghi%", "%aab%", "%é%ü%", "日%語", "%a%b%a%b%", "%aa%aa%", "abcabcabcabc%", "%abcabcabcabc", "%_%", "a_%b",
    "%ab%_", "%!%%", "%abababababababababab%", "ab%ab", "%b%c%d%",
]  # fmt: skip


def _texts() -> list[str | None]:
    r = random.Random(3)
    made: list[str | None] = [
        None,
        "",
        "a",
        "b",
        "ab",
        "aba",
        "abab",
        "aab",
        "aaab",
        "abcdefgh",
        "abcdefghi",
        "日本語",
        "50%",
    ]
    pieces = [
        "a",
        "b",
        "ab",
        "abc",
        "abcdefgh",
        "i",
        "é",
        "ü",
        "日",
        "語",
        " ",
        "special",
        "speciaL",
        "request",
        "requests",
        "%",
    ]
    for _ in range(600):
        made.append("".join(r.choice(pieces) for _ in range(r.randrange(9))))
    made += ["x" * k + "special" + "y" * (k % 5) + "requests" + "z" * (k % 3) for k in range(40)]
    made += ["a" * k + "b" for k in range(30)] + ["ab" * k for k in range(20)]
    return made


@pytest.mark.parametrize("pattern", PATTERNS)
def test_like_is_duckdbs(pattern: str) -> None:
    texts = _texts()
    table = pa.table({"id": range(len(texts)), "s": texts})
    escape = " ESCAPE '!'" if "!" in pattern else ""
    sql = f"SELECT id, s LIKE '{pattern}'{escape}, s || '-' LIKE '{pattern}'{escape} FROM t WHERE s NOT LIKE '{pattern}'{escape}"
    assert_same(sql + f" OR substring(s, 2) LIKE '{pattern}'{escape} ORDER BY id", {"t": table})


def test_parts_at_every_alignment() -> None:
    """The body that GPUs compile, run on Python's integers: begins and ends at each of the eight bytes of a word."""
    r = random.Random(4)
    wrapping = {
        **search.str_has_parts.__globals__,
        "sub_i64": lambda a, b: signed(a - b),
    }  # taken for proved to fit there
    has_parts = FunctionType(search.str_has_parts.__code__, wrapping)
    for _ in range(3000):
        letters = r.choice(["ab", "abc", "aé"])
        parts = [
            "".join(r.choice(letters) for _ in range(r.choice([1, 2, 3, 8, 9, 17]))).encode()
            for _ in range(r.randrange(1, 4))
        ]
        text = b"".join(r.choice([*parts, b"a", b"b"]) for _ in range(r.randrange(8)))
        before = r.randrange(9)
        memory = np.frombuffer(b"b" * (8 + before) + text + r.choice(parts) + b"ab" * 8, np.uint8).copy()
        start = memory.ctypes.data + 8 + before
        needles = np.frombuffer(b"".join(parts) + bytes(8), np.uint8).copy()
        stop = len(parts) * search.PART_WORDS
        got = has_parts((start, len(text)), part_table(parts).tolist(), stop, (needles.ctypes.data, needles.size - 8))
        want = re.search(b".*".join(map(re.escape, parts)), text, re.DOTALL) is not None
        assert got is want, (text, parts, before)


def test_patterns_share_a_kernel() -> None:
    """The text of a pattern is data; how many parts it has is, too."""
    connection = gquery.connect(device="cpu")
    connection.register("t", pa.table({"s": [f"{k} {k % 7} some text" for k in range(5000)]}))
    digests = {
        connection.kernels(f"SELECT count(*) FROM t WHERE s LIKE '{p}'", "cuda")[0].digest
        for p in ("%a%b%", "%special%requests%", "%x%", "%longer than eight%")
    }
    assert len(digests) == 1


def test_prepared_patterns() -> None:
    assert like_pattern("a%%b_", "") == b"a\xffb\xfe"
    assert like_pattern("!%!_!!%", "!") == b"%_!\xff"
