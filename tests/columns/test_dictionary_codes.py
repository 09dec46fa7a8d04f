"""Dictionaries beside one another, against Python's own."""

from __future__ import annotations

import gc
import random

import pyarrow as pa
import pytest

from gquery.columns import dictionary_codes
from gquery.columns.dictionary_codes import codes_among, union_dictionary
from gquery.columns.table import Dictionary

TEXTS = ["", "a", "ab", "b", "é", "zz", "\U0001f600", "\x00", "a\x00b"]


def dictionary(texts: set[str], type_: pa.DataType) -> Dictionary:
    return Dictionary(pa.array(sorted(texts, key=str.encode), type_))


@pytest.mark.parametrize("types", [(pa.string(), pa.string()), (pa.string(), pa.large_string())], ids=["one", "both"])
def test_codes_and_unions_are_those_of_the_entries(types: tuple[pa.DataType, pa.DataType]) -> None:
    chance = random.Random(9)
    for _ in range(200):
        sets = [set(chance.sample(TEXTS, chance.randrange(len(TEXTS)))) for _ in types]
        source, target = (dictionary(s, t) for s, t in zip(sets, types, strict=True))
        expected = [-1 if (code := target.code_of(text)) is None else code for text in source.strings]
        assert codes_among(source, target).tolist() == expected
        assert union_dictionary([source, target]).strings == (sorted(sets[0] | sets[1], key=str.encode) or [""])


def test_what_was_looked_up_lives_no_longer_than_the_dictionaries() -> None:
    source, target = dictionary({"a", "b"}, pa.string()), dictionary({"b"}, pa.string())
    assert codes_among(source, target) is codes_among(source, target)
    before = len(dictionary_codes._known)
    del source, target
    gc.collect()
    assert len(dictionary_codes._known) < before
