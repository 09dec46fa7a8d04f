"""Every SQL function is declared here: scalar functions, operators, aggregates, with types, bounds and meaning.

To add a scalar function, write one decorated function in the module of its subject (`numeric`, `dates`, `strings`),
with a docstring and an example, and a line in ``tests/functions``. Its body is written over registers and calls
primitives by name; the same body runs on every target. A function that makes new strings is a
`host_scalar`, written over Arrow arrays (`new_strings`, `regex`, `date_names`). A name that only stands for a larger
expression is a `resolver`.

Modules whose functions few queries call are imported when one of their names is first asked for (`registry.declare_rest`).

The binder makes calls with `call`, `cast` and `aggregate`, which type them and insert implicit casts; the engine looks
up `FUNCTIONS` for how to compute a `Call`, and `AGGREGATES` for what an `AggregateCall` gives.
"""

from __future__ import annotations

from gquery.functions import (
    chance,
    clock,
    comparison_keys,
    conditional,
    list_picks,
    maps,
    operators,
    structs,
    time_sums,
)
from gquery.functions.aggregate_record import AggregateFunction
from gquery.functions.aggregates import (
    AGGREGATES,
    aggregate,
    counts,
    declaration,
    declared,
    gives_one_value,
    is_aggregate,
    is_ordered,
    may_give_null,
)
from gquery.functions.casts import cast, castable, unified, unify
from gquery.functions.conditional import case, case_of
from gquery.functions.operators import COMPARISONS, MIRRORED, NEGATED
from gquery.functions.registry import EXAMPLES, FUNCTIONS, RESOLVERS, ScalarFunction, call

__all__ = [
    "AGGREGATES", "COMPARISONS", "EXAMPLES", "FUNCTIONS", "MIRRORED", "NEGATED", "RESOLVERS", "AggregateFunction",
    "ScalarFunction", "aggregate", "call", "case", "case_of", "cast", "castable", "chance", "clock", "comparison_keys",
    "conditional", "counts", "declaration", "declared", "gives_one_value", "is_aggregate",
    "is_ordered", "list_picks", "maps", "may_give_null", "operators", "structs", "time_sums", "unified", "unify",
]  # fmt: skip
