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


def value(name: str) -> Any:
    """What a public name of the package stands for. All that the engine is made of is imported at once: it stays, so the
    collector is kept from it."""
    if name not in _OF_ENGINE:
        return getattr(import_module("gquery.api.dbapi"), name)
    with collector.permanent():
        found = getattr(import_module(_OF_ENGINE[name]), name)
        import_module("gquery.api.startup").load_engine()
    return found


bytecode.use(sys.modules["gquery"])
