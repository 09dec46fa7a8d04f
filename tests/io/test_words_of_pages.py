"""Words that files, columns and kernels tell each other have one number in all of them; layers above one another do not import
these from each other."""

from __future__ import annotations

from types import ModuleType

import pytest

from gquery.columns import held_pages, page_values
from gquery.io import pages
from gquery.kernels.primitives import held_chunks, held_texts, page_list
from gquery.kernels.primitives import pages as pages_of_kernels

_OF_A_PAGE = {
    "PAGE_SOURCE": "SOURCE", "PAGE_KIND": "KIND", "PAGE_TARGET": "TARGET", "PAGE_BASE": "BASE", "PAGE_WORDS": "WORDS",
    "PAGE_DICTIONARY": "DICTIONARY_WORDS", "PAGE_ENTRIES": "DICTIONARY_COUNT", "PAGE_PLACE": "PLACE",
    "PAGE_ENDINGS": "ENDINGS", "PAGE_WIDTH": "WIDTH", "PAGE_BEFORE": "BEFORE", "PAGE": "PAGE", "IS_DONE": "OUTCOME",
    "BYTES": "BYTES", "FOUND": "FOUND",
}  # fmt: skip
_OF_A_LIST = {n: n for n in ("AT", "LEADING", "SIZE", "KIND", "COUNT", "LEVELS", "PLAIN", "CODES", "DICTIONARY")} | {
    "PACKED": "PACKED_SIZE", "CODEC": "IS_PACKED",
}  # fmt: skip
_OF_A_CHUNK = {n: n for n in ("OUTCOME", "ROWS", "FALLS", "CHANGES", "LONGEST", "FOUND")}
_OF_A_STATE = {n: n for n, value in vars(pages).items() if n.isupper() and n[0] != "_" and type(value) is int}


@pytest.mark.parametrize(
    ("here", "there", "names"),
    [
        (held_pages, held_texts, _OF_A_PAGE),
        (held_pages, page_list, _OF_A_LIST),
        (page_values, held_chunks, _OF_A_CHUNK),
        (pages, pages_of_kernels, _OF_A_STATE),
    ],
)
def test_words_have_one_number(here: ModuleType, there: ModuleType, names: dict[str, str]) -> None:
    assert {n: getattr(here, n) for n in names} == {n: getattr(there, other) for n, other in names.items()}
    assert len(names) >= 6


def test_the_longest_page_has_a_length() -> None:
    assert held_pages.LONGEST_PAGE == (1 << held_texts.LENGTH_BITS) - 1
