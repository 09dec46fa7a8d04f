"""Files to damage, and the damage: flipped bits, cut ends, spans that are dropped, doubled, moved or taken from another file."""

from __future__ import annotations

import datetime
import io
import json
import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq

KINDS = ("parquet", "ipc", "csv", "json")
_WORDS = (
    "a",
    "bb",
    "tea",
    "jam",
    "",
    "Ünïcode",
    "日本",
    "x" * 30,
    'quo"te',
    "com,ma",
    "line\nbreak",
    "NULL",
    "1",
    "01",
)
_EDGES = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1)


def table(chance: random.Random, kind: str) -> pa.Table:
    """A small table of types that a file of the kind can hold."""
    rows = chance.choice((1, 7, 40, 200))
    makers = PLAIN if kind in ("csv", "json") else PLAIN | RICH
    names = chance.sample(sorted(makers), chance.randrange(1, min(6, len(makers))))
    nulls = chance.choice((0.0, 0.0, 0.3))
    columns = {}
    for name in names:
        type_, make = makers[name]
        values = [None if chance.random() < nulls else make(chance) for _ in range(rows)]
        array = pa.array(values, type_)
        has_codes = kind in ("parquet", "ipc") and chance.random() < 0.2 and _codes(type_)
        columns[name] = array.dictionary_encode() if has_codes else array
    return pa.table(columns)


def _codes(type_: pa.DataType) -> bool:
    return type_ in (pa.string(), pa.large_string(), pa.int64(), pa.float64())


Maker = tuple[Any, Callable[[random.Random], Any]]
PLAIN: dict[str, Maker] = {
    "small": (pa.int64(), lambda r: r.randrange(5)),
    "big": (pa.int64(), lambda r: r.randrange(-(2**62), 2**62)),
    "real": (pa.float64(), lambda r: r.choice((0.5, -1.25, 1e30, r.random()))),
    "text": (pa.string(), lambda r: r.choice(_WORDS)),
    "key": (pa.string(), lambda r: f"key {r.randrange(10**6)}"),
    "truth": (pa.bool_(), lambda r: r.random() < 0.5),
}
RICH: dict[str, Maker] = {
    "byte": (pa.int8(), lambda r: r.randrange(-128, 128)),
    "word": (pa.uint64(), lambda r: r.randrange(2**64)),
    "single": (pa.float32(), lambda r: r.choice((0.5, -1.25, 1e30))),
    "half": (pa.float16(), lambda r: r.choice((0.5, -1.25))),
    "money": (pa.decimal128(12, 2), lambda r: Decimal(r.randrange(-(10**11), 10**11)).scaleb(-2)),
    "wide": (pa.decimal128(38, 3), lambda r: Decimal(r.randrange(-(10**37), 10**37)).scaleb(-3)),
    "day": (pa.date32(), lambda r: datetime.date(1900, 1, 1) + datetime.timedelta(r.randrange(60_000))),
    "when": (
        pa.timestamp("us"),
        lambda r: datetime.datetime(1960, 1, 1) + datetime.timedelta(seconds=r.random() * 3e9),
    ),
    "coarse": (
        pa.timestamp("s"),
        lambda r: datetime.datetime(1960, 1, 1) + datetime.timedelta(days=r.randrange(30_000)),
    ),
    "long": (pa.large_string(), lambda r: r.choice(_WORDS)),
    "view": (pa.string_view(), lambda r: r.choice(_WORDS)),
    "list": (pa.list_(pa.int32()), lambda r: [r.randrange(9) for _ in range(r.randrange(4))]),
    "record": (pa.struct({"p": pa.int32(), "q": pa.string()}), lambda r: {"p": r.randrange(9), "q": r.choice(_WORDS)}),
    "raw": (pa.binary(), lambda r: r.randbytes(r.randrange(6))),
    "clock": (pa.time64("us"), lambda r: datetime.time(r.randrange(24), r.randrange(60))),
}


