"""Chunks of Parquet as the lanes of a warp decode them, without a GPU: 32 threads that run in turns until they wait for others or
meet them, so that what one reads before others have written it is wrong here, and lanes that part for good never end."""

from __future__ import annotations

import random
from decimal import Decimal
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gquery.device.host import address_of
from gquery.io.held_cuts import cut
from gquery.kernels.builtin.held_pages import Kernels
from gquery.kernels.primitives import held_chunks, packed, page_list, page_texts, pages, simulated, warp_pages
from gquery.kernels.primitives.held_chunks import CHANGES, CHUNK, FALLS, FOUND, LONGEST, OUTCOME, ROWS
from tests.support.turns import in_turns

BLOCK, LIMIT, SLACK = 16, 8, 64
LANES = 32
OPTIONS: dict[str, dict[str, Any]] = {
    "dictionary": {},
    "plain": {"use_dictionary": False},
    "not packed": {"compression": "none"},
    "version 2": {"data_page_version": "2.0"},
    "many pages": {"data_page_size": 64, "write_batch_size": 32},
    "the highest byte first": {"use_dictionary": False},
    "codes of texts": {},
}


def bound(wanted: str) -> Any:
    """A primitive on what lanes of a warp have of their own, and on memory that others see."""
    own = {name: getattr(simulated, name) for name in ("lane", "warp_barrier", "shuffle_down_i64", "shuffle_from_i64")}
    for name in ("atomic_add_i64", "atomic_min_i64", "atomic_max_i64"):
        own[name] = getattr(simulated, name)
    own["lanes"] = lambda: LANES
    found: dict[str, Any] = {}
    for module in (packed, page_texts, pages, held_chunks, warp_pages):
        for name, body in vars(module).items():
            if isinstance(body, FunctionType) and body.__module__ == module.__name__:
                found[name] = FunctionType(body.__code__, {**body.__globals__, **own}, name)
    for body in found.values():
        body.__globals__.update(found)
    return found[wanted]


READ_HELD, SNAPPY = bound("read_held"), bound("snappy_decompress")


