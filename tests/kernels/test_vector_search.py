"""Searching 64 bytes at a time finds what `bytes.find` finds, and reads no page but those of the text."""

from __future__ import annotations

import ctypes
import mmap
import random
import struct
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

from gquery.kernels.lowering.module import module_text
from gquery.kernels.lowering.names import ENTRY
from gquery.kernels.primitives import vector_search
from gquery.kernels.targets import cpu_code, cpu_llvm
from tests.support.harness import assert_same

Search = Callable[[int, int, bytes], int]
"""Where a needle stands, from an address up to another: its address, or -1."""


def compiled() -> Search:
    made = cpu_llvm.library().find("_next_place", ("i64",) * 4)
    words = [f"%w{n} = getelementptr i64, i64* %words, i64 {n}\n%v{n} = load i64, i64* %w{n}" for n in range(5)]
    call = f"%found = call i64 @{made.symbol}(i64 %v0, i64 %v1, i64 %v2, i64 %v3)"
    store = "%place = inttoptr i64 %v4 to i64*\nstore i64 %found, i64* %place\nret void\n}"
    head = f"define void @{ENTRY}(i64 %lo, i64 %hi, i64* %words) {{"
    text = module_text(made, cpu_code.head(), ["\n".join([head, *words, call, store])])
    entry = cpu_llvm.load(cpu_code.object_code(text))
    found = ctypes.c_int64()

    def search(start: int, end: int, needle: bytes) -> int:
        kept = ctypes.create_string_buffer(needle)
        entry(0, 1, struct.pack("=5q", start, end, ctypes.addressof(kept), len(needle), ctypes.addressof(found)))
        return found.value

    return search


def interpreted(start: int, end: int, needle: bytes) -> int:
    kept = ctypes.create_string_buffer(needle)
    return vector_search._next_place(start, end, ctypes.addressof(kept), len(needle))


@pytest.fixture
def pages() -> Iterator[int]:
    """The address of two pages that can be read and written, between two that cannot."""
    size = mmap.PAGESIZE
    area = mmap.mmap(-1, 4 * size)
    held = ctypes.c_char.from_buffer(area)
    address = ctypes.addressof(held)
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    for page in (0, 3):
        assert protect(address + page * size, size, 0) == 0
    yield address + size
    for page in (0, 3):
        protect(address + page * size, size, mmap.PROT_READ | mmap.PROT_WRITE)
    del held
    area.close()


def test_no_other_page_is_read(pages: int) -> None:
    search, r = compiled(), random.Random(1)
    page, both = mmap.PAGESIZE, 2 * mmap.PAGESIZE
    for _ in range(6000):
        length = r.choice((0, 1, 2, 3, 7, 8, 30, 62, 63, 64, 65, 66, 127, 128, 129, 200, 1000))
        ends = [n for n in (length, page - 1, page, page + 1, page + 40, both - 1, both) if n >= length]
        end = r.choice(ends)
        text = bytes(r.choices(b"ab", (9, 1), k=length))
        ctypes.memset(pages, ord("b"), both)  # what stands around the text is what is looked for
        ctypes.memmove(pages + end - length, text, length)
        needle = bytes(r.choices(b"ab", (6, 1), k=r.choice((1, 1, 2, 2, 3, 8, 9, 70))))
        start = pages + end - length
        want = text.find(needle)
        assert search(start, pages + end, needle) == (want if want < 0 else start + want), (text, needle, end)


def test_the_body_itself() -> None:
    r = random.Random(2)
    for _ in range(300):
        around = bytes(r.choices(b"ab", (4, 1), k=4 * mmap.PAGESIZE))
        kept = ctypes.create_string_buffer(around)
        first = r.randrange(mmap.PAGESIZE, 2 * mmap.PAGESIZE)
        end = first + r.choice((0, 1, 5, 63, 64, 65, 150))
        needle = bytes(r.choices(b"ab", k=r.choice((1, 2, 3, 9))))
        start = ctypes.addressof(kept)
        want = around.find(needle, first, end)
        assert interpreted(start + first, start + end, needle) == (want if want < 0 else start + want)


def test_like_over_texts_of_all_lengths() -> None:
    r = random.Random(3)
    words = ["special", "requests", "s", "sp", "requ", "ä", "€uro", "😀", " ", "pending special", "%", "_"]
    texts = ["".join(r.choices(words, k=r.choice((0, 1, 2, 5, 20, 80)))) for _ in range(700)]
    tables = {"t": pa.table({"n": range(700), "s": pa.array([None if r.random() < 0.05 else t for t in texts])})}
    for pattern in (
        "%special%requests%",
        "%s%s%s%",
        "%ä%",
        "%€uro%😀%",
        "sp%requ%sp",
        "%p%",
        "%special%special%special%",
        "%%",
    ):
        assert_same(f"SELECT n FROM t WHERE s LIKE '{pattern}'", tables, ordered=True)
        assert_same(f"SELECT count(*) FROM t WHERE s NOT LIKE '{pattern}'", tables)
    for part in ("s", "sp", "special", "requests", "😀", "absent", "pending special requests"):
        assert_same(f"SELECT n, position('{part}' IN s) FROM t WHERE contains(s, '{part}')", tables, ordered=True)
