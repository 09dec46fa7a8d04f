"""What a Parquet file's footer tells of its chunks: a struct of Thrift's compact protocol, read once, in one pass. Of CPUs alone.

A table says which fields of which structs are wanted: a word for each of `FIELDS` fields of a kind of struct, 0 for one that is
passed by, else what it must be, and behind eight bits, of the kind of struct or the word of the chunk. What a file holds is not
ours: bytes are read up to the end that is given, and what contradicts the table is told.
"""

from __future__ import annotations

from gquery.kernels.primitives.packed import varint_word
from gquery.kernels.primitives.python.integers import (
    add_i64,
    and_i64,
    eq_i64,
    gt_i64,
    i64,
    lt_i64,
    min_i64,
    mul_i64,
    ne_i64,
    neg_i64,
    shl_i64,
    shr_i64,
    shr_u64,
    sub_i64,
    xor_i64,
)
from gquery.kernels.primitives.python.memory import (
    load_i64,
    load_u8,
    load_word_unaligned,
    store_i64,
    store_word_unaligned,
)
from gquery.kernels.primitives.python.values import Pointer

VALUE = 0  # as in `primitives.packed`
SOURCE, END, TABLE, MADE, ROOM, COLUMNS, WORDS = range(1, 8)
"""Words of the state: where the footer's bytes begin and end, where the table lies, where a row of ``WORDS`` words for each chunk
goes, how many rows there is room for, and how many chunks a row group has."""
CHUNKS, GROUPS, ORDERS, DEPTH, STACK, STATE = 8, 9, 10, 11, 12, 64
"""How many chunks, row groups and columns in the order of their type there are; how deep structs and lists lie within each
other, and for each the element's kind of a list, 0 for a struct; the kind of struct; elements that are left, or the last field.
The last is the number of words."""
FIELDS = 32
INTEGER, BYTES, STRUCT, STRUCTS, REFUSED = range(1, 6)
"""What a field must be: an integer; bytes, of which the row gets place and length; a struct; a list of them; not there."""
FOOTER, GROUP, CHUNK, META, STATISTICS, SIZES, ORDER, BY_TYPE, KINDS = range(1, 10)
"""Kinds of structs; 0 is one of which nothing is wanted. The last is their number."""
WANTED: dict[int, dict[int, tuple[int, int | str]]] = {
    FOOTER: {4: (STRUCTS, GROUP), 7: (STRUCTS, ORDER)},
    GROUP: {1: (STRUCTS, CHUNK)},
    CHUNK: {1: (REFUSED, 0), 3: (STRUCT, META), 8: (REFUSED, 0)},  # in another file; encrypted
    META: {
        1: (INTEGER, "type"), 4: (INTEGER, "codec"), 5: (INTEGER, "values"), 6: (INTEGER, "unpacked"), 7: (INTEGER, "packed"),
        9: (INTEGER, "data_page"), 11: (INTEGER, "dictionary_page"), 12: (STRUCT, STATISTICS), 16: (STRUCT, SIZES),
    },
    STATISTICS: {3: (INTEGER, "nulls"), 5: (BYTES, "high_at"), 6: (BYTES, "low_at")},
    SIZES: {1: (INTEGER, "text_bytes")},
    ORDER: {1: (STRUCT, BY_TYPE)},
}  # fmt: skip
"""The wanted fields of structs, by their numbers in Parquet's definition, and what they must be."""
DETAIL = 8  # bits of a table's word below the kind of struct or the word of the chunk
_DEEPEST = 15


def _begin_struct(element: int, kind: int, left: int, state: Pointer) -> bool:
    """Go on within a list of so many elements, or a struct; whether that may be there."""
    depth = add_i64(load_i64(state, DEPTH), 1)
    if gt_i64(depth, _DEEPEST):
        return False
    frame = add_i64(STACK, mul_i64(depth, 3))
    store_i64(state, DEPTH, depth)
    store_i64(state, frame, element)
    store_i64(state, add_i64(frame, 1), kind)
    store_i64(state, add_i64(frame, 2), left)
    if ne_i64(element, 0):
        return True
    chunks = load_i64(state, CHUNKS)
    behind = mul_i64(load_i64(state, GROUPS), load_i64(state, COLUMNS))
    if eq_i64(kind, GROUP):
        store_i64(state, GROUPS, add_i64(load_i64(state, GROUPS), 1))
        return eq_i64(chunks, behind)
    if eq_i64(kind, CHUNK):
        store_i64(state, CHUNKS, add_i64(chunks, 1))
        return lt_i64(chunks, min_i64(behind, load_i64(state, ROOM)))
    if eq_i64(kind, BY_TYPE):
        store_i64(state, ORDERS, add_i64(load_i64(state, ORDERS), 1))
    return True


def _store_wanted(wanted: int, value: int, state: Pointer) -> None:
    """A value into the word of the last chunk that a field's entry in the table names."""
    row = mul_i64(sub_i64(load_i64(state, CHUNKS), 1), load_i64(state, WORDS))
    store_word_unaligned(add_i64(load_i64(state, MADE), shl_i64(add_i64(row, shr_i64(wanted, 8)), 3)), value)