def file_of(chance: random.Random, kind: str) -> bytes:
    """A file of the kind that is as it should be."""
    held = table(chance, kind)
    sink = io.BytesIO()
    match kind:
        case "parquet":
            for column in held.column_names:  # which Parquet cannot hold
                if column == "half" or (column == "view" and chance.random() < 0.5):
                    held = (
                        held.drop_columns(column) if held.num_columns > 1 else pa.table({"small": range(held.num_rows)})
                    )
            pq.write_table(
                held, sink, row_group_size=chance.choice((7, 50, 1000)), use_dictionary=chance.random() < 0.6,
                compression=chance.choice(("none", "none", "none", "none", "snappy", "zstd", "gzip")),
                data_page_version=chance.choice(("1.0", "2.0")), data_page_size=chance.choice((64, 1 << 20)),
                write_statistics=chance.random() < 0.8, store_schema=chance.random() < 0.5,
                write_page_index=chance.random() < 0.3, store_decimal_as_integer=chance.random() < 0.3,
                write_page_checksum=chance.random() < 0.2,
            )  # fmt: skip
        case "ipc":
            options = pa.ipc.IpcWriteOptions(compression=chance.choice((None, None, None, "zstd", "lz4")))
            make = pa.ipc.new_file if chance.random() < 0.6 else pa.ipc.new_stream
            with make(sink, held.schema, options=options) as file:
                file.write_table(held.unify_dictionaries(), max_chunksize=chance.choice((5, 64, 1000)))
        case "csv":
            how = csv.WriteOptions(
                delimiter=chance.choice(",,;|\t"), include_header=chance.random() < 0.8,
                quoting_style=chance.choice(("needed", "all_valid")),
            )  # fmt: skip
            csv.write_csv(held, sink, how)
        case _:
            rows = held.to_pylist()
            form = chance.randrange(3)
            lines = [json.dumps(r, ensure_ascii=chance.random() < 0.5, indent=1 if form == 1 else None) for r in rows]
            sink.write((json.dumps(rows) if form == 2 else "\n".join(lines)).encode())
    return sink.getvalue()


def damaged(chance: random.Random, data: bytes, other: bytes, kind: str) -> bytes:
    """A file with one to three damages; ``other`` is one to take spans from."""
    made = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        if made and kind in ("csv", "json") and chance.random() < 0.5:
            _misspell(chance, made)
        elif made:
            _damage(chance, made, other)
    return bytes(made)


def _misspell(chance: random.Random, made: bytearray) -> None:
    """A letter or digit becomes another, a text's sign another of those."""
    at = chance.randrange(len(made))
    for kind in (b"0123456789", b"abcdefghijklmnopqrstuvwxyzABEN", b',;|\t\n"{}[]:.-+ \r\\'):
        if made[at] in kind:
            made[at] = chance.choice(kind)


def _damage(chance: random.Random, made: bytearray, other: bytes) -> None:
    at = _place(chance, len(made))
    span = min(chance.choice((1, 1, 2, 4, 8, 16, 64, 300)), len(made) - at)
    match chance.randrange(10):
        case 0 | 1 | 2:
            made[at] ^= 1 << chance.randrange(8)
        case 3:
            made[at] = chance.choice((0, 1, 255, 127, 128, 10, 34, 44, chance.randrange(256)))
        case 4:
            del made[at:]
        case 5:
            del made[at : at + span]
        case 6:
            made[at:at] = made[at : at + span]
        case 7:
            low = chance.randrange(len(other)) if other else 0
            made[at : at + span] = other[low : low + span]
        case 8:
            to = chance.randrange(len(made))
            moved = made[at : at + span]
            del made[at : at + span]
            made[to:to] = moved
        case _:
            width = chance.choice((1, 2, 4, 8))
            at -= at % width
            word = int.from_bytes(made[at : at + width], "little") + chance.choice((-1, 1, 7, 256))
            word = chance.choice((*_EDGES, word, word)) % (1 << (8 * width))
            made[at : at + width] = word.to_bytes(width, "little")[: len(made) - at]


def _place(chance: random.Random, size: int) -> int:
    """A byte to damage; as often as not near an end, where formats keep what describes the rest."""
    match chance.randrange(4):
        case 0:
            return chance.randrange(min(size, 400))
        case 1:
            return size - 1 - chance.randrange(min(size, 600))
        case _:
            return chance.randrange(size)
