"""Text columns in memory that several threads give a dictionary, a piece each."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from gquery import tuning
from gquery.columns import encode_strings
from gquery.columns.arrow import export_column
from gquery.columns.encode_strings import import_strings, import_strings_in_phases, piece_rows
from gquery.columns.table import Dictionary
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
def test_pieces_give_what_the_whole_gives(kind: str, type_: pa.DataType, tune: Tune) -> None:
    array = pa.chunked_array([_texts(kind)]).cast(type_)
    whole = import_strings(array)
    tune(tuning.encoding, least_piece=100, largest_piece=100, piece_rows_an_entry=0)
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
