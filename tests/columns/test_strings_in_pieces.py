"""Text columns in memory that several threads give a dictionary, a piece each."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from gquery import tuning
from gquery.api.startup import load_engine
from gquery.columns import encode_strings
from gquery.columns.arrow import export_column
from gquery.columns.arrow_buffers import bits_of, offsets_of
from gquery.columns.encode_strings import (
    characters_of,
    import_strings,
    import_strings_in_phases,
    piece_rows,
    table_size,
)
from gquery.columns.table import Dictionary
from gquery.kernels.builtin import text_coding
from gquery.runtime.threads import run_phases
from tests.support.tuned import Tune

ROWS = 5_000


def _texts(kind: str) -> pa.Array:
    r = np.random.default_rng(2)
    known = np.array(["", "a", "é", "zz", "a longer text than most", "a\0b"])
    texts = known[r.integers(0, len(known), ROWS)].astype(object)
    match kind:
        case "few":
            return pa.array(texts)
        case "NULLs":
            return pa.array(texts, mask=r.random(ROWS) < 0.3)
        case "NULLs in one piece":
            return pa.array(texts, mask=np.arange(ROWS) // 100 == 17)
        case "a piece of NULLs":
            return pa.array(texts, mask=np.arange(ROWS) < 700)
        case "all NULL":
            return pa.nulls(ROWS, pa.string())
        case "all different":
            return pa.array([f"text {k}" for k in range(ROWS)])
        case "different behind a beginning that repeats":
            return pa.array([*["same"] * 4_000, *(f"text {k}" for k in range(1_000))])
        case "sorted":
            return pa.array(sorted(texts))
        case _:
            return pa.array([], pa.string())


@pytest.mark.parametrize(
    "type_", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int16(), pa.string())]
)
@pytest.mark.parametrize(
    "kind",
    [
        "few", "NULLs", "NULLs in one piece", "a piece of NULLs", "all NULL", "all different",
        "different behind a beginning that repeats", "sorted", "none",
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_coded", [False, True], ids=["by Arrow", "in one table"])
def test_pieces_give_what_the_whole_gives(
    kind: str, type_: pa.DataType, is_coded: bool, tune: Tune, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_engine()
    array = pa.chunked_array([_texts(kind)]).cast(type_)
    whole = import_strings(array)
    tune(tuning.encoding, least_piece=100, largest_piece=100, piece_rows_an_entry=0)
    if is_coded:
        tune(tuning.encoding, coded_rows=1, coded_texts=1, coded_slots=1, coded_block=64, piece=700, union_part=3)
        monkeypatch.setattr(encode_strings, "core_count", lambda: 5)
    made = run_phases([import_strings_in_phases(array)], 3)[0]
    assert export_column(made).equals(export_column(whole))
    assert made.statistics == whole.statistics and made.physical_type is whole.physical_type
    if isinstance(whole.dictionary, Dictionary):
        assert isinstance(made.dictionary, Dictionary) and made.dictionary.values.equals(whole.dictionary.values)
    else:
        assert made.dictionary is None


@pytest.mark.parametrize("cores", [1, 2, 16, 96])
@pytest.mark.parametrize("rows", [1, 200_000, 5_000_000, 100_000_000])
@pytest.mark.parametrize("distinct", [1, 10_000, 200_000, 1_000_000])
def test_dictionaries_that_are_joined_have_few_entries(
    cores: int, rows: int, distinct: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every core has a piece, and beyond that no piece is so short that joining what it holds takes as long as reading it."""
    monkeypatch.setattr(encode_strings, "core_count", lambda: cores)
    size, limits = piece_rows(rows, distinct), tuning.encoding
    pieces = -(-rows // size)
    assert size >= limits.least_piece
    assert pieces >= min(cores, rows // limits.least_piece)
    assert pieces <= cores or 2 * size >= min(distinct * limits.piece_rows_an_entry, rows // cores)
    assert pieces <= cores or size <= max(
        limits.largest_piece, limits.least_piece, distinct * limits.piece_rows_an_entry
    )


@pytest.mark.parametrize("type_", [pa.string(), pa.large_string()])
@pytest.mark.parametrize("has_nulls", [False, True])
def test_threads_enter_texts_into_one_table(type_: pa.DataType, has_nulls: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against Arrow: each row's slot has its text, and no text has two; a slice, whose offsets do not begin at 0."""
    monkeypatch.setattr(text_coding, "core_count", lambda: 4)
    r = np.random.default_rng(3)
    numbers = r.integers(0, 30_000, 300_001)
    texts = pa.array([f"{'x' * (k % 23)}{k}" if k else "" for k in range(30_000)], type_)
    whole = texts.take(pa.array(numbers, mask=r.random(len(numbers)) < 0.2 if has_nulls else None)).slice(1)
    valid = bits_of(whole, 0) if has_nulls else None
    size = table_size(30_000)
    made = text_coding.code_texts(offsets_of(whole), characters_of(whole), valid, size, 30_000)
    assert made is not None and made.size == size
    place = np.full(size, -1)
    place[made.used] = np.arange(len(made.used))
    slots = made.slots if valid is None else np.where(valid, made.slots, 0)  # of NULL it is anything
    codes = pa.array(place[slots], mask=None if valid is None else valid == 0)
    assert whole.take(pa.array(made.first)).take(codes).equals(whole)
    assert len(made.used) == len(whole.drop_null().unique())
    assert text_coding.code_texts(offsets_of(whole), characters_of(whole), valid, table_size(20_000), 20_000) is None
