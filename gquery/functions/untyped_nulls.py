"""Calls with an untyped NULL among their arguments: NULL, of the type that DuckDB's signatures give.

A strict function is not called with NULL. What is left to say is the type of its result, which DuckDB takes from the signature
that the arguments reach at the least cost, NULL being taken for the type of each parameter. A result whose type would follow
from those of the arguments (an element, a DECIMAL) has none then: it is an untyped NULL again. `overloads` has the signatures,
by name, of DuckDB's functions that are strict; other calls are left to gquery's declarations, as they look at NULL.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from gquery.expression.expr import Expr
from gquery.expression.nested_types import list_of, struct_of
from gquery.expression.types import BLOB, JSON, NULL, UUID, DType, Kind, decimal
from gquery.functions.casts import fits, is_integer_literal, is_text_literal
from gquery.functions.overloads import OVERLOADS
from gquery.runtime.records import cached_property, dataclass

# DuckDB's cost of a target type: numbers of 64 bits are taken before others, texts and nested values after them
_COSTS = {
    "BIGINT": 101, "INTEGER": 102, "HUGEINT": 103, "DOUBLE": 104, "DECIMAL": 105, "TIMESTAMP_NS": 119, "TIMESTAMP": 120,
    "TIMESTAMPTZ": 123, "VARCHAR": 149, "JSON": 150, "STRUCT": 160, "MAP": 160, "LIST": 160, "ANY": 5,
}  # fmt: skip
_OTHERS = 110
_AS_JSON = 200  # of any value
_OF_LITERAL = 90  # by which an integer literal is nearer to a type that holds it
_OF_TEXT = 20  # of a text literal, to any type
_FIRST = 1000  # what is said of NULL alone comes first
_NULL = '"NULL"'
_OPEN = ("K", "V", "T")  # types that stand for any
_ENTRY = f'STRUCT("key" {_NULL},"value" {_NULL})'
_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
_UNSIGNED = ("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT")
_FRACTIONS = ("DECIMAL", "FLOAT", "DOUBLE")
_WIDER = {
    "DECIMAL": ("FLOAT", "DOUBLE"), "FLOAT": ("DOUBLE",), "DATE": ("TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMP_NS"),
    "TIMESTAMP": ("TIMESTAMPTZ", "TIMESTAMP_NS"),
    **{t: (*_INTEGERS[n + 1 :], *_FRACTIONS) for n, t in enumerate(_INTEGERS)},
    **{t: (*_UNSIGNED[n + 1 :], *_INTEGERS[n + 1 :], *_FRACTIONS) for n, t in enumerate(_UNSIGNED)},
}  # fmt: skip
"""By type those that it is cast to without being asked for."""
_MADE = (Kind.NULL, Kind.DECIMAL, Kind.LIST, Kind.STRUCT, Kind.MAP, Kind.BLOB, Kind.OPAQUE)  # of more than a name
_RESULTS = {
    _NULL: NULL, "JSON": JSON, "UUID": UUID, "BLOB": BLOB, "HUGEINT": decimal(38, 0),
    **{k.value.replace(" WITH TIME ZONE", "TZ"): DType(k) for k in Kind if k not in _MADE},
}  # fmt: skip
_PARAMETER = re.compile(r"(?:[^,(]|\([^)]*\))+")
SYMBOLS = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "int_divide": "//", "modulo": "%", "negate": "-",
    "_concat_operator": "||", "_glob": "~~~", "_plus": "+", "_bit_and": "&", "_bit_or": "|", "_bit_not": "~",
    "_shift_left": "<<", "_shift_right": ">>",
}  # fmt: skip
"""Operators, by the names under which they are declared."""


@dataclass(frozen=True)
class Overload:
    """A signature: the types of its parameters, that of those that may follow, and that of the result where an argument is NULL;
    ``""`` where NULL is an argument like others."""

    types: tuple[str, ...]
    more: str
    result: str

    @cached_property
    def dtype(self) -> DType:
        """The type of the result."""
        return _type(self.result)


def nearest(name: str, args: Sequence[Expr]) -> list[Overload] | None:
    """The signatures that are nearest to a call, of which there should be one; None where it is left to gquery's declarations."""
    overloads = _overloads(name)
    if not overloads or any(a.dtype.kind is Kind.OPAQUE for a in args):
        return None
    costs = [(c, o) for o in overloads if (c := _cost(o, args)) is not None]
    least = min((c for c, _ in costs), default=0)
    return [o for c, o in costs if c == least]


