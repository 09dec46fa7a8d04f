"""Arithmetic, comparisons and casts of constants that need no interpreter give what the interpreter gives."""

from __future__ import annotations

import math
import random

import pytest

from gquery.api.planning import _evaluate
from gquery.errors import Error
from gquery.expression.expr import TRUE, Call, Cast, Expr, Literal
from gquery.expression.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    REAL,
    SMALLINT,
    TIMESTAMP,
    VARCHAR,
    DType,
    decimal,
    type_bounds,
)
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


@pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_comparisons(name: str) -> None:
    """Of numbers, dates and text, whose order is that of its bytes."""
    texts = [
        "",
        "a",
        "A",
        "aa",
        "ab",
        "\x7f",
        "\x80",
        "\u00e9",
        "\ud7ff",
        "\ue000",
        "\uffff",
        "\U00010000",
        "\U0010ffff",
    ]
    cases = [(Literal(a, VARCHAR), Literal(b, VARCHAR)) for a in texts for b in texts]
    for dtype in (BOOLEAN, DATE, TIMESTAMP, *TYPES):
        bounds = type_bounds(dtype)
        assert bounds is not None
        some = sorted({bounds.low, 0, 1, bounds.high})
        cases += [(Literal(a, dtype), Literal(b, dtype)) for a in some for b in some]
    for a, b in cases:
        e = Call(name, (a, b), BOOLEAN, False)
        number = _Form(e, _evaluate).number([a.value, b.value])
        assert number is not None
        assert type(number) is int
        assert number == _evaluate(e).value, (a, b)


@pytest.mark.parametrize("dtype", [DOUBLE, REAL])
def test_comparisons_of_floats_are_left_to_the_interpreter(dtype: DType) -> None:
    """A NaN is the greatest, and equal to itself."""
    nan = Literal(math.nan, dtype)
    e = Call("gt", (nan, Literal(1.0, dtype)), BOOLEAN, False)
    assert _Form(e, _evaluate).number([nan.value, 1.0]) is None
    assert folded(e, _evaluate) == TRUE
