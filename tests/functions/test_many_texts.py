"""Functions of texts that are made for all rows at once, beside DuckDB: thousands of rows, values and types of each."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import gquery
from gquery.functions import graphemes, vectors
from tests.support.harness import TARGETS

ROWS = 3000
PIECES = ["", "a", "b", ",", ",,", "-", " ", "--", "/", "%20", "%", "%zz", "%C3%A9", "é", "e\u0301", "日本", "😀",
          "👩\u200d👧", "ß", "İ", "\x00", "\n", "\t", "~", "_", ".", "0", "Z", "{}", "\x7f", "\u0080", "x" * 40]  # fmt: skip


def some_texts(seed: int, pieces: Sequence[str] = PIECES, most: int = 7) -> list[str | None]:
    """Texts of some pieces, NULLs, one that is long, and repeats in the second half."""
    r = random.Random(seed)
    made = [None if r.random() < 0.08 else "".join(r.choices(pieces, k=r.randrange(most))) for _ in range(ROWS // 2)]
    made[7] = "".join(r.choices(pieces, k=5000))
    return [*made, *(r.choice(made[:50]) for _ in range(ROWS - len(made)))]


def tables_of(columns: Mapping[str, Sequence[object]]) -> dict[str, pa.Table]:
    """The columns as they are, a slice of them, as dictionaries, without rows, and with NULL alone."""
    whole = pa.table(columns)
    return {
        "whole": whole,
        "slice": whole.slice(11, 200),
        "encoded": pa.table(
            {n: c.dictionary_encode() if c.type == pa.string() else c for n, c in zip(columns, whole.columns)}
        ),
        "none": whole.slice(0, 0),
        "nulls": pa.table({n: pa.nulls(40, c.type) for n, c in zip(columns, whole.columns, strict=True)}),
    }


def compare(tables: dict[str, pa.Table], exprs: Sequence[str]) -> None:
    """Each expression over each table, on each target, has DuckDB's values and types."""
    query = f"SELECT {', '.join(f'{e} AS c{n}' for n, e in enumerate(exprs))} FROM "
    with duckdb.connect() as there:
        for name, table in tables.items():
            there.register(name, table)
            there.execute(f"CREATE TABLE {name}_ AS FROM {name}")
        for target in TARGETS:
            with gquery.connect(device=target) as here:
                if target != "python":
                    here.sql("SET interpret_limit = 0")
                for name, table in tables.items():
                    if target == "python" and name in ("slice", "encoded"):
                        continue  # its functions are the same
                    few = table.slice(0, 200) if target == "python" else table
                    here.register(name, few)
                    got = here.sql(query + name).arrow()
                    want = there.execute(f"{query}{name}_").to_arrow_table().slice(0, len(few))
                    for n, expr in enumerate(exprs):
                        message = f"{expr} over {name} on {target}"
                        assert got.column(n).type == want.column(n).type, message
                        if got.column(n).combine_chunks().equals(want.column(n).combine_chunks()):
                            continue
                        pairs = zip(_values(got.column(n)), _values(want.column(n)), strict=True)
                        for row, (found, wanted) in enumerate(pairs):
                            of = few.slice(row, 1).to_pylist()
                            assert found == wanted, f"{message}: {found!r}, not {wanted!r}, for {of}"


def _values(column: pa.ChunkedArray) -> list[object]:
    """Python's values; microseconds of moments, some of which it has none for."""
    return list((column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column).to_pylist())


def fails(expr: str, table: pa.Table) -> None:
    """Both engines refuse an expression."""
    with duckdb.connect() as there, gquery.connect(device="cpu") as here:
        there.register("t", table)
        here.register("t", table)
        with pytest.raises((duckdb.Error, UnicodeDecodeError)):
            there.execute(f"SELECT {expr} FROM t").fetchall()
        with pytest.raises(gquery.errors.DatabaseError) as raised:
            here.sql(f"SELECT {expr} FROM t").fetchall()
        assert not isinstance(raised.value, gquery.errors.InternalError), expr


