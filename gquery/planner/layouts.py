"""How columns become numbers: the composite key of a join or a group, and the columns that a join table holds inline.

Where every key is exact and bounded, a tuple of keys is a number in mixed radix: ``(k0 - base0) + width0 * (k1 - base1)
+ ...``. NULL, where a key takes part with it, is one more value, the last. A small range of such numbers addresses
an array directly; any that fits 62 bits is the key of a hash table.
"""

from __future__ import annotations

from collections.abc import Sequence

from gquery.expression.expr import Column
from gquery.expression.facts import BITMAP_BITS, BYTE_BITS, INT64_BITS, UNBOUNDED
from gquery.expression.frozen import frozen
from gquery.expression.types import BIGINT, INT64, Bounds, PhysicalType, Register
from gquery.kernels.values import ValueProperties
from gquery.runtime.records import replace


@frozen
class KeyPart:
    """One key in a packing: values from ``base``, ``width`` of them, the last of which stands for NULL if ``nullable``.
    ``is_own``: they are those of one rank of several, whose kernels have one text. ``whole``: the values of all ranks, where a
    row whose key is looked up has one of its own rank's, if one of these at all; None where that is not known."""

    base: int
    width: int
    nullable: bool
    is_own: bool = False
    whole: Bounds | None = None

    def contains(self, bounds: Bounds | None, may_be_null: bool) -> bool:
        """Whether keys within these bounds are proved to be among the values; the payload of one that is NULL is 0, which another
        rank may have."""
        if bounds is None or (self.is_own and (self.whole is None or may_be_null)):
            return False
        values = self.whole or Bounds(self.base, self.base + self.width - self.nullable - 1)
        return values.low <= bounds.low and bounds.high <= values.high


@frozen
class KeyEncoding:
    """How keys become one integer, the first key in the lowest place."""

    parts: tuple[KeyPart, ...]

    @property
    def size(self) -> int:
        """How many different encoded keys there are."""
        size = 1
        for d in self.parts:
            size *= d.width
        return size

    @property
    def bits(self) -> tuple[int, ...] | None:
        """How many bits each key but the last has in the integer; None where they lie there by multiples of other numbers, or of
        numbers that are a rank's own."""
        widths = [part.width for part in self.parts[:-1]]
        if any(part.is_own for part in self.parts) or any(w & (w - 1) for w in widths):
            return None
        return tuple([w.bit_length() - 1 for w in widths])


def key_encoding_of(keys: Sequence[ValueProperties], with_nulls: Sequence[bool]) -> KeyEncoding | None:
    """The encoding of keys of which this is known, None where one is a float, a plain string or too wide."""
    parts = []
    for what, nulls in zip(keys, with_nulls, strict=True):
        if what.register is Register.BOOL:
            base, width = 0, 2
        elif what.register is Register.I64 and what.bounds is not None:
            base, width = what.bounds.low, what.bounds.width
        else:
            return None
        parts.append(KeyPart(base, width + nulls, nulls))
    key_encoding = KeyEncoding(tuple(parts))
    return key_encoding if key_encoding.size < UNBOUNDED else None


def in_bits(key_encoding: KeyEncoding) -> KeyEncoding:
    """The encoding with a power of two values for each key but the last, if that fits: keys are taken apart by shifts then, and
    not by divisions. For hash tables, where the range of numbers does not matter."""
    *first, last = key_encoding.parts
    rounded = [replace(p, width=1 << (p.width - 1).bit_length()) for p in first]
    made = KeyEncoding((*rounded, last))
    return made if made.size < UNBOUNDED else key_encoding


def is_raw_key(what: ValueProperties) -> bool:
    """Whether an integer of any size up to 64 bits can be the key of a hash table as it is: one value is left for NULL."""
    if what.register is not Register.I64 or what.bounds is None:
        return False
    return not what.nullable or what.bounds.width < 1 << INT64_BITS


def null_key(what: ValueProperties) -> int:
    """A number that is none of a column's values."""
    assert what.bounds is not None
    return what.bounds.high + 1 if what.bounds.high < INT64.high else what.bounds.low - 1


@frozen
class KeyFilter:
    """A small bitmap that is tested before a join table is: bit ``key >> shift`` of ``bits`` is set where some build row has such
    a key, so that neighbouring keys share a bit. ``is_table``: it is the table itself, a bitmap of keys that is as small."""

    shift: int
    bits: int
    is_table: bool = False

    @property
    def words(self) -> int:
        """How many words of 32 bits it has."""
        return self.bits // BITMAP_BITS + 1

    @property
    def shared_words(self) -> int:
        """How many words of 64 bits it takes of a GPU's shared memory."""
        return (self.words + 1) // 2


WORD_BITS = INT64_BITS - 2  # of all fields: the word is a positive int64


@frozen
class PayloadField:
    """A column as a field of ``bits`` bits from ``shift`` on: its value less ``base``, or ``null`` for NULL."""

    column: Column
    properties: ValueProperties
    base: int
    shift: int
    bits: int
    null: int | None


@frozen
class InlinePayload:
    """How columns become one integer: the fields side by side in its bits, plus 1."""

    fields: tuple[PayloadField, ...]

    @property
    def bits(self) -> int:
        return sum(f.bits for f in self.fields)

    @property
    def physical_type(self) -> PhysicalType:
        """The narrowest physical type that holds every payload."""
        largest = 1 << self.bits
        narrow = (PhysicalType.U8, PhysicalType.U16, PhysicalType.U32)
        return next((c for c in narrow if largest < 1 << BYTE_BITS * c.bytes), PhysicalType.I64)


def inline_payload_of(columns: Sequence[tuple[Column, ValueProperties]]) -> InlinePayload | None:
    """The payload of these columns; None where there are none, or one is text, a float or unbounded, or they are too wide."""
    fields: list[PayloadField] = []
    shift = 0
    for column, what in columns:
        if what.register is Register.BOOL:
            base, width = 0, 2
        elif what.register is Register.I64 and what.bounds is not None:
            base, width = what.bounds.low, what.bounds.width
        else:
            return None
        bits = (width - 1 + what.nullable).bit_length()
        fields.append(PayloadField(column, what, base, shift, bits, width if what.nullable else None))
        shift += bits
    return InlinePayload(tuple(fields)) if fields and shift <= WORD_BITS else None


def nullable(what: ValueProperties) -> ValueProperties:
    return ValueProperties(what.dtype, what.bounds, True, what.dictionary)


def range_properties(start: int, step: int, rows: int) -> ValueProperties:
    """What is known of the values of a range."""
    last = start + step * max(rows - 1, 0)
    return ValueProperties(BIGINT, Bounds(min(start, last), max(start, last)), False)
