"""Chunks of a column in a Parquet file: its bytes are read as the pages need them. Of CPUs alone, as GPUs read no files."""

from __future__ import annotations

from gquery.kernels.primitives.packed import copy_words
from gquery.kernels.primitives.pages import (
    ARE_TEXTS,
    AT,
    BEHIND,
    BYTES,
    CHUNKS,
    CODEC,
    COUNT,
    DESCRIPTION,
    DONE,
    ENTRIES,
    FAILED,
    FILE,
    FOUND_DICTIONARY,
    HAVE,
    LEFT,
    MADE,
    MORE_BYTES,
    NEED,
    NEXT,
    PACKED,
    PACKING,
    POSITION,
    SOURCE,
    START,
    TEXTS,
    VALUES,
    WINDOW,
    read_pages,
    take_dictionary,
)
from gquery.kernels.primitives.python.integers import (
    add_i64,
    eq_i64,
    gt_i64,
    i64,
    lt_i64,
    min_i64,
    ne_i64,
    sub_i64,
)
from gquery.kernels.primitives.python.memory import (
    load_i64,
    load_word_unaligned,
    read_file,
    store_i64,
)
from gquery.kernels.primitives.python.values import Pointer


def _next_chunk(state: Pointer) -> None:
    """Go on to the chunk that is described next."""
    described = load_i64(state, NEXT)
    values = load_word_unaligned(add_i64(described, COUNT))
    store_i64(state, POSITION, load_word_unaligned(add_i64(described, START)))
    store_i64(state, BEHIND, load_word_unaligned(add_i64(described, PACKED)))
    store_i64(state, CODEC, load_word_unaligned(add_i64(described, PACKING)))
    store_i64(state, VALUES, values)
    store_i64(state, LEFT, values)
    store_i64(state, HAVE, 0)
    store_i64(state, AT, 0)
    store_i64(state, ENTRIES, 0)
    if eq_i64(load_i64(state, ARE_TEXTS), 1):  # no codes stay
        store_i64(state, TEXTS, 0)
        store_i64(state, BYTES, 0)
    store_i64(state, NEXT, add_i64(described, DESCRIPTION))
    store_i64(state, CHUNKS, sub_i64(load_i64(state, CHUNKS), 1))


def _more_bytes(state: Pointer) -> int:
    """Move the bytes that are not read yet to the front, and read more of the chunk behind them: `DONE` where some came."""
    source, at = load_i64(state, SOURCE), load_i64(state, AT)
    left, room = sub_i64(load_i64(state, HAVE), at), load_i64(state, WINDOW)
    if eq_i64(left, room) or gt_i64(load_i64(state, NEED), room):
        return i64(MORE_BYTES)
    if gt_i64(left, 0) and gt_i64(at, 0):
        copy_words(add_i64(source, at), source, left)
    position, behind = load_i64(state, POSITION), load_i64(state, BEHIND)
    got = read_file(load_i64(state, FILE), add_i64(source, left), min_i64(sub_i64(room, left), behind), position)
    if lt_i64(got, 1):
        return i64(FAILED)
    store_i64(state, AT, 0)
    store_i64(state, HAVE, add_i64(left, got))
    store_i64(state, POSITION, add_i64(position, got))
    store_i64(state, BEHIND, sub_i64(behind, got))
    return i64(DONE)


def read_chunks(state: Pointer) -> int:
    """Read chunks of a file, one after another, and write their values as words: until no chunk is left, or something is missing.
    What it ended with; the state says how far it came. Words of texts are codes into the texts of all chunks together."""
    store_i64(state, MADE, 0)
    while gt_i64(load_i64(state, LEFT), 0) or gt_i64(load_i64(state, CHUNKS), 0):
        if eq_i64(load_i64(state, LEFT), 0):
            _next_chunk(state)
        outcome = read_pages(state)
        if eq_i64(outcome, MORE_BYTES):
            outcome = _more_bytes(state)
        if eq_i64(outcome, FOUND_DICTIONARY):
            outcome = take_dictionary(state)
        if ne_i64(outcome, DONE):
            return outcome
    return i64(DONE)