@cache
def _overloads(name: str) -> tuple[Overload, ...]:
    """The signatures of a strict function of DuckDB's; none of other functions.

    >>> [str(o.types) for o in _overloads("last_day")]
    ["('DATE',)", "('TIMESTAMP',)", "('TIMESTAMPTZ',)"]
    """
    return tuple(map(_overload, filter(None, _by_name().get(SYMBOLS.get(name, name), "").split("; "))))


@cache
def _by_name() -> dict[str, str]:
    lines = (line.partition(": ") for line in OVERLOADS.strip().replace("\n  ", " ").splitlines())
    return {name: text for names, _, text in lines for name in names.split()}


def _overload(text: str) -> Overload:
    types, _, result = text.strip().partition(">")
    listed, _, more = types.partition("...")
    return Overload(tuple(_PARAMETER.findall(listed)), more, result)


def _type(result: str) -> DType:
    """The type of a result, NULL where gquery has none."""
    if result.endswith("[]"):
        return list_of(_type(result[:-2]))
    return struct_of([("key", NULL), ("value", NULL)]) if result == _ENTRY else _RESULTS.get(result, NULL)


# ---- costs -----------------------------------------------------------------------------------------------------------------


def _cost(o: Overload, args: Sequence[Expr]) -> int | None:
    """How far arguments are from a signature; None where it does not take them."""
    if len(args) < len(o.types) or (len(args) > len(o.types) and not o.more):
        return None
    total = 0
    for a, t in zip(args, (*o.types, *(o.more,) * (len(args) - len(o.types))), strict=True):
        cost = _of_argument(a, t)
        if cost is None:
            return None
        total += cost
    return total


def _of_argument(a: Expr, t: str) -> int | None:
    """DuckDB's cost of an implicit cast of an argument to a parameter's type."""
    if t == _NULL:
        return -_FIRST if a.dtype.kind is Kind.NULL else None
    if a.dtype.kind is Kind.NULL or t == "ANY":
        return _target("ANY" if t in _OPEN else t)
    if t in _OPEN:
        return _COSTS["ANY"] + 1
    if is_text_literal(a):
        is_unknown = t == "DECIMAL" or (t.endswith("[]") and t.rstrip("[]") in ("ANY", *_OPEN))
        return None if is_unknown else 1 if t == "VARCHAR" else _OF_TEXT
    if is_integer_literal(a):
        if a.dtype.kind.value == t:
            return 1
        bounded = _RESULTS.get(t)
        holds = bounded is not None and bounded.is_integer and fits(a, bounded)
        if holds or t == "HUGEINT" or t in _FRACTIONS:
            return _target(t) - _OF_LITERAL
        return None if t == "JSON" else _of_type(a.dtype, t)
    return _of_type(a.dtype, t)


def _target(t: str) -> int:
    """What a type costs by itself."""
    return _COSTS["LIST"] if t.endswith("]") else _COSTS.get(t.partition("(")[0], _OTHERS)


def _of_type(source: DType, t: str) -> int | None:
    s = "TIMESTAMPTZ" if source.kind is Kind.TIMESTAMPTZ else source.name or source.kind.value
    if t == "JSON" and s not in ("JSON", "VARCHAR"):
        return _AS_JSON
    if source.is_list:
        assert source.element is not None
        inside = t[:-2]
        cost = _target("ANY") if inside in ("ANY", *_OPEN) else _of_type(source.element, inside)
        return None if cost is None or not t.endswith("[]") else max(cost - 1, 0)
    if s == t or (source.is_struct and t.startswith("STRUCT")) or (source.kind is Kind.MAP and t.startswith("MAP")):
        return 0
    if s == "JSON" and t == "VARCHAR":
        return 1
    return _target(t) if t in _WIDER.get(s if not source.is_decimal else "DECIMAL", ()) else None
