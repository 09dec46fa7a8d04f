"""Every SQL function is declared here: scalar functions, operators, aggregates, with types, bounds and meaning.

To add a scalar function, write one decorated function in the module of its subject (`numeric`, `dates`, `strings`),
with a docstring and an example, and a line in ``tests/functions``. Its body is written over registers and calls
primitives by name; the same body runs on every target. A function that makes new strings is a
`host_scalar`, written over Arrow arrays (`new_strings`, `regex`, `date_names`). A name that only stands for a larger
expression is a `resolver`.

The binder makes calls with `call`, `cast` and `aggregate`, which type them and insert implicit casts; the engine looks
up `FUNCTIONS` for how to compute a `Call`, and `AGGREGATES` for what an `AggregateCall` gives.
"""

from __future__ import annotations

from gquery.functions import (
    blobs,
    chance,
    clock,
    comparison_keys,
    conditional,
    date_differences,
    date_forms,
    date_names,
    dates,
    day_times,
    format_text,
    frame_forms,
    grapheme_pieces,
    integers,
    likeness,
    list_aggregates,
    list_moments,
    list_picks,
    list_sets,
    list_splits,
    lists,
    maps,
    new_strings,
    numeric,
    operators,
    parsing,
    paths,
    readable,
    regex,
    rounding,
    session,
    special,
    strings,
    structs,
    text_pieces,
    zones,
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
    "ScalarFunction", "aggregate", "blobs", "call", "case", "case_of", "cast", "castable", "chance", "clock", "comparison_keys",
    "conditional", "counts", "date_differences", "date_forms", "date_names", "dates", "day_times", "declaration", "declared",
    "format_text", "frame_forms", "gives_one_value", "grapheme_pieces", "integers", "is_aggregate", "is_ordered",
    "likeness", "list_aggregates", "list_moments", "list_picks", "list_sets", "list_splits", "lists", "maps", "may_give_null",
    "new_strings", "numeric", "operators", "parsing", "paths", "readable", "regex", "rounding", "session",
    "special", "strings", "structs", "text_pieces", "unified", "unify", "zones",
]  # fmt: skip