def decoded(
    path: Path, width: int, known: tuple[int, ...] = (), part: tuple[int, int, int] | None = None
) -> tuple[list[int], np.ndarray[Any, Any], list[int], list[int]]:
    """The values of the first chunk of a file, what was found of them, and the extremes of their blocks. With ``known`` entries
    of its dictionary the page that has them is not read. Of a part alone whose first byte, last one and values are told."""
    chunk = pq.read_metadata(path).row_group(0).column(0)
    first = chunk.dictionary_page_offset if chunk.has_dictionary_page else chunk.data_page_offset
    rows, has_levels = chunk.num_values, pq.read_schema(path).field(0).nullable
    raw = np.frombuffer(path.read_bytes()[first : first + chunk.total_compressed_size] + bytes(SLACK), np.uint8)
    words, flags, entries = np.zeros(rows, np.int64), np.zeros(rows + SLACK, np.uint8), np.zeros(rows, np.int64)
    scratch = np.zeros(chunk.total_uncompressed_size + SLACK, np.uint8)
    values, made = np.zeros(rows, np.int64), np.zeros(FOUND, np.int64)
    blocks = -(-rows // BLOCK)
    low, high = np.full(blocks, 2**63 - 1), np.full(blocks, -(2**63))
    state = np.zeros(pages.STATE + 1, np.int64)
    begin, end, rows = part or (0, chunk.total_compressed_size, rows)
    for word, value in (
        (pages.SOURCE, address_of(raw)), (pages.HAVE, end), (pages.WORDS, address_of(words)),
        (pages.ROOM, rows), (pages.SCRATCH, address_of(scratch)), (pages.SIZE, len(scratch) - SLACK), (pages.LEFT, rows),
        (pages.VALUES, rows), (pages.WIDTH, width), (pages.CODEC, int(chunk.compression == "SNAPPY")),
        (pages.LEVELS, int(has_levels)), (pages.FLAGS, address_of(flags)), (pages.DICTIONARY, address_of(entries)),
        (pages.ENTRY_ROOM, rows),
    ):  # fmt: skip
        state[word] = value
    if known:
        state[pages.AT], state[pages.ENTRIES], entries[: len(known)] = chunk.data_page_offset - first, len(known), known
        state[pages.ENTRY_ROOM] = 0
    if part:
        state[pages.AT] = begin
    about = np.zeros(CHUNK, np.int64)
    about[:] = address_of(values), 0, 8, BLOCK, LIMIT
    block = simulated.Block(LANES)

    def run(lane: int) -> None:
        simulated.enter(block, lane)
        READ_HELD(state.copy().data, about.data, made.data, low.data, high.data)

    in_turns([partial(run, lane) for lane in range(LANES)])
    return values[:rows].tolist(), made, low.tolist(), high.tolist()


def longest(values: list[int]) -> int:
    """The least power of two that no run of equal values exceeds."""
    length = 1
    while any(a == b for a, b in zip(values, values[length:], strict=False)) and length <= LIMIT:
        length *= 2
    return length


@pytest.mark.parametrize("how", OPTIONS)
@pytest.mark.parametrize("kind", ["sorted", "few", "far", "alike"])
def test_lanes_decode_a_chunk_together(kind: str, how: str, tmp_path: Path) -> None:
    r = random.Random(f"{kind} {how}")
    rows = r.choice((1, 33, 130))
    values = {
        "sorted": sorted(r.choices(range(rows), k=rows)), "few": r.choices((7, -1, 2**40), k=rows),
        "far": [r.randint(-(10**17), 10**17) for _ in range(rows)], "alike": [5] * rows,
    }[kind]  # fmt: skip
    array, width, known = pa.array(values, pa.int64()), 8, tuple[int, ...]()
    if how == "the highest byte first":
        array, width = pa.array([Decimal(v) for v in values], pa.decimal128(18)), -8
    if how == "codes of texts":
        array, width, known = pa.array([f"{v} times" for v in values]), 0, tuple(dict.fromkeys(values))
    table = pa.table([array], pa.schema([pa.field("c", array.type, nullable=r.random() < 0.7)]))
    pq.write_table(table, tmp_path / "a.parquet", **OPTIONS[how])
    made, found, low, high = decoded(tmp_path / "a.parquet", width, known)
    steps = list(pairwise(values))
    falls = sum(b < a for a, b in steps)
    assert made == values
    assert (found[OUTCOME], found[ROWS], found[FALLS]) == (pages.DONE, rows, falls)
    assert found[CHANGES] == sum(a != b for a, b in steps)
    assert falls or found[LONGEST] == longest(values)
    assert low == [min(values[at : at + BLOCK]) for at in range(0, rows, BLOCK)]
    assert high == [max(values[at : at + BLOCK]) for at in range(0, rows, BLOCK)]


@pytest.mark.parametrize("how", ["dictionary", "given up", "plain", "version 2"])
@pytest.mark.parametrize("rows", [1, 30])
def test_parts_of_a_chunk_have_its_dictionary(how: str, rows: int, tmp_path: Path) -> None:
    """A warp that begins at any page, one for each or for some, and where the dictionary was given up before."""
    path, r = tmp_path / "a.parquet", random.Random(how)
    values = r.choices(range(40), k=130)
    options = {**OPTIONS.get(how, {}), "max_rows_per_page": 20}
    if how == "given up":
        options |= {"dictionary_pagesize_limit": 100, "data_page_size": 40, "write_batch_size": 16}
    pq.write_table(pa.table({"c": values}), path, **options)
    chunk = pq.read_metadata(path).row_group(0).column(0)
    first = chunk.dictionary_page_offset if chunk.has_dictionary_page else chunk.data_page_offset
    about = np.array([[first, chunk.total_compressed_size, 130, 1]])
    with path.open("rb") as file:
        listed = Kernels("cpu", lanes=1).list_pages(file.fileno(), about, True, 8, 1 << 20)
    assert listed is not None
    entries = int(listed[listed[:, page_list.KIND] == page_list.DICTIONARY, page_list.COUNT].sum())
    assert bool(entries) == (how != "plain")
    parts, made = cut(listed, rows), list[int]()
    for part in zip(parts.begin.tolist(), parts.end.tolist(), parts.values.tolist(), strict=True):
        some, found, _, _ = decoded(path, 8, tuple(dict.fromkeys(values))[:entries], part)
        assert (found[OUTCOME], found[ROWS]) == (pages.DONE, part[2])
        made += some
    assert made == values and len(parts.values) >= (7 if rows == 1 else 3)


@pytest.mark.parametrize("seed", range(30))
def test_lanes_end_together_where_bytes_are_damaged(seed: int, tmp_path: Path) -> None:
    r = random.Random(seed)
    path = tmp_path / "a.parquet"
    how = r.choice(("dictionary", "plain", "not packed", "version 2"))
    pq.write_table(pa.table({"c": r.choices(range(50), k=70)}), path, **OPTIONS[how])
    raw, chunk = bytearray(path.read_bytes()), pq.read_metadata(path).row_group(0).column(0)
    first = chunk.dictionary_page_offset if chunk.has_dictionary_page else chunk.data_page_offset
    for _ in range(r.randint(1, 3)):
        raw[first + r.randrange(chunk.total_compressed_size)] = r.randrange(256)
    path.write_bytes(raw)
    made, found, _, _ = decoded(path, 8)
    assert found[ROWS] <= 70 and len(made) == 70
    assert found[OUTCOME] in range(7)


def mixed(r: random.Random) -> bytes:
    """Bytes of which some repeat: near and far, short and long, or as they are."""
    made = bytearray(r.randbytes(r.randrange(1, 9)))
    while len(made) < r.choice((1, 40, 700)):
        match r.randrange(5):
            case 0:
                made += r.randbytes(r.choice((1, 3, 31, 32, 33, 59, 60, 61, 300)))
            case 1:
                made += bytes([made[-1]]) * r.choice((4, 20, 70))
            case 2:
                made += r.randrange(1000).to_bytes(8, "little")
            case _:
                distance = r.choice((1, 2, 3, 7, 8, 9, 31, 33, 200))
                made += bytes(made[-distance:]) * r.choice((1, 2, 9))
    return bytes(made)


def unpacked(packed_bytes: bytes, room: int, alone: bool) -> tuple[int, bytes]:
    """What bytes of Snappy stand for, by one processor or by lanes of a warp, and how many bytes that are."""
    raw = np.frombuffer(packed_bytes + bytes(SLACK), np.uint8)
    target, block, outcomes = np.zeros(room + SLACK, np.uint8), simulated.Block(LANES), list[int]()
    source, place = address_of(raw), address_of(target)
    if alone:
        return packed.snappy_decompress(source, len(packed_bytes), place, room), bytes(target[:room])

    def run(lane: int) -> None:
        simulated.enter(block, lane)
        outcomes.append(SNAPPY(source, len(packed_bytes), place, room))

    in_turns([partial(run, lane) for lane in range(LANES)])
    assert len(set(outcomes)) == 1
    return outcomes[0], bytes(target[:room])


@pytest.mark.parametrize("seed", range(60))
def test_lanes_unpack_what_one_processor_does(seed: int) -> None:
    r = random.Random(seed)
    data = mixed(r)
    raw = bytes(pa.Codec("snappy").compress(data, asbytes=True))
    assert unpacked(raw, len(data), alone=False) == (len(data), data)
    if len(data) > 1:
        assert unpacked(raw, len(data) - 1, alone=False)[0] == -1
    damaged = bytearray(raw)
    for _ in range(r.randint(1, 3)):
        damaged[r.randrange(len(damaged))] = r.randrange(256)
    damaged = damaged[: r.choice((len(damaged), r.randint(1, len(damaged))))]
    ours, theirs = (unpacked(bytes(damaged), len(data), alone) for alone in (False, True))
    assert ours[0] == theirs[0]
    assert ours[0] < 0 or ours[1][: ours[0]] == theirs[1][: ours[0]]