def test_split_part() -> None:
    r = random.Random(3)
    columns: dict[str, list[Any]] = {
        "s": some_texts(1),
        "p": [r.choice([None, "", ",", ",,", "-", "é", "日本", "a,"]) for _ in range(ROWS)],
        "n": [r.choice([None, 0, 1, 2, 3, -1, -2, 100, -100, 2**63 - 1, -(2**63)]) for _ in range(ROWS)],
    }
    compare(tables_of(columns), [
        *(f"split_part(s, '{p}', {n})" for p in (",", ",,", "", "é", "no such") for n in (1, 2, -1, 0)),
        "split_part(s, p, n)", "split_part(s, ',', n)", "split_part(s, p, 2)", "split_part(upper(s), 'A', -2)",
        "split_part(split_part(s, ',', 2), '-', 1)", "split_part(s, NULL, 1)", "split_part(s, ',', NULL)",
        "strlen(split_part(s, ' ', 1))", "split_part(s, ',', 1) = 'a'", "split_part(s || ',x', ',', -1)",
    ])  # fmt: skip


def test_groups_of_parts() -> None:
    table = pa.table({"s": some_texts(2), "x": range(ROWS)})
    query = "SELECT split_part(s, ',', 1) AS p, count(*) AS n, min(x) AS x FROM t GROUP BY 1 ORDER BY x"
    with duckdb.connect() as there:
        there.register("t", table)
        want = there.execute(query).fetchall()
    for target in TARGETS:
        with gquery.connect(device=target) as here:
            here.sql("SET interpret_limit = 0")
            here.register("t", table)
            assert here.sql(query).fetchall() == want, target


FORMATS = [
    *(
        "%Y-%m-%d",
        "%Y%m%d",
        "%d.%m.%Y %H:%M:%S",
        "%Y-%m-%d %H:%M:%S.%f",
        "%y/%-m/%-d",
        "%H:%M",
        "%S%f",
        "%Y  %m",
        "x%Y%%",
    ),
    *(
        "%m %m",
        "%Y %y",
        "%y %Y",
        "%g",
        "%Yé%m",
        "%c",
        "%T",
        "%x",
        "%X",
        "at %H h",
        "%b %d %Y",
        "%B %y",
        "%j %Y",
        "%I %p",
    ),
    *("%H %p", "%d %j %Y", "%a %d", "%YT%HZ", "%I:%M"),
]


def _stamp_texts(seed: int) -> list[str | None]:
    r = random.Random(seed)
    digits = [
        "0",
        "1",
        "2",
        "7",
        "9",
        "12",
        "28",
        "29",
        "30",
        "31",
        "59",
        "60",
        "2020",
        "1999",
        "0004",
        "13",
        "366",
        "123456",
        "999999",
    ]
    marks = [
        "-",
        ":",
        " ",
        "/",
        ".",
        "  ",
        "\t",
        "T",
        "Z",
        "x",
        "é",
        "am",
        "PM",
        "jan",
        "May",
        "January",
        "Sat",
        "%",
        "",
        "",
    ]
    made: list[str | None] = [
        None,
        "",
        " ",
        "2020-02-29",
        "2021-02-29",
        "20200230",
        "1900-02-29",
        "2000-02-29",
        "0000-02-29",
        "29.02.2020 23:59:60",
    ]
    made += [
        "29.02.2020 23:59:59",
        " 1.1.2 0:0:0 ",
        "x2020%",
        "X2020%",
        "2020é1",
        "at 5 h",
        "at  5\nh ",
        "2020T05Z",
        "12 pm",
        "0 am",
        "366 2021",
    ]
    made += [
        "2020-01-01 00:00:00.5",
        "2020-01-01 00:00:00.1234567",
        "2020-01-01 00:00:00.",
        "2020  1",
        "2020\n1",
        "20201",
        "1",
        "123",
        "12",
    ]
    while len(made) < ROWS:
        if r.random() < 0.5:
            made.append("".join(r.choice(digits) + r.choice(marks) for _ in range(r.randrange(1, 5))))
        else:
            day = [
                r.randrange(0, 3000),
                r.randrange(0, 14),
                r.randrange(0, 33),
                *(r.randrange(0, n) for n in (25, 61, 61)),
            ]
            form = r.choice(
                [
                    "{}-{}-{}",
                    "{:04}{:02}{:02}",
                    "{2}.{1:02}.{0} {3}:{4:02}:{5:02}",
                    "{}-{}-{} {}:{}:{}.5",
                    "{2:02}/{1}/{2}",
                    "{3}:{4}",
                ]
            )
            made.append(form.format(*day))
    return made


