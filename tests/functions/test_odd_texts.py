"""Functions of texts with characters 0, 0xFFFF and of several bytes, and of long texts: DuckDB's values."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

import gquery
from tests.support.harness import compare

TEXTS = [
    "", "a", "a\0b", "\0", "a\0", "\uffff", "\U0010ffff", "é", "e\u0301", "日本語", "ß", "İ", "ı", "ǅ", "ﬁ", "👨\u200d👩\u200d👧",
    "x" * 5000, "é" * 3000, None, " a ", "\u00a0a\u00a0", "%", "_", "\\", "'", "a\nb", "\ud7ff", "𐍈", "ÀÉ", "Σς",
    "\u1e9e", "\u2126",
]  # fmt: skip
CALLS = (
    "length(s), strlen(s), bit_length(s), ascii(s), unicode(s), ord(s), hex(s), md5(s), sha256(s), encode(s)",
    "upper(s), lower(s), reverse(s), left(s, n), right(s, n), substring(s, n), substring(s, n, 3), s[n], substr(s, -2)",
    "s || chr(0) || s, replace(s, chr(0), 'Z'), replace(s, 'a', ''), concat(s, n), concat_ws(chr(0), s, s), repeat(s, n)",
    "trim(s), ltrim(s, 'a'), rtrim(s, chr(0)), rpad(s, 8, '日本'), lpad(s, 3, 'é'), trim(s, ' a'), translate(s, 'aé', 'xy')",
    "strpos(s, 'b'), position('é' in s), instr(s, chr(0)), contains(s, chr(0)), starts_with(s, 'a'), ends_with(s, chr(0))",
    "s LIKE '%', s LIKE '_', s LIKE 'a_b', s ILIKE 'İ', s ILIKE 'é%', s ILIKE 'ΣΣ', s ILIKE 'k', s GLOB '*', s GLOB '?'",
    "regexp_matches(s, '^.$'), regexp_replace(s, '.', 'x', 'g'), regexp_extract(s, '(.)(.)', 2), regexp_full_match(s, '.*')",
    "regexp_extract_all(s, '.'), regexp_extract_all(s, '(a)?(.)', 1), regexp_escape(s), s SIMILAR TO 'a.b'",
    "split_part(s, '', 1), split_part(s, 'a', 2), split_part(s, chr(0), -1), string_split(s, ''), string_split(s, 'a')",
    "string_split(s, chr(0)), str_split_regex(s, '[aé]'), array_to_string(string_split(s, ''), chr(0))",
    "levenshtein(s, 'aé'), damerau_levenshtein(s[1:20], '日a'), jaccard(s || 'x', 'a'), jaro_winkler_similarity(s[1:9], 'aé')",
    "format('{}|{:>5}|{:<5}|{:^5}', s, s, s, s), printf('%s|%5s|%-5s', s, s, s), strip_accents(s), nfc_normalize(s)",
    "length_grapheme(s), left_grapheme(s, 1), right_grapheme(s, 1), substring_grapheme(s, 1, 1), url_encode(s)",
    "TRY_CAST(s AS INTEGER), TRY_CAST(s AS DOUBLE), TRY_CAST(s AS DATE), [s]::VARCHAR, {'a': s}::VARCHAR",
    "s = 'a' || chr(0) || 'b', s < 'é', s > chr(65535), greatest(s, 'b'), nullif(s, ''), s COLLATE NOCASE = 'A'",
    "rank() OVER (ORDER BY s), count(*) OVER (PARTITION BY s), string_agg(s, '' ORDER BY k) OVER ()",
)


@pytest.mark.parametrize("calls", CALLS)
def test_as_in_duckdb(calls: str) -> None:
    rows = range(len(TEXTS))
    table = pa.table({"k": list(rows), "s": TEXTS, "n": [n % 7 - 2 for n in rows]})
    ours, theirs = gquery.connect(device="python"), duckdb.connect()
    ours.register("t", table)
    theirs.register("t", table)
    sql = f"SELECT k, {calls} FROM t"
    want = theirs.execute(sql)
    types = [str(c[1]) for c in want.description or ()]
    assert compare(ours.sql(sql).fetchall(), want.fetchall(), False, types) is None


def test_texts_may_have_each_mark() -> None:
    """A text is taken apart at a character that none has, whichever that is."""
    texts = ["".join(map(chr, range(40))), "a\0\1\2b", "ab"]
    db = gquery.connect(device="python")
    db.register("t", pa.table({"s": texts}))
    assert db.sql("SELECT string_split(s, '') FROM t").fetchall() == [(list(s),) for s in texts]
    found = db.sql("SELECT regexp_extract_all(s, '(?s).') FROM t").fetchall()
    assert found == [(list(s),) for s in texts]
