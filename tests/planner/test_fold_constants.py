"""Arithmetic and casts of constants that need no interpreter give what the interpreter gives."""

from __future__ import annotations

import random

import pytest

from gquery.api.planning import _evaluate
from gquery.errors import Error
from gquery.expression.expr import Call, Cast, Expr, Literal
from gquery.expression.types import BIGINT, INTEGER, SMALLINT, DType, decimal, type_bounds
from gquery.functions import call
from gquery.planner.rules.fold_constants import _Form, folded

TYPES = [SMALLINT, INTEGER, BIGINT, decimal(5, 0), decimal(15, 2), decimal(18, 4), decimal(38, 0), decimal(38, 2)]


def random_literal(rng: random.Random) -> Literal:
    dtype = rng.choice(TYPES)
    bounds = type_bounds(dtype)
    assert bounds is not None
    some = [0, 1, -1, bounds.low, bounds.high, rng.randint(bounds.low, bounds.high), rng.randint(-1000, 1000)]
    return Literal(rng.choice(some), dtype)


def constants_of(e: Expr) -> list[Literal] | None:
    """The arguments of a call, each evaluated; None where one fails."""
    try:
        return [x if isinstance(x, Literal) else _evaluate(x) for x in e.children]
    except Error:
        return None


def random_form(rng: random.Random) -> Call | Cast | None:
    x = random_literal(rng)
    if rng.random() < 0.4:
        return Cast(x, rng.choice(TYPES), rng.random() < 0.3)
    try:
        e = call(rng.choice(["add", "subtract", "multiply"]), x, random_literal(rng))
    except Error:
        return None
    args = constants_of(e)
    return Call(e.function, tuple(args), e.dtype, e.nullable) if isinstance(e, Call) and args else None


def value_of(e: Expr) -> object:
    try:
        return _evaluate(e).value
    except Error:
        return "an error"


@pytest.mark.parametrize("seed", range(20))
def test_it_is_what_the_interpreter_gives(seed: int) -> None:
    rng = random.Random(seed)
    forms = [e for e in (random_form(rng) for _ in range(100)) if e is not None]
    found = 0
    for e in forms:
        number = _Form(e, _evaluate).number([x.value for x in e.children if isinstance(x, Literal)])
        if number is not None:
            found += 1
            assert (type(number), number) == (type(value_of(e)), value_of(e)), e
    assert found > 30, "else nothing was compared"


def test_what_does_not_fit_stays() -> None:
    e = Cast(Literal(70_000, INTEGER), SMALLINT)
    assert folded(e, _evaluate) is e


@pytest.mark.parametrize(("source", "target"), [(decimal(15, 2), INTEGER), (decimal(15, 4), decimal(15, 2))])
def test_a_cast_that_rounds_is_interpreted(source: DType, target: DType) -> None:
    assert _Form(Cast(Literal(1550, source), target), _evaluate).number([1550]) is None