def test_strptime() -> None:
    texts = _stamp_texts(4)
    r = random.Random(5)
    columns: dict[str, list[Any]] = {"s": texts, "f": [r.choice([None, *FORMATS]) for _ in range(ROWS)]}
    exprs = [f"try_strptime(s, '{f}')" for f in FORMATS]
    exprs += [
        "try_strptime(s, ['%Y-%m-%d', '%d.%m.%Y %H:%M:%S', '%b %d %Y', '%H'])",
        "try_strptime(s, NULL)",
        "try_strptime('2020', '%Y')",
    ]
    compare(tables_of(columns), exprs)


def test_strptime_of_right_texts() -> None:
    days = [
        f"{1 + n % 9999}-{n % 12 + 1}-{n % 28 + 1} {n % 24:02}:{n % 60}:{n % 60:02}" if n % 9 else None
        for n in range(ROWS)
    ]
    compare(
        tables_of({"s": days}),
        ["strptime(s, '%Y-%m-%d %H:%M:%S')", "strptime(s, ['%Y', '%Y-%m-%d %H:%M:%S'])", "strptime(' ' || s, '%c')"],
    )
    for odd in ("2021-02-29", "", "x", "2020-01-01 1", "12020-01-01"):
        fails("strptime(s, '%Y-%m-%d')", pa.table({"s": ["2020-01-01", None, odd]}))


def _number_columns() -> dict[str, list[Any]]:
    r = random.Random(6)
    whole = [0, 1, -1, 7, 255, 1234567, -9876543210, 2**63 - 1, -(2**63)]
    real = [
        0.0,
        -0.0,
        1.0,
        2.5,
        -1234567.891,
        1e22,
        1e-7,
        0.1,
        9.995,
        float("nan"),
        float("inf"),
        float("-inf"),
        5e-324,
    ]
    return {
        "s": some_texts(6),
        "i": [
            None if r.random() < 0.1 else r.choice([*whole, r.getrandbits(20), -r.getrandbits(40)]) for _ in range(ROWS)
        ],
        "x": [None if r.random() < 0.1 else r.choice([*real, r.random() * 1e6, -r.random()]) for _ in range(ROWS)],
        "b": [r.choice([None, True, False]) for _ in range(ROWS)],
    }


def test_printf() -> None:
    integers = [
        "%d",
        "%i",
        "%5d",
        "%-5d|",
        "%05d",
        "%+d",
        "%+5d",
        "%x",
        "%X",
        "%o",
        "%u",
        "%08x",
        "%10u",
        "%ld",
        "%hd",
        "%,d",
    ]
    reals = ["%f", "%.2f", "%10.3f", "%-10.1f|", "%+.1f", "%010.2f", "%e", "%.3E", "%g", "%.10g", "%G", "% .2f", "%.0f"]
    texts = ["%s", "%10s", "%-10s|", "%.2s", "%8.3s", "%%%s"]
    exprs = [f"printf('<{p}>', i)" for p in integers]
    exprs += [f"printf('{p}', x)" for p in reals] + [f"printf('{p}', s)" for p in texts]
    exprs += [
        "printf('%s-%d-%.1f', s, i, x)",
        "printf('none', s)",
        "printf('%s%s', s, s)",
        "printf('%s %d %s', 'a', i, 'é')",
    ]
    exprs += ["printf('%s', b)", "printf('%2$s %1$d', i, s)", "printf('%*d', 7, i)", "printf('%d %s', i, NULL)"]
    compare(tables_of(_number_columns()), exprs)


