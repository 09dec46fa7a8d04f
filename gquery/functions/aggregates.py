"""The aggregates: argument and result types. How each is computed is the engine's.

DuckDB's types, save that sums of integers are BIGINT (and raise where the sum does not fit) instead of HUGEINT.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gquery.errors import BindError, did_you_mean
from gquery.expression.expr import AggregateCall, Expr
from gquery.expression.types import BIGINT, BOOLEAN, DOUBLE, NULL, DType, Kind, decimal
from gquery.functions.casts import cast
from gquery.functions.opaque import refuse_opaque
from gquery.functions.registry import no_match
from gquery.runtime.records import dataclass


@dataclass(frozen=True)
class AggregateFunction:
    """An aggregate: ``resolve`` gives (argument types, result type), or None for arguments that it does not take. All
    pass over NULLs; over no row ``count`` gives 0 and the others NULL."""

    name: str
    resolve: Callable[[Sequence[DType]], tuple[Sequence[DType], DType] | None]
    signatures: tuple[str, ...]
    doc: str
    example: tuple[str, str]


def _count(types: Sequence[DType]) -> tuple[Sequence[DType], DType] | None:
    return (types, BIGINT) if len(types) <= 1 else None


def _sum(types: Sequence[DType]) -> tuple[Sequence[DType], DType] | None:
    match list(types):
        case [t] if t.is_integer:
            return [t], BIGINT
        case [t] if t.kind is Kind.BOOLEAN:
            return [BIGINT], BIGINT
        case [t] if t.is_decimal:
            return [t], decimal(38, t.scale)
        case [t] if t.is_float:
            return [t], DOUBLE
        case _:
            return None


def _avg(types: Sequence[DType]) -> tuple[Sequence[DType], DType] | None:
    match list(types):
        case [t] if t.is_numeric:
            return [t], DOUBLE
        case _:
            return None


def _same(types: Sequence[DType]) -> tuple[Sequence[DType], DType] | None:
    return (types, types[0]) if len(types) == 1 and types[0].kind is not Kind.INTERVAL else None


AGGREGATES: dict[str, AggregateFunction] = {
    f.name: f
    for f in (
        AggregateFunction("count", _count, ("count(*)", "count(any) -> BIGINT"),
                          "How many rows there are, or how many values that are not NULL.", ("count(*)", "3")),
        AggregateFunction("sum", _sum, ("sum(integer) -> BIGINT", "sum(DECIMAL(p,s)) -> DECIMAL(38,s)",
                                        "sum(FLOAT or DOUBLE) -> DOUBLE"),
                          "The sum; exact for integers and decimals, an error where it does not fit.", ("sum(x)", "6")),
        AggregateFunction("avg", _avg, ("avg(numeric) -> DOUBLE",),
                          "The mean: the exact sum by the count.", ("avg(x)", "2.0")),
        AggregateFunction("min", _same, ("min(any)",), "The least value.", ("min(x)", "1")),
        AggregateFunction("max", _same, ("max(any)",), "The greatest value (NaN is the greatest).", ("max(x)", "3")),
        AggregateFunction("any_value", _same, ("any_value(any)",), "The first value that is not NULL.",
                          ("any_value(7)", "7")),
    )
}  # fmt: skip
ALIASES = {
    "mean": "avg", "count_star": "count", "arbitrary": "any_value",
    "count_if": "sum", "countif": "sum",  # NULL where no value is there, as in DuckDB
    "bool_and": "min", "logical_and": "min", "bool_or": "max", "logical_or": "max",
}  # fmt: skip


def is_aggregate(name: str) -> bool:
    """Whether a name is that of an aggregate."""
    return name in AGGREGATES or name in ALIASES


def aggregate(name: str, args: Sequence[Expr], distinct: bool = False, where: Expr | None = None) -> AggregateCall:
    """A typed call of an aggregate; BindError with the candidates where its arguments do not fit."""
    function = AGGREGATES.get(ALIASES.get(name, name))
    if function is None:
        raise BindError(f"there is no aggregate {name!r}.{did_you_mean(name, AGGREGATES)}")
    # NULL of no type: the sum, least, ... of NULLs is a NULL INTEGER (BIGINT for a sum)
    of_truth = name.startswith(("bool_", "logical_", "count_if", "countif"))
    of_null = BOOLEAN if of_truth else DType(Kind.INTEGER)
    args = [cast(a, of_null) if a.dtype == NULL else a for a in args]
    if of_truth and [a.dtype for a in args] != [BOOLEAN]:
        raise no_match(name, args, (f"{name}(BOOLEAN)",))
    if distinct or function.name != "count":
        refuse_opaque(args, f"{name}(DISTINCT)" if distinct else name)
    resolved = function.resolve([a.dtype for a in args])
    if resolved is None or (distinct and not args):
        raise no_match(function.name, args, function.signatures)
    types, dtype = resolved
    casted = tuple(cast(a, t) for a, t in zip(args, types, strict=True))
    # DISTINCT does not change a least, greatest or first value
    distinct = distinct and function.name in ("count", "sum", "avg")
    return AggregateCall(function.name, casted, dtype, distinct, None if where is None else cast(where, BOOLEAN))
