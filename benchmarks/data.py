"""Columns of the microbenchmarks, made where they are used: NumPy's on the CPU, CuPy's on a GPU, from one generator.

Numbers come from a counter that is mixed (the finalizer of SplitMix64), so that every device gets the same data and any
slice of them can be made alone. The mixer is a bijection of 64 bits: mixed counters are unique and look random, which is
what sparse keys are made from. Plain integers are registered as a user would, as arrays; strings and decimals have no
array type, so their columns are laid out here as `gquery.columns.encode` lays them out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import gquery
from gquery.columns.table import ColumnData, ColumnStatistics, Table
from gquery.device.buffer import Buffer
from gquery.device.device import Device
from gquery.expression.types import (
    BIGINT,
    DOUBLE,
    INTEGER,
    VARCHAR,
    Bounds,
    DType,
    Field,
    PhysicalType,
    Schema,
    physical_type_for,
)
from gquery.io.memory import import_device_array

Tables = dict[str, Mapping[str, Any]]  # by table and column: arrays of int64 or int32, or a Column
CHECK = "check"  # instead of a table's name: arrays that queries do not read, only the checks of their answers

STRING_BYTES = 49
_BLOCK = 1 << 16  # rows of random words that strings are put together from
_CHUNK = 1 << 22  # rows a step, where a step takes a multiple of the rows' memory
_JOINT = 25  # bytes of a string that come from one row of the block; the others come from another row
_WORDS = (
    "special", "requests", "pending", "deposits", "accounts", "packages", "foxes", "ideas", "theodolites",
    "instructions", "dependencies", "excuses", "platelets", "asymptotes", "courts", "dolphins", "sleep", "wake",
    "haggle", "nag", "cajole", "detect", "integrate", "boost", "furious", "sly", "careful", "blithe", "quick",
    "final", "ironic", "even", "bold", "silent", "regular", "express", "above", "along", "across", "against",
)  # fmt: skip
WHOLE = "the one string that a search by equality finds   "  # what row 7 holds
assert len(WHOLE) == STRING_BYTES


@dataclass(frozen=True)
class Maker:
    """Makes arrays on a device; ``xp`` is its module of array functions."""

    device: Device

    @property
    def xp(self) -> Any:
        return self.device.xp

    def random(self, rows: int, below: int, seed: int) -> Any:
        """``rows`` integers from 0 to ``below`` - 1 as int64, uniform, independent between seeds."""
        return (self._mixed(rows, seed) % np.uint64(below)).astype(np.int64)

    def unique(self, rows: int, seed: int) -> Any:
        """``rows`` different int64 over the whole range, in no order."""
        return self._mixed(rows, seed).view(np.int64)

    def permutation(self, rows: int, seed: int) -> Any:
        """0 to ``rows`` - 1 in random order, as int64."""
        return self.xp.argsort(self._mixed(rows, seed)).astype(np.int64)

    def sparse(self, numbers: Any) -> Any:
        """Other numbers for numbers: different ones for different ones, over the whole range of int64."""
        return mix(numbers.view(np.uint64) + np.uint64(0x5851F42D4C957F2D)).view(np.int64)

    def _mixed(self, rows: int, seed: int, first: int = 0) -> Any:
        return mix(self.xp.arange(first, first + rows, dtype=np.uint64) + np.uint64(seed << 40))

    # ---- columns that are no arrays ----------------------------------------------------------------------------------

    def integers(self, array: Any, below: int) -> ColumnData:
        """int64 from 0 to ``below`` - 1 as a column of integers, in the narrowest physical type."""
        bounds = Bounds(0, below - 1)
        data = array.astype(physical_type_for(bounds).numpy)
        return _column(BIGINT, data, bounds)

    def narrow(self, rows: int, below: int, seed: int) -> ColumnData:
        """What `random` makes as a column of integers; made part by part, so that little more memory is used than for it."""
        bounds = Bounds(0, below - 1)
        made = self.xp.empty(rows, physical_type_for(bounds).numpy)
        for at in range(0, rows, _CHUNK):
            made[at : at + _CHUNK] = self._mixed(min(_CHUNK, rows - at), seed, at) % np.uint64(below)
        return _column(BIGINT, made, bounds)

    def decimals(self, array: Any, dtype: DType, bounds: Bounds) -> ColumnData:
        """int64 as a column of a decimal type, in the narrowest physical type, as one that was loaded from Arrow."""
        return _column(dtype, array.astype(physical_type_for(bounds).numpy), bounds)

    def strings(self, matrix: Any, distinct: int) -> ColumnData:
        """A matrix of bytes, a row each, as a column of strings with 64-bit offsets; `matrix` makes its memory."""
        rows, width = matrix.shape
        offsets = self.xp.arange(rows + 1, dtype=np.int64) * width
        stats = ColumnStatistics(None, 0, distinct)
        return ColumnData(
            VARCHAR, PhysicalType.STRING64, rows, Buffer(offsets), None, Buffer(matrix.reshape(-1)), statistics=stats
        )  # fmt: skip

    def matrix(self, rows: int, width: int) -> Any:
        """Room for strings of equal width, with what a kernel may read behind the last one."""
        return self.device.zeros(rows * width + 16, np.uint8)[: rows * width].reshape(rows, width)

    def sentences(self, rows: int) -> Any:
        """Strings of `STRING_BYTES` random words; '%special%requests%' is in about one of a hundred. Each is the beginning
        of one row and the end of another of a block that was made on the host, so nearly all of them differ."""
        generator = np.random.default_rng(1)
        words = np.array(_WORDS)[generator.integers(0, len(_WORDS), (_BLOCK, 16))]
        text = "".join(" ".join(row)[:STRING_BYTES] for row in words.tolist())
        block = self.device.from_host(np.frombuffer(text.encode(), np.uint8)).reshape(_BLOCK, STRING_BYTES)
        made = self.matrix(rows, STRING_BYTES)
        for seed, at in enumerate(range(0, rows, _CHUNK), start=1):
            part = made[at : at + _CHUNK]
            part[:, :_JOINT] = block[self.random(len(part), _BLOCK, 2 * seed), :_JOINT]
            part[:, _JOINT:] = block[self.random(len(part), _BLOCK, 2 * seed + 1), _JOINT:]
        made[7 % rows] = self.device.from_host(np.frombuffer(WHOLE.encode(), np.uint8))
        return made

    def numbered(self, numbers: Any, prefix: str, digits: int) -> Any:
        """Strings like 'key-000000042': a prefix and each number's last digits."""
        made = self.matrix(int(numbers.size), len(prefix) + digits)
        made[:, : len(prefix)] = self.device.from_host(np.frombuffer(prefix.encode(), np.uint8))
        for place in range(digits):
            made[:, len(prefix) + place] = (numbers // 10 ** (digits - 1 - place) % 10 + 48).astype(np.uint8)
        return made


def _column(dtype: DType, array: Any, bounds: Bounds) -> ColumnData:
    """An array of the narrowest type as a column."""
    rows = int(array.size)
    stats = ColumnStatistics(bounds, 0, min(rows, bounds.width))
    return ColumnData(dtype, physical_type_for(bounds), rows, Buffer(array), statistics=stats)


def mix(numbers: Any) -> Any:
    """The finalizer of SplitMix64, a bijection of uint64."""
    z = numbers.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def register(connection: gquery.Connection, tables: Tables) -> None:
    """Make the tables known to a connection. Arrays on a GPU become columns as they lie: nobody writes to them, and as arrays
    they would be copied."""
    for name, columns in tables.items():
        if name == CHECK:
            continue
        if not any(isinstance(c, ColumnData) or hasattr(c, "__cuda_array_interface__") for c in columns.values()):
            connection.register(name, dict(columns))
            continue
        made = [c if isinstance(c, ColumnData) else import_device_array(c, _type(c)) for c in columns.values()]
        schema = Schema(tuple(Field(n, c.dtype, False) for n, c in zip(columns, made, strict=True)))
        connection.register(name, Table(schema, tuple(made), made[0].length))


def _type(array: Any) -> DType:
    return {"int64": BIGINT, "int32": INTEGER, "float64": DOUBLE}[str(array.dtype)]


def exact_sum(array: Any) -> int:
    """The sum of int64 without overflow, as long as there are fewer than 2**31 of them."""
    return (int((array >> 32).sum()) << 32) + int((array & 0xFFFFFFFF).sum())


def fingerprint(key: Any, value: Any) -> int:
    """A sum over rows, modulo 2**64, that is linear in the values: equal over rows and over their sums by key, and by luck
    alone where any key has a wrong sum."""
    return int((mix(key.view(np.uint64)) * value.view(np.uint64)).sum(dtype=np.uint64))


def occurrences(xp: Any, matrix: Any, words: tuple[str, ...]) -> int:
    """In how many rows of a matrix of bytes the words follow each other, with anything between them."""
    total = 0
    for at in range(0, len(matrix), _CHUNK >> 2):
        part = matrix[at : at + (_CHUNK >> 2)]
        found = xp.ones(len(part), np.bool_)
        start = xp.zeros(len(part), np.int64)
        for word in words:
            places = part.shape[1] - len(word) + 1
            hits = xp.arange(places)[None, :] >= start[:, None]
            for n, byte in enumerate(word.encode()):
                hits &= part[:, n : n + places] == byte
            found &= hits.any(axis=1)
            start = hits.argmax(axis=1) + len(word)
        total += int(found.sum())
    return total
