"""The names of the package that its module does not hold, and where they are: asking for one that needs the engine loads that.

They stand in front of everything else that is imported, so this module imports next to nothing. The package's other modules
are found by `runtime.bytecode` from here on.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from gquery.runtime import bytecode, collector

_OF_ENGINE = {
    "Connection": "gquery.api.connection", "connect": "gquery.api.connection", "Relation": "gquery.api.relation",
    "Expression": "gquery.api.dataframe.expression", "col": "gquery.api.dataframe.expression", "udf": "gquery.functions.user",
    "fn": "gquery.api.dataframe.expression", "lit": "gquery.api.dataframe.expression",
    "when": "gquery.api.dataframe.expression", "concat": "gquery.api.dataframe.rows",
}  # fmt: skip
COLUMN_FUNCTIONS = frozenset((
    "all", "any", "len", "exclude", "concat_str", "coalesce", "max_horizontal", "min_horizontal", "sum_horizontal",
    "mean_horizontal", "any_horizontal", "all_horizontal", "sum", "mean", "min", "max", "count", "first", "last", "median",
    "n_unique", "std", "var", "cum_sum",
))  # fmt: skip
"""Functions of expressions, many of which are called as Python's own are: ``from gquery import *`` leaves them out."""


def value(name: str) -> Any:
    """What a public name of the package stands for. All that the engine is made of is imported at once: it stays, so the
    collector is kept from it."""
    if name not in _OF_ENGINE and name not in COLUMN_FUNCTIONS:
        return getattr(import_module("gquery.api.dbapi"), name)
    with collector.permanent(), import_module("gquery.runtime.libraries").opened_ahead():
        import_module("gquery.sql")  # sqlglot's classes: Python alone, as long as the libraries take
        if name in COLUMN_FUNCTIONS:
            return import_module("gquery.api.dataframe.columns").FUNCTIONS[name]
        found = getattr(import_module(_OF_ENGINE[name]), name)
        import_module("gquery.api.startup").load_engine()
    return found


bytecode.use(sys.modules["gquery"])