def test_format() -> None:
    integers = [
        "{}",
        "{:d}",
        "{:5}",
        "{:<5}|",
        "{:^7}|",
        "{:05d}",
        "{:+}",
        "{: d}",
        "{:x}",
        "{:X}",
        "{:o}",
        "{:b}",
        "{:,}",
    ]
    integers += ["{:_}", "{:*>9}", "{:=+9}", "{:#x}", "{:t }"]
    reals = [
        "{}",
        "{:f}",
        "{:.2f}",
        "{:10.3f}",
        "{:<10.1f}|",
        "{:^12.2f}|",
        "{:+.1f}",
        "{:010.2f}",
        "{:e}",
        "{:.3E}",
        "{:g}",
    ]
    reals += ["{:.10g}", "{:>15}", "{:*^15}", "{:.3}", "{:,}"]
    texts = ["{}", "{:s}", "{:10}|", "{:<10}|", "{:>10}", "{:^9}|", "{:*^10}|", "{:.3}", "{:>6.2}", "{{{}}}"]
    exprs = [f"format('<{p}>', i)" for p in integers]
    exprs += [f"format('{p}', x)" for p in reals] + [f"format('{p}', s)" for p in texts]
    exprs += [
        "format('{} {} {:.1f}', s, i, x)",
        "format('none', s)",
        "format('{0}{0}', s)",
        "format('{1} {0}', 'a', i)",
    ]
    exprs += ["format('{}', b)", "format('{:d}', b)", "format('{:>{}}', i, 7)", "format('{}', NULL, s)"]
    exprs += ["format('{}', i % 100)", "format('{:x}', abs(i % 100)::UBIGINT)"]
    compare(tables_of(_number_columns()), exprs)


def test_formats_that_are_refused() -> None:
    table = pa.table({"s": ["a", None], "i": [1, None], "x": [1.5, None]})
    for call in (
        *("format('{:d}', s)", "format('{', s)", "format('{:.2f}', i)", "format('{} {}', s)", "format('{:s}', x)"),
        *("printf('%d', s)", "printf('%s %s', s)", "printf('%y', i)", "format('{:+}', s)"),
    ):
        fails(call, table)


def test_bytes() -> None:
    r = random.Random(7)
    digits = [None, "", "4", "41", "414", "zz", "4142C3A9", "6g", "a1", "A1b2C3", " 41", "é", "x1"]
    columns: dict[str, list[Any]] = {
        "s": some_texts(7),
        "h": [r.choice(["", "41", "414", "0aF", "4142c3A9", None, "f" * r.randrange(9)]) for _ in range(ROWS)],
        "i": [
            None if r.random() < 0.1 else r.choice([0, 1, -1, 15, 16, 255, 256, 2**63 - 1, -(2**63), r.getrandbits(40)])
            for _ in range(ROWS)
        ],
        "o": [r.choice([None, "", "a", "ab", "aab", "é,", "日-a"]) for _ in range(ROWS)],
        "n": [r.choice([None, "", "x", "xy", "é", "日本語"]) for _ in range(ROWS)],
    }
    pairs = [
        ("a", ""),
        ("ab", "x"),
        ("a,-", "😀é"),
        ("", "x"),
        ("aab", "xyz"),
        ("é", "e"),
        ("日本a", "x"),
        ("%20", "   "),
        ("a", "abc"),
    ]
    exprs = [f"translate(s, '{old}', '{new}')" for old, new in pairs]
    exprs += ["translate(s, o, n)", "translate('abcé', o, n)", "translate(s, NULL, 'a')", "translate(s, 'a', n)"]
    exprs += [
        "hex(s)",
        "hex(i)",
        "hex(abs(i % 1000)::UBIGINT)",
        "bin(s)",
        "bin(i)",
        "bin(abs(i % 7)::UBIGINT)",
    ]
    exprs += [
        "to_hex(encode(s))",
        "hex(NULL::VARCHAR)",
        "url_encode(s)",
        "url_decode(url_encode(s))",
        "regexp_escape(s)",
    ]
    exprs += ["unhex(h)", "hex(unhex(h))", "unhex(hex(s))", "from_hex('414')", "url_encode('a b')"]
    tables = tables_of(columns)
    compare(tables, exprs)
    for text in digits:
        with duckdb.connect() as there:
            try:
                want = there.execute("SELECT unhex(?)", [text]).fetchall()
            except (duckdb.Error, UnicodeDecodeError):  # its message has half a character
                fails("unhex(s)", pa.table({"s": ["41", text]}))
            else:
                assert (
                    gquery.connect(device="cpu")
                    .sql(f"SELECT unhex({'NULL' if text is None else repr(text)})")
                    .fetchall()
                    == want
                )