def _begin_list(at: int, end: int, wanted: int, state: Pointer) -> int:
    """Begin a list or set; the address of its first element, 0 where it is none."""
    byte, what = load_u8(at), and_i64(wanted, 255)
    size, element = shr_i64(byte, 4), and_i64(byte, 15)
    at = add_i64(at, 1)
    if eq_i64(size, 15):
        at = varint_word(at, end, state)
        size = load_i64(state, VALUE)
    if eq_i64(at, 0) or lt_i64(size, 0) or gt_i64(size, sub_i64(end, at)) or eq_i64(element, 0):
        return i64(0)
    if ne_i64(what, 0) and (ne_i64(what, STRUCTS) or ne_i64(element, 12)):
        return i64(0)
    if _begin_struct(element, shr_i64(wanted, 8), size, state):
        return at
    return i64(0)


def _struct_value(at: int, end: int, kind: int, wanted: int, state: Pointer) -> int:
    """Read a value of a kind, of structs and lists the beginning; the address behind, 0 where it is not there or not what is
    ``wanted``."""
    what, value = and_i64(wanted, 255), i64(0)
    if eq_i64(kind, 12):
        if (eq_i64(what, 0) or eq_i64(what, STRUCT)) and _begin_struct(0, shr_i64(wanted, 8), 0, state):
            return at
        return i64(0)
    if (eq_i64(kind, 9) or eq_i64(kind, 10)) and lt_i64(at, end):
        return _begin_list(at, end, wanted, state)
    if lt_i64(kind, 3) or gt_i64(kind, 8):
        return i64(0)
    if eq_i64(kind, 3):
        at = add_i64(at, 1)
    if eq_i64(kind, 7):
        at = add_i64(at, 8)
    if ne_i64(kind, 3) and ne_i64(kind, 7):
        at = varint_word(at, end, state)
        value = load_i64(state, VALUE)
    if eq_i64(kind, 8):
        if eq_i64(at, 0) or lt_i64(value, 0) or gt_i64(value, sub_i64(end, at)):
            return i64(0)
        if eq_i64(what, BYTES):
            _store_wanted(wanted, sub_i64(at, load_i64(state, SOURCE)), state)
            _store_wanted(add_i64(wanted, 256), value, state)
            what = i64(0)
        at = add_i64(at, value)
    if eq_i64(what, INTEGER) and gt_i64(kind, 3) and lt_i64(kind, 7):
        _store_wanted(wanted, xor_i64(shr_u64(value, 1), neg_i64(and_i64(value, 1))), state)
        what = i64(0)
    if ne_i64(what, 0):
        return i64(0)
    return at


def _struct_field(at: int, end: int, frame: int, state: Pointer) -> int:
    """Read a field of the struct that a frame of the stack is about, or its end; the address behind, 0 where it is none."""
    byte = load_u8(at)
    kind, step, field = and_i64(byte, 15), shr_i64(byte, 4), load_i64(state, add_i64(frame, 2))
    at = add_i64(at, 1)
    if eq_i64(byte, 0):
        store_i64(state, DEPTH, sub_i64(load_i64(state, DEPTH), 1))
        return at
    field = add_i64(field, step)
    if eq_i64(step, 0):
        at = varint_word(at, end, state)
        if eq_i64(at, 0):
            return i64(0)
        value = load_i64(state, VALUE)
        field = xor_i64(shr_u64(value, 1), neg_i64(and_i64(value, 1)))
    store_i64(state, add_i64(frame, 2), field)
    wanted = i64(0)
    if gt_i64(field, 0) and lt_i64(field, FIELDS):
        entry = add_i64(mul_i64(load_i64(state, add_i64(frame, 1)), FIELDS), field)
        wanted = load_word_unaligned(add_i64(load_i64(state, TABLE), shl_i64(entry, 3)))
    if eq_i64(kind, 1) or eq_i64(kind, 2):  # a boolean, which has no bytes
        if eq_i64(wanted, 0):
            return at
        return i64(0)
    return _struct_value(at, end, kind, wanted, state)


def _list_element(at: int, end: int, frame: int, state: Pointer) -> int:
    """Read an element of the list that a frame of the stack is about, or end it; the address behind, 0 where it is none."""
    kind, left, struct = load_i64(state, frame), load_i64(state, add_i64(frame, 2)), load_i64(state, add_i64(frame, 1))
    if eq_i64(left, 0):
        store_i64(state, DEPTH, sub_i64(load_i64(state, DEPTH), 1))
        return at
    store_i64(state, add_i64(frame, 2), sub_i64(left, 1))
    if eq_i64(kind, 1) or eq_i64(kind, 2):
        return add_i64(at, 1)
    wanted = i64(0)
    if ne_i64(struct, 0):
        wanted = add_i64(shl_i64(struct, 8), STRUCT)
    return _struct_value(at, end, kind, wanted, state)


def read_footer(state: Pointer) -> bool:
    """Read a footer, and write a row for each of its chunks; whether it is one."""
    at, end = load_i64(state, SOURCE), load_i64(state, END)
    store_i64(state, DEPTH, -1)
    if not _begin_struct(0, FOOTER, 0, state):
        return False
    while lt_i64(at, end):
        depth = load_i64(state, DEPTH)
        frame = add_i64(STACK, mul_i64(depth, 3))
        if ne_i64(load_i64(state, frame), 0):
            at = _list_element(at, end, frame, state)
        else:
            at = _struct_field(at, end, frame, state)
        if eq_i64(at, 0):
            return False
        if lt_i64(load_i64(state, DEPTH), 0):
            return eq_i64(at, end)
    return False
