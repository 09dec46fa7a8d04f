"""How gquery runs a seed's query: all of it follows from the seed, so that a fault comes again from its number alone.

A third of the queries runs on three ranks. Kernels of one in four are interpreted with their primitives inlined, as they are over
many rows, and the plain text of the others, which is made in a fifth of the time. Of one in ten the kernels of a GPU are written.
The tables of one in seven lie in files, and one in eight is made in parts. In half of them SEMI joins reduce what is joined or
grouped, however few rows it has; in half of them groups by what the host makes are made in two steps.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from gquery import tuning
from gquery.planner.optimizer import RULES
from tests.fuzzing.check import Engine
from tests.support.in_parts import all_in_parts

OPTIONAL = tuple(sorted(rule.name for rule in RULES if not rule.required))
_INLINED = 4  # one in so many
_WRITTEN = 10
_STORED = 7
_IN_PARTS = 5
_SEMI_JOINS = tuning.semi_joins
_EAGER = replace(  # few rows are reduced by SEMI joins, as many are
    tuning.semi_joins,
    aggregate_selectivity=2.0,
    aggregate_least_rows=1,
    build_selectivity=2.0,
    build_least_rows=1,
    build_reading=0.0,
)
_SORTED = replace(tuning.sorting, leading_least=16, leading_sample=16, numbered_least=2)  # few rows as many are
_TWO_STEPS = replace(tuning.rewrites, argument_rows=0.0, rows_an_argument=0.0)  # few rows are grouped twice, as many are
_ONE_STEP = tuning.rewrites
_HASHED = replace(_SORTED, hashed_rows=1)


@dataclass(frozen=True)
class Choice:
    """What the command line says of all seeds."""

    target: str = "python"
    compiler: str = "auto"
    rules: bool = False  # each query without one of the rules, in turn
    ranks: int | None = None
    in_parts: bool = False
    sets: int = 1  # of tables for each query: then seeds one after another ask the same
    alone: bool = False  # compile in this process alone
    recorded: bool = False  # run each query until its runs are recorded


def engine_of(seed: int, choice: Choice) -> Engine:
    """The engine of a seed; sets what is tuned for it."""
    tuning.use(replace(tuning.interpreting, plain_rows=1 << 30 if seed % _INLINED else 8))
    tuning.use(_EAGER if seed // 2 % 2 else _SEMI_JOINS)
    tuning.use(_HASHED if seed // 4 % 2 else _SORTED)
    tuning.use(_TWO_STEPS if seed // 8 % 2 else _ONE_STEP)
    disabled = OPTIONAL[seed % len(OPTIONAL)] if choice.rules else ""
    in_parts = choice.in_parts or (
        choice.ranks is None and choice.target != "cuda" and seed % 3 != 0 and seed % _IN_PARTS == 2
    )
    ranks = choice.ranks or (1 if in_parts or seed % 3 else 3)
    compiler = choice.compiler if choice.compiler != "both" else "numba" if seed % 4 == 1 else "llvm"
    writes = choice.target == "python" and seed % _WRITTEN == 0
    is_stored = seed % _STORED == 3
    return Engine(choice.target, ranks, disabled, compiler, in_parts, is_stored, writes, choice.recorded)


@contextmanager
def ready(choice: Choice) -> Iterator[None]:
    """What all seeds have in common, and the parts that are asked for."""
    own = {"workers": 0, "own_kernels": sys.maxsize} if choice.alone else {}
    with tuning.using(replace(tuning.compiling, **own)), all_in_parts():  # of connections with a limit
        yield