def test_decoded_urls() -> None:
    right = [
        "",
        "a",
        "%41",
        "%%41",
        "%4",
        "%",
        "%C3%A9",
        "%2525",
        "a%zz",
        "é%20",
        "+",
        "%e2%82%AC",
        "%E2%82",
        "%A9",
        "%ff%41",
        "日%",
        None,
    ]
    right = [*right, *(a + b for a in right if a for b in right if b)] * 5
    with duckdb.connect() as there:
        ok = []
        for text in dict.fromkeys(right):
            try:
                there.execute("SELECT url_decode(?)", [text]).fetchall()
                ok.append(text)
            except duckdb.Error:
                fails("url_decode(s)", pa.table({"s": ["a", text]}))
    compare(tables_of({"s": [t for t in right if t in ok]}), ["url_decode(s)", "url_decode(s || s)"])


def test_distances() -> None:
    r = random.Random(9)
    long = ["x" * 63, "x" * 64, "x" * 65 + "y", "abc" * 40, "ab" * 3000, "ba" * 40, "é" * 33]
    words = [*(s for s in some_texts(9, ["", "a", "b", "c", "ab", "é", "日"], 9) if s is None or len(s) < 100), *long]
    pairs = [
        (r.choice(words[-60:]), r.choice(words[-60:])) if r.random() < 0.1 else (r.choice(words), r.choice(words))
        for _ in range(800)
    ]
    pairs = [p for p in pairs if sum(len(s or "") for s in p) < 700] + [
        ("ab" * 3000, "ba" * 40),
        ("a", "ab" * 3000),
        ("", ""),
        ("", "abc"),
    ]
    columns: dict[str, list[Any]] = {"s": [p[0] for p in pairs], "t": [p[1] for p in pairs]}
    both: dict[str, list[Any]] = {
        "s": [s if s and t else "ab" for s, t in pairs],
        "t": [t if s and t else "abd" for s, t in pairs],
    }
    same: dict[str, list[Any]] = {
        "s": ["".join(r.choices("abcé", k=9))[:8] for _ in range(500)],
        "t": [None if r.random() < 0.1 else "".join(r.choices("abc", k=8)) for _ in range(500)],
    }
    same["s"] = [s if len(s.encode()) == 8 else "abcabcab" for s in same["s"]]
    exprs = [
        "levenshtein(s, t)",
        "damerau_levenshtein(s, t)",
        "levenshtein(s, 'abcab')",
        "levenshtein('', t)",
        "editdist3(s, s)",
    ]
    exprs += [
        "jaro_similarity(s, t)",
        "jaro_winkler_similarity(s, t)",
        "jaro_similarity(s, 'abcab')",
        "jaro_winkler_similarity('abé', t)",
    ]
    exprs += ["jaro_similarity(s, t, 0.5)", "jaro_winkler_similarity(s, t, 0.77)"]
    compare(tables_of(columns), exprs)
    compare(tables_of(both), ["jaccard(s, t)", "jaccard(s, 'é')"])
    compare(tables_of(same), ["hamming(s, t)", "mismatches('12345678', t)", "hamming(s, NULL)"])
    for s, t in (("ab", "abc"), ("", "")):
        fails("hamming(s, t)", pa.table({"s": ["a", s], "t": ["b", t]}))
    fails("jaccard(s, t)", pa.table({"s": ["a", ""], "t": ["b", "c"]}))


