"""Loops of `primitives.packed` as a warp of a GPU runs them: its lanes decode one page together.

All lanes of a warp run the same code on the same values, each with a state of its own, and part what is long: copies, codes and
plain values. What other lanes have written is read behind a barrier.
"""

from __future__ import annotations

from gquery.kernels.primitives.packed import _LONGEST, _element_length, _snappy_elements, _write_element, swapped
from gquery.kernels.primitives.python.integers import (
    add_i64,
    and_i64,
    eq_i64,
    from_bool,
    ge_i64,
    gt_i64,
    i64,
    le_i64,
    lt_i64,
    max_i64,
    min_i64,
    mod_i64,
    mul_i64,
    ne_i64,
    neg_i64,
    or_i64,
    shl_i64,
    shr_i64,
    shr_u64,
    sub_i64,
)
from gquery.kernels.primitives.python.memory import load_u8, load_word_unaligned, store_byte, store_word
from gquery.kernels.primitives.simulated import lane, shuffle_down_i64, shuffle_from_i64, warp_barrier

_LANES = 32
_DOUBLINGS = 5  # that lead from any lane to any other
_LONG = 512  # bytes from which on words are copied


def copy_words(source: int, target: int, length: int) -> None:
    """Copy bytes, for all lanes to read; of what lies before the target some may be those that are written, again and again."""
    distance, k = sub_i64(target, source), lane()
    if gt_i64(distance, 0) and lt_i64(distance, length):
        while lt_i64(k, length):
            store_byte(add_i64(target, k), load_u8(add_i64(source, mod_i64(k, distance))))
            k = add_i64(k, _LANES)
    if ge_i64(length, _LONG) and lt_i64(k, length):
        head = and_i64(neg_i64(target), 7)
        words = shr_i64(sub_i64(length, head), 3)
        while lt_i64(k, head):
            store_byte(add_i64(target, k), load_u8(add_i64(source, k)))
            k = add_i64(k, _LANES)
        k = lane()
        while lt_i64(k, words):
            at = add_i64(head, shl_i64(k, 3))
            store_word(add_i64(target, at), load_word_unaligned(add_i64(source, at)))
            k = add_i64(k, _LANES)
        k = add_i64(add_i64(head, shl_i64(words, 3)), lane())
    while lt_i64(k, length):
        store_byte(add_i64(target, k), load_u8(add_i64(source, k)))
        k = add_i64(k, _LANES)
    warp_barrier()


def repeat_bytes(source: int, target: int, length: int) -> None:
    """The same."""
    copy_words(source, target, length)


def copy_text(source: int, target: int, length: int) -> None:
    """The same."""
    copy_words(source, target, length)


def snappy_decompress(source: int, size: int, target: int, room: int) -> int:
    """Write what ``size`` bytes of Snappy stand for, at most ``room`` bytes; how many there are, -1 where they are none. Each
    lane looks at what an element would be that begins at its byte; those that do are followed, each byte of up to 32 that they
    stand for is a lane's, and what it copies of bytes among these is found by doubling steps."""
    at, end, out, last, mine = _snappy_elements(source, size), add_i64(source, size), i64(target), add_i64(target, room), lane()
    while lt_i64(at, end):
        element, read, made, inner = _element_here(add_i64(at, mine)), i64(0), i64(0), i64(0)
        address, root, going = i64(at), i64(mine), i64(1)
        while eq_i64(going, 1):
            going = i64(0)
            found = shuffle_from_i64(element, read)
            taken, length, offset = and_i64(found, 255), and_i64(shr_i64(found, 8), 255), shr_i64(found, 16)
            behind, to = add_i64(read, taken), add_i64(made, length)
            fits = and_i64(from_bool(gt_i64(taken, 0)), from_bool(le_i64(to, _LANES)))
            if gt_i64(add_i64(at, behind), end) or gt_i64(to, sub_i64(last, out)):
                fits = i64(0)
            if gt_i64(offset, add_i64(sub_i64(out, target), made)):
                fits = i64(0)
            if eq_i64(fits, 1):
                if ge_i64(mine, made) and lt_i64(mine, to):
                    address = add_i64(add_i64(add_i64(at, read), 1), sub_i64(mine, made))
                    if gt_i64(offset, 0):
                        root = sub_i64(mine, offset)
                        address = add_i64(out, root)
                        if lt_i64(root, 0):  # of what lies before
                            root = i64(mine)
                if gt_i64(offset, 0) and lt_i64(offset, to):
                    inner = i64(1)
                read, made = i64(behind), i64(to)
                going = and_i64(from_bool(lt_i64(read, _LANES)), from_bool(lt_i64(add_i64(at, read), end)))
        if eq_i64(made, 0):  # one that is long, or rare, or none
            length = _element_length(load_word_unaligned(at))
            at = _write_element(at, end, out, sub_i64(last, out), sub_i64(out, target))
            if lt_i64(at, 0):
                return i64(-1)
            out = add_i64(out, length)
        else:
            rounds = mul_i64(inner, _DOUBLINGS)
            while gt_i64(rounds, 0):
                root, rounds = shuffle_from_i64(root, root), sub_i64(rounds, 1)
            byte = i64(0)
            if lt_i64(mine, made) and eq_i64(root, mine):
                byte = load_u8(address)
            byte = shuffle_from_i64(byte, root)
            if lt_i64(mine, made):
                store_byte(add_i64(out, mine), byte)
            warp_barrier()
            at, out = add_i64(at, read), add_i64(out, made)
    if gt_i64(at, end):
        return i64(-1)
    return sub_i64(out, target)


