"""Tests that are made over all entries of a dictionary at once give what the interpreter gives entry by entry."""

from __future__ import annotations

import random

import numpy as np
import pytest

from gquery.columns.arrow import string_array
from gquery.columns.table import Dictionary
from gquery.expression.expr import And, Call, Column, Expr, In, IsNull, Literal, Not, Or
from gquery.expression.types import BOOLEAN, VARCHAR
from gquery.kernels import host
from gquery.kernels.entries import truth

ENTRIES = ["a", "A", "ab", "abab", "b%c", "a_b", "ä", "äß", "zz\n1", "日本", " ", "ba", "aba\\b", "\x00", "~", "Z"]
OTHERS = [*ENTRIES, "", "aa", "z", "äa", "abc", "\U0001f600"]
PATTERNS = [
    "%",
    "%%",
    "a%",
    "%b",
    "a%b",
    "%ab%",
    "aba%ba",
    "%ä%",
    "ä%",
    "%a%b%",
    "a_b",
    "_",
    "",
    "ab",
    "a!%%",
    "%\\b",
    "%\n%",
]
COLUMN = Column(7, "s", VARCHAR, True)


def text(value: str) -> Literal:
    return Literal(value, VARCHAR)


def random_test(rng: random.Random, depth: int) -> Expr:
    kind = rng.choice(
        ["compare", "in", "null", "like", "and", "or", "not"] if depth else ["compare", "in", "null", "like"]
    )
    match kind:
        case "compare":
            constant = text(rng.choice(OTHERS))
            args: tuple[Expr, ...] = (constant, COLUMN) if rng.random() < 0.3 else (COLUMN, constant)
            return Call(rng.choice(["eq", "ne", "lt", "le", "gt", "ge"]), args, BOOLEAN, True)
        case "in":
            return In(COLUMN, tuple(map(text, rng.sample(OTHERS, rng.randint(1, 5)))))
        case "null":
            return IsNull(COLUMN)
        case "like":
            args_ = (COLUMN, text(rng.choice(PATTERNS)), text(rng.choice(["", "", "!"])))
            return Call("like", args_, BOOLEAN, True)
        case "not":
            return Not(random_test(rng, depth - 1))
        case _:
            terms = tuple(random_test(rng, depth - 1) for _ in range(rng.randint(2, 3)))
            return And(terms) if kind == "and" else Or(terms)


@pytest.mark.parametrize("seed", range(60))
def test_it_is_what_the_interpreter_says(seed: int) -> None:
    rng = random.Random(seed)
    entries = sorted(rng.sample(ENTRIES, rng.choice([1, 2, 5, len(ENTRIES)])), key=str.encode)
    dictionary = Dictionary(string_array(entries))
    e = random_test(rng, rng.randint(0, 3))
    want = host._interpreted_over(e, COLUMN, dictionary)
    tested = truth(e, dictionary)
    if tested is None:
        return
    got = host._truth_table(tested)
    assert got.properties == want.properties
    assert got.physical_type == want.physical_type
    assert got.values.host.tolist() == want.values.host.tolist()
    assert (got.validity is None) == (want.validity is None)
    if got.validity is not None and want.validity is not None:
        assert got.validity.host.tolist() == want.validity.host.tolist()


def test_most_are_made_at_once() -> None:
    """Else the test above would compare nothing."""
    dictionary = Dictionary(string_array(["a", "b"]))
    made = [truth(random_test(random.Random(seed), 2), dictionary) is not None for seed in range(200)]
    assert np.mean(made) > 0.5


def test_others_are_not() -> None:
    dictionary = Dictionary(string_array(["a", "b"]))
    upper = Call("upper", (COLUMN,), VARCHAR, True)
    for e in (
        Call("eq", (upper, text("A")), BOOLEAN, True),
        Call("eq", (COLUMN, Literal(None, VARCHAR)), BOOLEAN, True),
        Not(Call("like", (COLUMN, text("a_"), text("")), BOOLEAN, True)),
        Call("starts_with", (COLUMN, text("a")), BOOLEAN, True),
    ):
        assert truth(e, dictionary) is None
