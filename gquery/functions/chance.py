"""random(), setseed() and hash(): numbers that are made of other numbers.

`random()` binds to a call with a number of its own, so that two calls are two expressions. The rule `draw_random` turns it into
a hash of the row's number and a seed before any other rule looks at the plan: what is moved, copied or merged later has the value
of its row all the same, on every device. A connection draws a seed for each run, and `setseed` says which come next. So a plan
with chance in it serves one run, as one that reads the clock does.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from gquery.expression.expr import Call, Column, Expr, Literal
from gquery.expression.traverse import walk
from gquery.expression.types import BIGINT, DOUBLE, INT64, INTEGER, UBIGINT, Bounds
from gquery.functions.casts import cast
from gquery.functions.comparison_keys import comparable
from gquery.functions.registry import (
    LIST_RESOLVERS,
    RESOLVERS,
    ScalarFunction,
    declare,
    is_null_literal,
    make,
    resolver,
)

HASH, HASH_WORD, RANDOM = "hash", "_hash", "_random"
_DRAW, _SETSEED = "_draw", "_setseed"
HASH_BOUNDS = Bounds(0, 2**64 - 1)
_WORD = 2**64

declare(
    ScalarFunction(HASH, strict=False, doc="A number of 64 bits that equal values of one type share; of NULL, too.")
)
declare(ScalarFunction(HASH_WORD, strict=False, doc="The same number as a BIGINT."))
declare(ScalarFunction(RANDOM, strict=False, doc="A number from 0 up to 1 made of a seed and of values: `random()`."))
declare(ScalarFunction(_DRAW, doc="A number from 0 up to 1, another in each row."))
declare(ScalarFunction(_SETSEED, doc="NULL; the connection's next seeds follow from the argument."))

_numbers = itertools.count()


class _Use:
    """Whether this process ever bound a call of chance: until then no plan needs to be searched for one."""

    is_possible = False


class Seeds:
    """The seeds of a connection's runs, one after another."""

    def __init__(self) -> None:
        self._first = int.from_bytes(os.urandom(8), "little")
        self._count = 0

    def begin(self, value: float) -> None:
        """Start again from a number of `setseed`: the same seeds follow the same number."""
        self._first = mixed(hash(value), 0) if value else 0
        self._count = 0

    def next(self) -> int:
        """The seed of another run."""
        self._count += 1
        return mixed(self._first, self._count)


_seeds: ContextVar[Seeds | None] = ContextVar("seeds", default=None)


@contextmanager
def drawing_from(seeds: Seeds) -> Iterator[None]:
    """Plans that are optimized within it take their seeds there."""
    token = _seeds.set(seeds)
    try:
        yield
    finally:
        _seeds.reset(token)


def current_seeds() -> Seeds:
    """Where a plan takes its seed: outside of a connection from nowhere that is kept."""
    return _seeds.get() or Seeds()


def mixed(seed: int, number: int) -> int:
    """Another seed for each number, within BIGINT (splitmix64)."""
    x = (seed + (number + 1) * 0x9E3779B97F4A7C15) % _WORD
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % _WORD
    x = (x ^ x >> 27) * 0x94D049BB133111EB % _WORD
    x ^= x >> 31
    return x - _WORD if x > INT64.high else x


def may_be_drawn() -> bool:
    """Whether there may be a plan with such a call."""
    return _Use.is_possible


def draw_number(e: Expr) -> int | None:
    """The number of a call of random(); None for other expressions."""
    if isinstance(e, Call) and e.function == _DRAW:
        number = e.args[0]
        assert isinstance(number, Literal)
        return int(number.value)
    return None


def seed_argument(e: Expr) -> Expr | None:
    """What a call of setseed is of; None for other expressions."""
    return e.args[0] if isinstance(e, Call) and e.function == _SETSEED else None


def draws(e: Expr) -> bool:
    """Whether a call of chance stands in an expression, outside its subqueries."""
    return any(isinstance(x, Call) and x.function in (_DRAW, _SETSEED) for x in walk(e))


def drawn(seed: int, values: Sequence[Column | Literal]) -> Expr:
    """The number from 0 up to 1 of a row that has these values."""
    return make(RANDOM, (Literal(seed, BIGINT), *values), DOUBLE)


@resolver("random", "$() -> DOUBLE", example=("random() < 1", "True"))
def _random() -> Expr:
    """A number from 0 up to 1, another in each row and each run; `setseed` makes runs repeat."""
    _Use.is_possible = True
    return Call(_DRAW, (Literal(next(_numbers), BIGINT),), DOUBLE, False)


@resolver("setseed", "$(DOUBLE)", example=("setseed(0.5)", "None"))
def _setseed(value: Expr) -> Expr | None:
    """NULL; what random() gives from here on follows from the number, a constant of -1 to 1."""
    if not (value.dtype.is_numeric or is_null_literal(value)):
        return None
    _Use.is_possible = True
    return Call(_SETSEED, (cast(value, DOUBLE),), INTEGER, True)


@resolver("hash", "$(any, ...) -> UBIGINT", example=("hash(1, 'a') = hash(1, 'a')", "True"))
def _hash(first: Expr, *more: Expr) -> Expr | None:
    """A number of 64 bits, the same for equal values of one type in every run and on every device; NULL has one, too. It is not
    that of DuckDB, which promises none."""
    values = [cast(e, INTEGER) if is_null_literal(e) else comparable(e) for e in (first, *more)]
    return make(HASH, values, UBIGINT)


LIST_RESOLVERS[HASH] = RESOLVERS[HASH]
