# Bodies call primitives by names that each target resolves: the kernels, whose they are, lie above this room.
# ruff: noqa: F821
# mypy: disable-error-code="name-defined, no-any-return"
"""approx_count_distinct: HyperLogLog, as an expression over aggregates that every target accumulates.

    approx_count_distinct(x) by k  =>  estimate(sum(weight(m)), count(m)) by k
                                         over k, register, max(rank(h)) as m  by k, register(h)      with h = hash(x)

The upper bits of a value's hash name one of 2,048 registers, which keeps the greatest *rank*: where the first 1 stands in the
other bits. So registers are groups, and lie where groups lie: without other keys, in the shared memory of a GPU's blocks or a
core's cache; for other keys, in one array, whose size is twice the rows at most, as groups of fewer rows are counted. Greatest
ranks of parts, ranks and coarser grouping sets merge as maxima do, and every device has the same hash, so the estimate depends on
the set of values alone.

The estimate is Ertl's ("New cardinality estimation algorithms for HyperLogLog sketches", 2017): one formula for few and many
values, without corrections found by trial. Sums of powers of two are taken as integers, so that their order does not matter.
"""

from __future__ import annotations

from gquery.expression.expr import Call, Expr, Literal
from gquery.expression.types import BIGINT, INT64, Bounds
from gquery.functions.aggregate_parts import Parts
from gquery.functions.chance import HASH_WORD
from gquery.functions.intervals import comparable
from gquery.functions.registry import call, scalar

REGISTER_BITS = 11
REGISTERS = 1 << REGISTER_BITS
STANDARD_ERROR = 1.04 / REGISTERS**0.5
"""Of the estimate, as a share of the count: 2.3 %."""

_MOST = 48  # a rank at most: what 2^48 values for each register tell; the sum of all weights is below 2^63
_ONE = ((BIGINT,), BIGINT)


def approximate_count(p: Parts, x: Expr) -> Expr:
    """The estimate of how many different values there are among the rows. Few rows are counted: their registers would take more
    memory and time than they do. So are lists, which have no hash."""
    p.only(x)
    return p.distinct_count(x) if x.dtype.is_opaque or p.is_small() else p.approximate_count(x, _registers)


def _registers(p: Parts, x: Expr) -> Expr:
    """See the module."""
    hashed = Call(HASH_WORD, (comparable(x),), BIGINT, False)
    rank = p.regrouped((call("_register", hashed),), "max", BIGINT, call("_rank", hashed))
    weights = p.part("sum", BIGINT, call("_weight", rank))
    used = p.part("count", BIGINT, rank)
    return call("_estimate", call("coalesce", weights, Literal(0, BIGINT)), used)


# The text of a body is compiled by itself, so that its numbers stand in it: of 64 bits 11 name the register, 53 are the rest.


@scalar("_register", _ONE, bounds=lambda _: Bounds(0, REGISTERS - 1))
def _register(h: int) -> int:
    """The register of a hash."""
    return shr_u64(h, 53)


@scalar("_rank", _ONE, bounds=lambda _: Bounds(1, _MOST))
def _rank(h: int) -> int:
    """Where the first 1 stands in the rest of a hash. The rest fits the fraction of a double, whose exponent tells."""
    rest = and_i64(h, 0x1FFFFFFFFFFFFF)
    return min_i64(
        sub_i64(1076, shr_i64(bits_f64(f64_from_u64(rest)), 52)), 48
    )  # 1076: of 2^53, with the bias of exponents


@scalar("_weight", _ONE, bounds=lambda _: Bounds(1, 1 << (_MOST - 1)))
def _weight(rank: int) -> int:
    """2^-rank, in units of 2^-48."""
    return shl_i64(1, sub_i64(48, rank))


@scalar("_estimate", ((BIGINT, BIGINT), BIGINT), bounds=lambda *_: Bounds(0, INT64.high))
def _estimate(weights: int, used: int) -> int:
    """The values that registers tell, of which some are used and have these weights together."""
    x = div_f64(f64(sub_i64(2048, used)), 2048.0)
    if eq_f64(x, 1.0):
        return 0
    empty, power, before = x, 1.0, -1.0
    while ne_f64(empty, before):
        before = empty
        x = mul_f64(x, x)
        empty = add_f64(empty, mul_f64(x, power))
        power = add_f64(power, power)
    units = add_f64(mul_f64(f64(weights), 3.552713678800501e-15), mul_f64(2048.0, empty))  # 2^-48
    return i64_from_f64(div_f64(3025550.7903903713, units))  # 2048 * 2048 / (2 ln 2)
