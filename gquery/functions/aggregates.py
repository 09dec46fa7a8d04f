"""The aggregates: one declaration each (see `aggregate_record`).

DuckDB's types, save that sums of integers are BIGINT (and raise where the sum does not fit) instead of HUGEINT.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gquery.errors import BindError, NotSupportedError, did_you_mean
from gquery.expression.expr import AggregateCall, Expr, SortKey
from gquery.expression.types import BIGINT, BOOLEAN, DOUBLE, NULL, VARCHAR, DType, Kind, decimal
from gquery.functions import list_counts, moments, wide_bits
from gquery.functions import ordered_aggregates as ordered
from gquery.functions.aggregate_record import (
    Accumulated,
    AggregateFunction,
    AtEnd,
    AtFraction,
    Count,
    Derived,
    Extreme,
    JoinedText,
    Listed,
    Mean,
    MostFrequent,
    OneValue,
    Reduced,
    Resolved,
    StandsFor,
    State,
    Total,
)
from gquery.functions.approximate import approximate_count
from gquery.functions.casts import cast
from gquery.functions.opaque import refuse_nested, refuse_opaque
from gquery.functions.registry import no_match

# ---- types -----------------------------------------------------------------------------------------------------------


def _count(types: Sequence[DType]) -> Resolved | None:
    return types, BIGINT


def _sum(types: Sequence[DType]) -> Resolved | None:
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


def _avg(types: Sequence[DType]) -> Resolved | None:
    match list(types):
        case [t] if t.is_numeric:
            return [t], DOUBLE
        case _:
            return None


def _same(types: Sequence[DType]) -> Resolved | None:
    return (types, types[0]) if len(types) == 1 else None


def _truth(types: Sequence[DType]) -> Resolved | None:
    return (types, BOOLEAN) if list(types) == [BOOLEAN] else None


def _count_of_truth(types: Sequence[DType]) -> Resolved | None:
    return ([BIGINT], BIGINT) if list(types) == [BOOLEAN] else None


def _integer(types: Sequence[DType]) -> Resolved | None:
    return (types, types[0]) if len(types) == 1 and types[0].is_integer else None


def _whole(types: Sequence[DType]) -> Resolved | None:
    return (types, wide_bits.type_of_bits(types[0])) if len(types) == 1 and wide_bits.is_wide(types[0]) else None


def _doubles(count: int, result: DType = DOUBLE) -> Callable[[Sequence[DType]], Resolved | None]:
    def resolve(types: Sequence[DType]) -> Resolved | None:
        if len(types) != count or not all(t.is_numeric for t in types):
            return None
        return [DOUBLE] * count, result

    return resolve


def _moment(count: int, result: DType = DOUBLE) -> Callable[[Sequence[DType]], Resolved | None]:
    """Numbers; DOUBLE in place of those whose sums of squares are not exact."""

    def resolve(types: Sequence[DType]) -> Resolved | None:
        if len(types) != count or not all(t.is_numeric for t in types):
            return None
        return [t if moments.is_small(t) else DOUBLE for t in types], result

    return resolve


# ---- the table -------------------------------------------------------------------------------------------------------


def _of_value(name: str, parts: Callable[..., Expr], doc: str, value: str, *aliases: str) -> AggregateFunction:
    return AggregateFunction(name, _moment(1), (f"{name}(DOUBLE) -> DOUBLE",), doc, (f"{name}(x)", value), Derived(parts),
                             aliases, null_type=DOUBLE)  # fmt: skip


def _of_pair(name: str, parts: Callable[..., Expr], doc: str, value: str, result: DType = DOUBLE) -> AggregateFunction:
    return AggregateFunction(name, _moment(2, result), (f"{name}(y DOUBLE, x DOUBLE) -> {result}",), doc,
                             (f"{name}(x, 2 * x)", value), Derived(parts), null_type=DOUBLE)  # fmt: skip


def _sum_of_doubles(name: str, function: str, doc: str, value: str, *aliases: str) -> AggregateFunction:
    return AggregateFunction(name, _doubles(1), (f"{name}(DOUBLE) -> DOUBLE",), doc, (f"{name}(x)", value),
                             StandsFor(function), aliases, null_type=DOUBLE)  # fmt: skip


def _at_extreme(name: str, extreme: str, takes_null: bool, value: str, *aliases: str) -> AggregateFunction:
    which = "least" if extreme == "min" else "greatest"
    doc = f"The value of x where y is {which}{'; it may be NULL' if takes_null else ', of rows where both are there'}."
    return AggregateFunction(name, ordered.by_another, (f"{name}(x any, y any)",), doc, (f"{name}(x, 2 * x)", value),
                             Derived(ordered.at_extreme(extreme, takes_null), compares=1), aliases, repeats_count=False,
                             takes_order=True)  # fmt: skip


def _of_bits(name: str, doc: str, value: str, by: Reduced, repeats_count: bool = False) -> AggregateFunction:
    return AggregateFunction(name, _integer, (f"{name}(integer)",), doc, (f"{name}(x)", value), by, null_type=BIGINT,
                             repeats_count=repeats_count)  # fmt: skip


def _of_wide_bits(name: str, doc: str, value: str, repeats_count: bool = False) -> AggregateFunction:
    return AggregateFunction(f"_{name}_wide", _whole, (f"{name}(whole number)",), doc, (f"{name}(x)", value),
                             Derived(wide_bits.reduced(name)), repeats_count=repeats_count)  # fmt: skip


def _of_json(name: str) -> Callable[..., Any]:
    """A function of `json_groups`, which comes with the first call."""

    def later(*args: Any) -> Any:
        from gquery.functions import json_groups

        return getattr(json_groups, name)(*args)

    return later


_UINTEGER = DType(Kind.UINTEGER)


def _first_by(name: str, extreme: str, value: str) -> AggregateFunction:
    which = "least" if extreme == "min" else "greatest"
    doc = f"The value of x where y is {which}, which may be NULL; of the first row where no y is there."
    return AggregateFunction(name, ordered.by_another, (f"{name}(x any, y any)",), doc, (f"{name}(x, 2 * x)", value),
                             Derived(ordered.first_by(extreme), compares=1), repeats_count=False, takes_order=True)  # fmt: skip


def _several(name: str, extreme: str, value: str, of_one: bool = False, takes_null: bool = False) -> AggregateFunction:
    which = "least" if extreme == "min" else "greatest"
    doc = f"The n {which} values." if of_one else f"The values of x in the n rows where y is {which}."
    signature = f"{name}(any, n) -> list" if of_one else f"{name}(x any, y any, n) -> list"
    example = f"{name}(x, 2)" if of_one else f"{name}(x, 2 * x, 2)"
    by = Derived(ordered.several_at(extreme, takes_null), compares=1)
    return AggregateFunction(f"_{name}_n", ordered.several_type, (signature,), doc, (example, value), by, takes_order=True,
                             checked=ordered.of_itself if of_one else None, null_type=NULL)  # fmt: skip


_ROWS = (
    AggregateFunction("count", _count, ("count(*)", "count(any) -> BIGINT"),
                      "How many rows there are, or how many values that are not NULL.", ("count(*)", "3"),
                      Accumulated((Count(),)), ("count_star",), of_nothing=0),
    AggregateFunction("sum", _sum, ("sum(integer) -> BIGINT", "sum(DECIMAL(p,s)) -> DECIMAL(38,s)",
                                    "sum(FLOAT or DOUBLE) -> DOUBLE"),
                      "The sum; exact for integers and decimals, an error where it does not fit.", ("sum(x)", "6"),
                      Accumulated((Total(),))),
    AggregateFunction("avg", _avg, ("avg(numeric) -> DOUBLE",),
                      "The mean: the exact sum by the count.", ("avg(x)", "2.0"),
                      Accumulated((Total(), Count()), Mean(State(0), State(1))), ("mean",)),
    AggregateFunction("min", _same, ("min(any)",), "The least value.", ("min(x)", "1"),
                      Accumulated((Extreme("min"),)), repeats_count=False),
    AggregateFunction("max", _same, ("max(any)",), "The greatest value (NaN is the greatest).", ("max(x)", "3"),
                      Accumulated((Extreme("max"),)), repeats_count=False),
    AggregateFunction("any_value", _same, ("any_value(any)",), "The first value that is not NULL.",
                      ("any_value(7)", "7"), AtEnd(), ("arbitrary",), repeats_count=False, takes_order=True),
    AggregateFunction("first", _same, ("first(any)",), "The value of the first row, which may be NULL.",
                      ("first(7)", "7"), AtEnd(), repeats_count=False, takes_order=True, skips_null=False),
    AggregateFunction("last", _same, ("last(any)",), "The value of the last row, which may be NULL.",
                      ("last(7)", "7"), AtEnd(last=True), repeats_count=False, takes_order=True, skips_null=False),
    AggregateFunction("count_if", _count_of_truth, ("count_if(BOOLEAN) -> BIGINT",),
                      "How many values are TRUE; NULL where no value is there.", ("count_if(x > 1)", "2"),
                      StandsFor("sum"), ("countif",), null_type=BOOLEAN),
    AggregateFunction("bool_and", _truth, ("bool_and(BOOLEAN) -> BOOLEAN",), "Whether all values are TRUE.",
                      ("bool_and(x > 1)", "False"), StandsFor("min"), ("logical_and",), null_type=BOOLEAN,
                      repeats_count=False),
    AggregateFunction("bool_or", _truth, ("bool_or(BOOLEAN) -> BOOLEAN",), "Whether some value is TRUE.",
                      ("bool_or(x > 1)", "True"), StandsFor("max"), ("logical_or",), null_type=BOOLEAN,
                      repeats_count=False),
    _at_extreme("arg_min", "min", False, "1", "argmin", "min_by"),
    _at_extreme("arg_max", "max", False, "3", "argmax", "max_by"),
    _at_extreme("arg_min_null", "min", True, "1"),
    _at_extreme("arg_max_null", "max", True, "3"),
    _first_by("arg_min_nulls_last", "min", "1"),
    _first_by("arg_max_nulls_last", "max", "3"),
    _several("min", "min", "[1, 2]", of_one=True),
    _several("max", "max", "[3, 2]", of_one=True),
    _several("arg_min", "min", "[1, 2]"),
    _several("arg_max", "max", "[3, 2]"),
    _several("arg_min_nulls_last", "min", "[1, 2]", takes_null=True),
    _several("arg_max_nulls_last", "max", "[3, 2]", takes_null=True),
    AggregateFunction("median", ordered.median_type, ("median(any)",), "The middle value, or what lies between two.",
                      ("median(x)", "2.0"), Derived(ordered.median), null_type=DOUBLE),
    AggregateFunction("quantile_cont", ordered.continuous, ("quantile_cont(number or time, fraction)",),
                      "What lies at a fraction of the sorted values, between two of them if need be.",
                      ("quantile_cont(x, 0.25)", "1.5"), AtFraction(between=True), ("percentile_cont",),
                      orders_itself=True, takes_order=True, checked=ordered.quantile_constants),
    AggregateFunction("quantile_disc", _same, ("quantile_disc(any, fraction)",),
                      "The value at a fraction of the sorted values.", ("quantile_disc(x, 0.5)", "2"),
                      AtFraction(between=False), ("quantile", "percentile_disc"), orders_itself=True, takes_order=True,
                      checked=ordered.quantile_constants),
    AggregateFunction("approx_quantile", _same, ("approx_quantile(number or time, fraction)",),
                      "As quantile_disc: it is exact.", ("approx_quantile(x, 0.5)", "2"), StandsFor("quantile_disc"),
                      checked=ordered.quantile_constants, null_type=BIGINT),
    AggregateFunction("reservoir_quantile", _same, ("reservoir_quantile(number or time, fraction)",),
                      "As quantile_disc: it is exact.", ("reservoir_quantile(x, 0.5)", "2"),
                      StandsFor("quantile_disc"), checked=ordered.sample_constants, null_type=BIGINT),
    AggregateFunction("wavg", ordered.weighted, ("wavg(number, weight)",), "The mean of values with weights.",
                      ("wavg(x, 2 * x)", "2.3333333333333335"), Derived(ordered.weighted_mean), ("weighted_avg",),
                      repeats_count=False),
    AggregateFunction("mode", _same, ("mode(any)",), "The most frequent value, of several the first one.",
                      ("mode(x // 2)", "1"), MostFrequent(), takes_order=True, checked=ordered.own_order),
    AggregateFunction("mad", ordered.deviation, ("mad(number)",), "The median of the distances from the median.",
                      ("mad(x)", "1.0"), Derived(ordered.mad), null_type=DOUBLE),
    AggregateFunction("string_agg", ordered.text, ("string_agg(any, separator)",),
                      "The texts of all values, with a separator between them.", ("string_agg(x, '-')", "1-2-3"),
                      JoinedText(), ("listagg", "group_concat"), takes_order=True, checked=ordered.separator,
                      null_type=VARCHAR),
    AggregateFunction("list", ordered.list_type, ("list(any)",), "The values of all rows, NULLs among them, as a list.",
                      ("list(x)", "[1, 2, 3]"), Listed(), ("array_agg",), takes_order=True, skips_null=False, null_type=NULL),
    AggregateFunction("json_group_array", _of_json("texts"), ("json_group_array(any) -> JSON",),
                      "The values of all rows as a list of JSON.", ("json_group_array(x)", "[1,2,3]"),
                      Derived(_of_json("array")), takes_order=True, checked=_of_json("values")),
    AggregateFunction("json_group_object", _of_json("texts"), ("json_group_object(name, any) -> JSON",),
                      "An object of JSON, of a name and a value in each row.",
                      ("json_group_object(x, 2 * x)", '{"1":2,"2":4,"3":6}'), Derived(_of_json("object_")), takes_order=True,
                      checked=_of_json("pairs")),
    AggregateFunction("histogram", list_counts.histogram_type, ("histogram(any[, bins]) -> MAP",),
                      "How often each value comes, or the values up to the end of a bin.", ("histogram(x // 2)", "{0: 1, 1: 2}"),
                      Derived(list_counts.histogram), checked=list_counts.checked_bins, null_type=NULL),
    AggregateFunction("histogram_exact", list_counts.bins_type, ("histogram_exact(any, values) -> MAP",),
                      "How often each of some values comes.", ("histogram_exact(x, [1, 2, 3])", "{1: 1, 2: 1, 3: 1}"),
                      Derived(list_counts.histogram_exact), checked=list_counts.checked_bins),
    AggregateFunction("approx_top_k", list_counts.top_type, ("approx_top_k(any, count) -> list",),
                      "The most frequent values, the first of equally frequent ones; exact.", ("approx_top_k(x // 2, 1)", "[1]"),
                      Derived(list_counts.top_k), checked=list_counts.checked_count, null_type=NULL),
    AggregateFunction("entropy", ordered.of_any(DOUBLE), ("entropy(any) -> DOUBLE",),
                      "The bits that tell which value a row has.", ("entropy(x > 1)", "0.9182958340544896"),
                      Derived(ordered.entropy, compares=0)),
    AggregateFunction("approx_count_distinct", ordered.of_any(BIGINT), ("approx_count_distinct(any) -> BIGINT",),
                      "About how many different values there are (HyperLogLog, standard error 2.3 %); exact over frames.",
                      ("approx_count_distinct(x)", "3"), Derived(approximate_count, compares=0, equates=True), of_nothing=0,
                      repeats_count=False),
    _of_bits("bit_and", "The bits that are set in all values.", "0", Reduced("and", "i64", "-1")),
    _of_bits("bit_or", "The bits that are set in some value.", "3", Reduced("or", "i64", "0")),
    _of_bits("bit_xor", "The bits that are set in an odd number of values.", "0", Reduced("xor", "i64", "0"), True),
    _of_wide_bits("bit_and", "As bit_and, of more than 64 bits.", "0"),
    _of_wide_bits("bit_or", "As bit_or, of more than 64 bits.", "3"),
    _of_wide_bits("bit_xor", "As bit_xor, of more than 64 bits.", "0", True),
    AggregateFunction("product", _doubles(1), ("product(DOUBLE) -> DOUBLE",), "The product of the values.",
                      ("product(x)", "6.0"), Reduced("mul", "f64", "1.0"), null_type=DOUBLE),
    _sum_of_doubles("fsum", "sum", "The sum of the values as doubles.", "6.0", "kahan_sum", "sumkahan"),
    _sum_of_doubles("favg", "avg", "The mean of the values as doubles.", "2.0"),
    _of_value("stddev_samp", moments.stddev_samp, "The standard deviation of a sample; NULL of one value.", "1.0",
              "stddev"),
    _of_value("stddev_pop", moments.stddev_pop, "The standard deviation of all there is.", "0.816496580927726"),
    _of_value("var_samp", moments.var_samp, "The variance of a sample; NULL of one value.", "1.0", "variance"),
    _of_value("var_pop", moments.var_pop, "The variance of all there is.", "0.6666666666666666"),
    _of_value("sem", moments.sem, "The standard error of the mean.", "0.4714045207910317"),
    _of_value("skewness", moments.skewness, "The skewness of a sample; NULL of two values.", "0.0"),
    _of_value("kurtosis", moments.kurtosis, "The excess kurtosis of a sample; NULL of three values.", "None"),
    _of_value("kurtosis_pop", moments.kurtosis_pop, "The excess kurtosis of all there is.", "-1.5"),
    AggregateFunction("geomean", _doubles(1), ("geomean(DOUBLE) -> DOUBLE",), "The geometric mean.",
                      ("geomean(x)", "1.8171205928321397"), Derived(moments.geomean), ("geometric_mean",), null_type=DOUBLE),
    _of_pair("covar_samp", moments.covar_samp, "The covariance of a sample of pairs.", "2.0"),
    _of_pair("covar_pop", moments.covar_pop, "The covariance of all pairs.", "1.3333333333333333"),
    _of_pair("corr", moments.corr, "The correlation of pairs.", "1.0"),
    _of_pair("regr_count", moments.regr_count, "How many pairs have no NULL.", "3", _UINTEGER),
    _of_pair("regr_avgx", moments.regr_avgx, "The mean of x over pairs.", "4.0"),
    _of_pair("regr_avgy", moments.regr_avgy, "The mean of y over pairs.", "2.0"),
    _of_pair("regr_sxx", moments.regr_sxx, "The sum of squares of x about its mean.", "8.0"),
    _of_pair("regr_sxy", moments.regr_sxy, "The sum of products of x and y about their means.", "4.0"),
    _of_pair("regr_syy", moments.regr_syy, "The sum of squares of y about its mean.", "2.0"),
    _of_pair("regr_slope", moments.regr_slope, "The slope of the line of least squares.", "0.5"),
    _of_pair("regr_intercept", moments.regr_intercept, "Where that line has x = 0.", "0.0"),
    _of_pair("regr_r2", moments.regr_r2, "The square of the correlation.", "1.0"),
)  # fmt: skip
AGGREGATES: dict[str, AggregateFunction] = {f.name: f for f in _ROWS}
ALIASES = {alias: f.name for f in _ROWS for alias in f.aliases}
_TAKES_SEVERAL = {(n, 2 + n.startswith("arg")): f"_{n}_n" for n in AGGREGATES if f"_{n}_n" in AGGREGATES}
"""What a call with a number of values behind its arguments is: by name, and by how many arguments it has then."""
INTERNAL = {
    "dependent_value": AggregateFunction("dependent_value", _same, (), "The one value of a group.", ("", ""),
                                         Accumulated((OneValue(),)), repeats_count=False),
}  # fmt: skip
"""What rules make and nobody types."""


def declaration(call: AggregateCall) -> AggregateFunction:
    """What is declared of the aggregate of a call."""
    found = AGGREGATES.get(call.function)
    return INTERNAL[call.function] if found is None else found


def declared(name: str) -> AggregateFunction:
    """What is declared of an aggregate by the name that a bound call has."""
    found = AGGREGATES.get(name)
    return INTERNAL[name] if found is None else found


def counts(call: AggregateCall) -> bool:
    """Whether a call gives the number of rows, or of values."""
    return isinstance(declared(call.function).only, Count)


def gives_one_value(call: AggregateCall) -> bool:
    """Whether a call only names a value that all rows of a group share."""
    return call.filter is None and isinstance(declared(call.function).only, OneValue)


def is_ordered(call: AggregateCall) -> bool:
    """Whether an aggregate needs the rows of a group in an order."""
    return bool(call.order) or declaration(call).is_ordered


def may_give_null(call: AggregateCall, has_rows: bool) -> bool:
    """Whether an aggregate may be NULL. Where each group ``has_rows``, most of values that are never NULL are not."""
    is_sure = declaration(call).parts is None and call.filter is None and not any(a.nullable for a in call.args)
    return call.nullable and not (has_rows and is_sure)


def is_aggregate(name: str) -> bool:
    """Whether a name is that of an aggregate."""
    return (name in AGGREGATES and not name.startswith("_")) or name in ALIASES


def called(name: str, count: int) -> AggregateFunction:
    """The aggregate that a name means with so many arguments."""
    function = AGGREGATES.get(ALIASES.get(name, name))
    if function is None:
        raise BindError(f"there is no aggregate {name!r}.{did_you_mean(name, AGGREGATES)}")
    return AGGREGATES[_TAKES_SEVERAL.get((function.name, count), function.name)]


def aggregate(
    name: str,
    args: Sequence[Expr],
    distinct: bool = False,
    where: Expr | None = None,
    order: Sequence[SortKey] = (),
) -> AggregateCall:
    """A typed call of an aggregate; BindError with the candidates where its arguments do not fit."""
    function = called(name, len(args))
    if len(args) == 1 and wide_bits.is_wide(args[0].dtype):
        function = AGGREGATES.get(f"_{function.name}_wide", function)
    args = [cast(a, function.null_type) if a.dtype.kind is Kind.NULL else a for a in args]
    looked_at = args if distinct or not function.carries else ()
    refuse_opaque(looked_at, f"{name}(DISTINCT)" if distinct else name)
    if distinct and function.repeats_count and not function.tells_by_key:
        refuse_nested(args, f"{name}(DISTINCT)")
    kept, keys = tuple(args), tuple(order)
    constants: tuple[Expr, ...] = ()
    if function.checked is not None and args:
        kept, constants, keys = function.checked(name, args, keys)
    resolved = function.resolve([a.dtype for a in kept]) if bool(constants) == _has_constants(function) else None
    is_count_of_rows = function.resolve is _count and len(args) > 1
    if resolved is None or (distinct and not args) or (is_count_of_rows and not distinct):
        raise no_match(name, args, tuple(f"{name}{s[s.index('(') :]}" for s in function.signatures))
    types, dtype = resolved
    casted = tuple(cast(a, t) for a, t in zip(kept, types, strict=True))
    if distinct and function.takes_order and any(k.expr not in casted for k in keys):  # of a cast, or what stands for it
        raise NotSupportedError(f"not supported: {name}(DISTINCT ...) in another order than that of its values, {dtype}")
    return AggregateCall(
        function.by.function if isinstance(function.by, StandsFor) else function.name,
        (*casted, *constants),
        dtype,
        distinct and function.repeats_count,
        None if where is None else cast(where, BOOLEAN),
        keys if function.takes_order else (),
    )


def _has_constants(function: AggregateFunction) -> bool:
    return function.checked in (ordered.quantile_constants, ordered.sample_constants, ordered.separator)