def test_blobs_and_escapes() -> None:
    r = random.Random(11)
    plain: list[Any] = ["", "YQ==", "YWI=", "YWJj", "YWJjZA==", "////", "+/+/", "AAAA" * 50, None]
    columns: dict[str, list[Any]] = {
        "s": some_texts(11),
        "a": [
            None
            if r.random() < 0.1
            else "".join(r.choices(["a", "\\x41", "\\xff", " ", "'", '"', "~", "\n"], k=r.randrange(5)))
            for _ in range(ROWS)
        ],
        "b": [
            "".join(r.choices(["", "YWJj", "AAAA", "/+9z"], k=r.randrange(4))) + r.choice(["", "YQ==", "YWI="])
            for _ in range(ROWS)
        ],
    }
    columns["b"][: len(plain)] = plain
    exprs = [
        "base64(encode(s))",
        "from_base64(b)",
        "a::BLOB",
        "encode(s)::VARCHAR",
        "a::BLOB::VARCHAR",
        "from_base64(base64(encode(s)))",
        "to_json(s)::VARCHAR",
    ]
    exprs += [
        "json_quote(s)::VARCHAR",
        "strip_accents(replace(s, chr(0), ''))",
        "nfc_normalize(replace(s, chr(0), ''))",
        "length_grapheme(s)",
        "left_grapheme(s, 2)",
        "right_grapheme(s, 2)",
    ]
    exprs += ["substring_grapheme(s, 2, 2)", "reverse(s)", "base64(a::BLOB)"]
    compare(tables_of(columns), exprs)
    for text in ("Y", "YQ", "YQ=", "Y===", "====", "YQ=a", "=YQ=", "YW Jj", "YQ==YQ==", "é", "YQ\n=", "\\x4"):
        with duckdb.connect() as there:
            for call in ("from_base64(s)", "s::BLOB"):
                table = pa.table({"s": ["YWJj", text]})
                there.register("t", table)
                try:
                    there.execute(f"SELECT {call} FROM t").fetchall()
                except (duckdb.Error, UnicodeDecodeError):
                    fails(call, table)
                else:
                    compare({"whole": table}, [call])


def test_calls_once_for_each_that_differs() -> None:
    calls: list[tuple[object, ...]] = []

    def f(*row: object) -> str:
        calls.append(row)
        return str(row)

    a = pa.array(["x", "y", None, "x", "z"] * 20)
    b = pa.array([1.0, -0.0, 0.0, 0.0, float("nan")] * 20)
    made = vectors.each_row(f, pa.string(), a, b, pa.scalar(True))
    rows = zip(a.to_pylist(), b.to_pylist(), strict=True)
    assert made.to_pylist() == [None if s is None else str((s, x, True)) for s, x in rows]
    assert len(calls) == 4
    calls.clear()
    assert vectors.each_row(f, pa.string(), a.slice(3), b.slice(3)).to_pylist() == [
        None if s is None else str((s, x)) for s, x in zip(a.slice(3).to_pylist(), b.slice(3).to_pylist(), strict=True)
    ]
    assert vectors.repeats([pa.array(range(40)), a.slice(0, 40)]) is None
    assert vectors.repeats([pa.array([[1]] * 9)]) is None
    assert vectors.each_row(f, pa.string(), a.slice(0, 0)).to_pylist() == []
    assert vectors.each_row(f, pa.string(), pa.nulls(9, pa.string())).to_pylist() == [None] * 9


def test_characters_that_join_nothing() -> None:
    kinds = graphemes._kinds()
    for code in (*range(0x300), *range(0x370, 0x483), *range(0x48A, 0x591), *range(0x4E00, 0xA000)):
        assert code == 13 or kinds[code] in (graphemes.OTHER, graphemes.CONTROL, graphemes.PICTOGRAPH, graphemes.LF), (
            hex(code)
        )