def snappy_texts(source: int, size: int, target: int, room: int) -> int:
    """The same."""
    return snappy_decompress(source, size, target, room)


def _element_here(at: int) -> int:
    """The element of Snappy that begins at an address: bytes that it takes, 0 for one that is told by more than 3, then those
    that it stands for, and how far before them they were written, 0 where they follow."""
    word = load_word_unaligned(at)
    kind, upper = and_i64(word, 3), and_i64(shr_u64(word, 2), 63)
    taken, length, offset = add_i64(upper, 2), add_i64(upper, 1), i64(0)
    if eq_i64(kind, 0) and ge_i64(upper, _LONGEST):
        taken = i64(0)
    if eq_i64(kind, 1):
        taken, length = i64(2), add_i64(and_i64(upper, 7), 4)
        offset = or_i64(shl_i64(shr_u64(upper, 3), 8), and_i64(shr_u64(word, 8), 255))
    if eq_i64(kind, 2):
        taken, offset = i64(3), and_i64(shr_u64(word, 8), 0xFFFF)
    if eq_i64(kind, 3) or (ne_i64(kind, 0) and eq_i64(offset, 0)):
        taken = i64(0)
    return or_i64(taken, or_i64(shl_i64(length, 8), shl_i64(offset, 16)))


def fill_bytes(target: int, count: int, bit: int) -> None:
    """Write so many bytes of 0 or 1."""
    k = lane()
    while lt_i64(k, count):
        store_byte(add_i64(target, k), bit)
        k = add_i64(k, _LANES)


def repeat_word(target: int, word: int, count: int) -> None:
    """Write a word so many times to an address."""
    k = lane()
    while lt_i64(k, count):
        store_word(add_i64(target, shl_i64(k, 3)), word)
        k = add_i64(k, _LANES)


def packed_words(at: int, width: int, count: int, dictionary: int, entries: int, target: int) -> int:
    """Write the words of a dictionary that so many codes, packed in ``width`` bits, stand for to an address; the greatest code:
    beyond the last one they stand for that."""
    mask, most, k = sub_i64(shl_i64(1, width), 1), i64(0), lane()
    while lt_i64(k, count):
        bit = mul_i64(k, width)
        packed = shr_u64(load_word_unaligned(add_i64(at, shr_i64(bit, 3))), and_i64(bit, 7))
        code = and_i64(packed, mask)
        most = max_i64(most, code)
        word = load_word_unaligned(add_i64(dictionary, shl_i64(min_i64(code, sub_i64(entries, 1)), 3)))
        store_word(add_i64(target, shl_i64(k, 3)), word)
        k = add_i64(k, _LANES)
    offset = i64(16)
    while ne_i64(offset, 0):
        most = max_i64(most, shuffle_down_i64(most, offset))
        offset = shr_i64(offset, 1)
    return shuffle_from_i64(most, 0)


def plain_words(at: int, end: int, width: int, count: int, words: int) -> bool:
    """Write so many integers of ``width`` bytes, 4 or 8, to an address, or of 1 to 8 with the highest first where it is below 0;
    whether all are there."""
    size, k = max_i64(width, neg_i64(width)), lane()
    if eq_i64(width, 0) or gt_i64(mul_i64(count, size), sub_i64(end, at)):
        return False
    surplus = sub_i64(64, shl_i64(size, 3))
    while lt_i64(k, count):
        word = load_word_unaligned(add_i64(at, mul_i64(k, size)))
        if lt_i64(width, 0):
            word = swapped(word)
        else:
            word = shl_i64(word, surplus)
        store_word(add_i64(words, shl_i64(k, 3)), shr_i64(word, surplus))
        k = add_i64(k, _LANES)
    return True
