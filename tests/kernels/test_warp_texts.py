"""Pages of texts as the lanes of a warp decode them, without a GPU; see `test_warp_pages`."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gquery.device.host import address_of
from gquery.kernels.builtin.held_texts import TextKernels
from gquery.kernels.primitives import (
    held_chunks,
    held_texts,
    packed,
    page_list,
    simulated,
    warp,
    warp_pages,
    warp_texts,
)
from gquery.kernels.primitives.held_texts import BYTES, FOUND, HIGHEST, OUTCOME, PAGE, STATE
from gquery.kernels.primitives.page_list import PAGE_WORDS
from gquery.kernels.primitives.pages import SLACK
from tests.io.test_held_texts import KINDS, OPTIONS, texts
from tests.support import marks
from tests.support.turns import in_turns

LANES = 32


def bound() -> dict[str, Any]:
    """Bodies on what lanes of a warp have of their own, and on memory that others see."""
    own = {name: getattr(simulated, name) for name in ("lane", "warp_barrier", "shuffle_down_i64", "shuffle_from_i64")}
    for name in ("atomic_add_i64", "atomic_max_i64"):
        own[name] = getattr(simulated, name)
    own["lanes"] = lambda: LANES
    found: dict[str, Any] = {}
    for module in (packed, held_chunks, held_texts, warp_pages, warp, warp_texts):
        for name, body in vars(module).items():
            if isinstance(body, FunctionType) and body.__module__ == module.__name__:
                found[name] = FunctionType(body.__code__, {**body.__globals__, **own}, name)
    for body in found.values():
        body.__globals__.update(found)
    return found


BODIES = bound()


def on_lanes(name: str, page: Any, found: Any, has_state: bool = False) -> None:
    """What each lane of a warp runs, of a page, each with a state of its own if it needs one."""
    together(lambda: BODIES[name](page, *([np.zeros(STATE, np.int64).data] if has_state else []), found))


def together(run: Callable[[], object]) -> None:
    """Has each lane of a warp run the same."""
    block = simulated.Block(LANES)

    def each(lane: int) -> None:
        simulated.enter(block, lane)
        run()

    in_turns([partial(each, lane) for lane in range(LANES)])


def decoded(path: Path, r: random.Random) -> tuple[list[bytes], bool] | None:
    """The texts of the first chunk of a file, and whether they are UTF-8; None where it contradicts itself."""
    chunk, has_levels = pq.read_metadata(path).row_group(0).column(0), pq.read_schema(path).field(0).nullable
    first = chunk.dictionary_page_offset if chunk.has_dictionary_page else chunk.data_page_offset
    about = np.array([[first, chunk.total_compressed_size, chunk.num_values, int(chunk.compression == "SNAPPY")]])
    with path.open("rb") as file:
        listed = TextKernels("cpu", lanes=1).list_pages(file.fileno(), about, has_levels, 4, 1 << 20)
        raw = np.frombuffer(path.read_bytes()[first : first + chunk.total_compressed_size] + bytes(SLACK), np.uint8)
    if listed is None:
        return None
    assert listed.shape[1] == PAGE_WORDS
    pages, found = np.zeros((len(listed), PAGE), np.int64), np.zeros((len(listed), FOUND), np.int64)
    starts = [0, *accumulate(int(page[page_list.SIZE]) + SLACK for page in listed)]
    scratch, room = (
        np.full(starts[-1], 77, np.uint8),
        [np.zeros(int(page[page_list.COUNT]) + 1, np.int64) for page in listed],
    )
    pages[:, held_texts.SOURCE] = address_of(raw) + listed[:, page_list.AT]
    pages[:, held_texts.LEADING : held_texts.LEVELS + 1] = listed[:, page_list.LEADING :]
    pages[:, held_texts.TARGET], pages[:, held_texts.BASE] = (
        address_of(scratch) + np.array(starts[:-1]),
        address_of(scratch),
    )
    pages[:, held_texts.WORDS] = [address_of(words) for words in room]
    pages[:, held_texts.DICTIONARY_WORDS], pages[:, held_texts.DICTIONARY_COUNT] = (
        address_of(room[0]),
        listed[0, page_list.COUNT],
    )
    for name in ("decompress_texts", "code_texts"):
        for page, made in zip(pages, found, strict=True):
            on_lanes(name, page.data, made.data, has_state=True)
    if not found[:, OUTCOME].all():
        return None
    is_data = listed[:, page_list.KIND] != page_list.DICTIONARY
    bytes_, rows = found[:, BYTES] * is_data, listed[:, page_list.COUNT] * is_data
    width = r.choice((4, 8))
    offsets, characters = np.full(int(rows.sum()) + 1, -1, f"i{width}"), np.full(int(bytes_.sum()) + 1, 77, np.uint8)
    pages[:, held_texts.BEFORE] = np.cumsum(bytes_) - bytes_
    pages[:, held_texts.PLACE] = address_of(characters) + pages[:, held_texts.BEFORE]
    pages[:, held_texts.ENDINGS] = address_of(offsets) + width * (1 + np.cumsum(rows) - rows)
    pages[:, held_texts.WIDTH] = width
    order = list(range(len(pages)))
    r.shuffle(order)
    for name in ("place_texts", "check_texts"):
        for number in order:
            on_lanes(name, pages[number].data, found[number].data)
    assert characters[-1] == 77
    whole = characters[:-1].tobytes()
    assert found[is_data, HIGHEST].max() == max(whole, default=0)
    return [whole[low:high] for low, high in pairwise(offsets)], bool(found[:, OUTCOME].all())


@pytest.mark.parametrize(("kind", "how"), marks.in_turns(2, KINDS, range(len(OPTIONS))))
def test_lanes_decode_pages_together(kind: str, how: int, tmp_path: Path) -> None:
    r = random.Random(f"{kind} {how}")
    array = texts(kind, r.choice((1, 33, 70)), r)
    pq.write_table(
        pa.table([array], pa.schema([pa.field("c", array.type, r.random() < 0.7)])),
        tmp_path / "a.parquet",
        **OPTIONS[how],
    )
    assert decoded(tmp_path / "a.parquet", r) == ([text.encode() for text in array.to_pylist()], True)


@pytest.mark.parametrize("seed", range(30))
def test_lanes_end_together_where_bytes_are_damaged(seed: int, tmp_path: Path) -> None:
    r = random.Random(seed)
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"c": texts(r.choice(KINDS), 40, r)}), path, **r.choice(OPTIONS))
    raw, chunk = bytearray(path.read_bytes()), pq.read_metadata(path).row_group(0).column(0)
    first = chunk.dictionary_page_offset if chunk.has_dictionary_page else chunk.data_page_offset
    for _ in range(r.randint(1, 3)):
        raw[first + r.randrange(chunk.total_compressed_size)] = r.randrange(256)
    path.write_bytes(raw)
    made = decoded(path, r)
    assert made is None or len(made[0]) == 40


def test_utf_8() -> None:
    """As Python has it: every end of a range, cut off, too long, and surrogates."""
    r = random.Random(0)
    ends = [
        0,
        0x7F,
        0x80,
        0x8F,
        0x90,
        0x9F,
        0xA0,
        0xBF,
        0xC0,
        0xC1,
        0xC2,
        0xDF,
        0xE0,
        0xED,
        0xEE,
        0xEF,
        0xF0,
        0xF4,
        0xF5,
        0xFF,
    ]
    for _ in range(4000):
        some = bytes(r.choices(ends, k=r.randrange(6)))
        if r.random() < 0.5:
            some = (chr(r.choice((0x41, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF))).encode() + some)[
                : r.randrange(1, 7)
            ]
        raw = np.frombuffer(some + bytes(8), np.uint8)
        try:
            is_text = some.decode() is not None
        except UnicodeDecodeError:
            is_text = False
        assert held_texts.is_utf8(address_of(raw), address_of(raw) + len(some)) is is_text, some
