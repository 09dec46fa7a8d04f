"""Functions that look at each text in Python, beside DuckDB: random texts, paths, sizes, and all that a specification can be."""

from __future__ import annotations

import random

import duckdb
import pyarrow as pa
import pytest

import gquery
from gquery.functions.graphemes import characters
from tests.support.harness import assert_same

ROWS = 120


def _texts(alphabet: str, most: int, seed: int) -> pa.Array:
    r = random.Random(seed)
    made = ["".join(r.choice(alphabet) for _ in range(r.randint(0, most))) for _ in range(ROWS)]
    return pa.array([None if r.random() < 0.05 else text for text in made])


def _choices(values: tuple[object, ...], seed: int) -> pa.Array:
    r = random.Random(seed)
    return pa.array([r.choice(values) for _ in range(ROWS)])


def _specs(seed: int, types: str, precision: bool, separator: bool) -> pa.Array:
    """Patterns of format with one specification; a separator stands alone."""
    r = random.Random(seed)
    made = []
    for _ in range(ROWS):
        digits = f".{r.randint(1, 8)}" if precision and r.random() < 0.5 else ""
        if separator and r.random() < 0.2:
            made.append(f"<{{:{r.choice((',', '_', 't '))}{digits}{r.choice(types)}}}>")
            continue
        align = r.choice(("", "", "<", ">", "^", "*<", "_^", "="))
        sign, zeros = r.choice(("", "", "-", "+", " ")), r.choice(("", "", "0"))
        made.append(f"<{{:{align}{sign}{zeros}{r.choice(('', '3', '12'))}{digits}{r.choice(types)}}}>")
    return pa.array(made)


def _directives(seed: int, types: str, precision: bool) -> pa.Array:
    r = random.Random(seed)
    return pa.array([
        f"%%<%{r.choice(('', '-', '+', ' ', '0'))}{r.choice(('', '3', '12'))}"
        f"{f'.{r.randint(1, 8)}' if precision and r.random() < 0.5 else ''}{r.choice(types)}>"
        for _ in range(ROWS)
    ])  # fmt: skip


_INTEGERS = (0, 1, -1, 255, 1234567, -9876543210, 2**63 - 1, -(2**63))
_FLOATS = (0.0, -0.0, 1.0, 2.5, -1234567.891, 1e22, 1e-7, 0.1, 123456.0, 9.995, float("nan"), float("-inf"))
TABLES = {
    "t": pa.table({
        "a": _texts("abcé", 8, 1),
        "b": _texts("abcé", 8, 2),
        "path": _texts("/\\a.b", 7, 3),
        "separator": _choices(("system", "both_slash", "backslash", "forward_slash"), 4),
        "cut": _choices((True, False), 5),
        "bytes": pa.array([random.Random(k).randint(-1, 1) * random.Random(k).getrandbits(k % 63) for k in range(ROWS)]),
        "x": _choices(_FLOATS, 6),
        "i": _choices(_INTEGERS, 7),
        "word": _texts("aé b", 6, 8),
        "of_i": _specs(9, "dxXobBn", False, True),
        "of_x": _specs(10, "feEgGF", True, True),
        "of_word": pa.array([f"[{{:{r.choice(('', '<', '>', '^', '-^'))}{r.choice(('', '4', '9'))}}}]"
                             for r in map(random.Random, range(ROWS))]),
        "c_i": _directives(11, "dixXoub", False),
        "c_x": _directives(12, "feEgGF", True),
        "c_word": pa.array([f"%{r.choice(('', '-'))}{r.choice(('', '4', '9'))}{r.choice(('', '.2'))}s"
                            for r in map(random.Random, range(ROWS))]),
    })
}  # fmt: skip


@pytest.mark.parametrize(
    "sql",
    [
        "jaro_similarity(a, b), jaro_similarity(a, b, 0.6), jaro_winkler_similarity(a, b), jaro_winkler_similarity(a, b, 0.75)",
        "parse_filename(path, cut, separator), parse_dirname(path, separator), parse_dirpath(path, separator)",
        "format_bytes(bytes), formatReadableDecimalSize(bytes), bar(i, -5, 300, 17), bar(x, 0, 9, 5.5), bar(x, -1e9, 1e9)",
        "format(of_i, i), printf(c_i, i)",
        "format(of_x, x), printf(c_x, x), format('{}|{:.3}|{:a}|{:A}', x, x, x, x)",
        "format(of_word, word), printf(c_word, word), format('{0}{1:>4}{0}', a, i), printf('%s=%05d', a, i % 100)",
        "a GLOB b, a GLOB '*[!a]?', path GLOB '*.?'",
        "left_grapheme(word, 2), right_grapheme(a, -1), length_grapheme(a), nfc_normalize(a), md5_number_lower(a)",
    ],
)
def test_over_columns(sql: str) -> None:
    assert_same(f"SELECT {sql} FROM t", TABLES, targets=("python",), ranks=(1,))


def test_a_printf_takes_its_width_from_an_argument() -> None:
    assert_same(
        "SELECT printf('%*d|%-*d|%.*f', a, b, a, b, a, 1.5) FROM (VALUES (3, 7), (-4, 5)) v(a, b) WHERE a > 0", {}
    )


def test_characters_are_what_people_see() -> None:
    assert characters("e\u0301🤦🏼‍♂️\r\n🇩🇪🇫🇷a") == ["e\u0301", "🤦🏼‍♂️", "\r\n", "🇩🇪", "🇫🇷", "a"]
    assert characters("") == []


@pytest.mark.parametrize(
    "sql",
    [
        "format('{:d}', 'a')", "format('{:d}', 1.5)", "format('{:s}', 1)", "format('{} {}', 1)", "format('{', 1)",
        "format('}', 1)", "format('{} {0}', 1)", "format('{name}', 1)", "format('{:.2}', 1)", "format('{:10,}', 1)",
        "format('{:05}', 'a')", "format('{:{}}', 'a', 'x')", "format('{:%}', 0.5)", "printf('%s', 5)", "printf('%d', 1.5)",
        "printf('%d')", "printf('%', 1)", "printf('%q', 1)", "printf('%1$s %s', 'a', 'b')", "bar(1, 0, 1, 0)",
        "bar(1, 0, 1, 1001)", "parse_formatted_bytes('5')", "parse_formatted_bytes('-1 KB')", "parse_formatted_bytes('x')",
        "parse_formatted_bytes('')", "atanh(2)", "gamma(0)", "lgamma(0)", "factorial(34)", "factorial(-1)", "1 << 31",
        "(-1) << 1", "1 << -1", "1::TINYINT << 7", "1::UBIGINT << 64", "make_timestamp(2020, 2, 30, 1, 2, 3)",
        "make_timestamp(2020, 2, 29, 24, 0, 1)", "make_timestamp(2020, 2, 29, 1, 60, 0)",
        "make_timestamp(2020, 2, 29, 1, 0, 'nan'::DOUBLE)", "make_timestamp_ms(9223372036854775807)",
    ],
)  # fmt: skip
def test_what_raises(sql: str) -> None:
    """DuckDB raises, and so do we."""
    with pytest.raises(gquery.DataError):
        gquery.connect(device="python").sql(f"SELECT {sql}").fetchall()
    with pytest.raises(duckdb.Error):
        duckdb.sql(f"SELECT {sql}").fetchall()
