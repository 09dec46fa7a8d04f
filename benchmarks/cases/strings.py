"""Searches in strings of 49 bytes: 10 GB of them where the other cases have 100 million rows.

Strings are random words. libcudf takes 13.7 ms for the pattern of two words over 2 GB on an H200.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks.data import CHECK, STRING_BYTES, WHOLE, Maker, Tables, occurrences
from benchmarks.measure import Answer, Case, Checks, Dataset

BYTES_A_ROW = 100  # of strings, for every row that other cases have


def cases(rows: int) -> Iterator[Case]:
    n = rows * BYTES_A_ROW // STRING_BYTES
    data = Dataset("sentences", partial(_sentences, n))
    count = "SELECT count(*) FROM t WHERE"
    two = ("special", "requests")
    yield Case("like/two-words", f"{count} s LIKE '%{two[0]}%{two[1]}%'", n, data, partial(_words, two), target=12.0)
    yield Case("like/one-word", f"{count} s LIKE '%{two[0]}%'", n, data, partial(_words, two[:1]))
    yield Case("like/prefix", f"{count} s LIKE 'special%'", n, data, _prefix)
    yield Case("like/suffix", f"{count} s LIKE '%t'", n, data, _suffix)
    yield Case("string/equal", f"{count} s = '{WHOLE}'", n, data, _equal)


def _sentences(rows: int, make: Maker) -> Tables:
    matrix = make.sentences(rows)
    return {"t": {"s": make.strings(matrix, rows)}, CHECK: {"s": matrix}}


def _words(words: tuple[str, ...], make: Maker, tables: Tables, answer: Answer) -> Checks:
    expected = occurrences(make.xp, tables[CHECK]["s"], words)
    yield "the count", int(answer.integers(0)[0]), expected


def _prefix(make: Maker, tables: Tables, answer: Answer) -> Checks:
    expected = occurrences(make.xp, tables[CHECK]["s"][:, : len("special")], ("special",))
    yield "the count", int(answer.integers(0)[0]), expected


def _suffix(make: Maker, tables: Tables, answer: Answer) -> Checks:
    yield "the count", int(answer.integers(0)[0]), int((tables[CHECK]["s"][:, -1] == ord("t")).sum())


def _equal(make: Maker, tables: Tables, answer: Answer) -> Checks:
    yield "the count", int(answer.integers(0)[0]), occurrences(make.xp, tables[CHECK]["s"], (WHOLE,))
