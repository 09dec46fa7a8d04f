"""From SQL text to a logical plan: parsing, names, scopes, types.

A statement's text and a catalog go in, a `statement` with a bound `planner.logical` query comes out: `parse` reads and
checks the text in full, `bind` and the bind_ modules resolve names and types. Called by `api`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from importlib import import_module

from gquery.runtime.lazy_package import imported_in_parts
from gquery.runtime.postponed import postponed


def _plugins() -> AbstractContextManager[None]:
    """sqlglot looks for plugins where it does not know a dialect, which is never; with `email` this takes 8 ms to import."""
    return postponed("importlib.metadata", "entry_points")


# Plain statements need some classes of sqlglot's nodes; its parser, generator and dialects are half of what it imports, tables of
# all classes a fourth.
with imported_in_parts("sqlglot", _plugins), imported_in_parts("sqlglot.expressions", nullcontext):
    _nodes = import_module("sqlglot.expressions")
    for _part in ("core", "datatypes", "query", "ddl", "functions"):  # a name of another part brings all of them
        for _name, _value in vars(import_module(f"sqlglot.expressions.{_part}")).items():
            if isinstance(_value, type) and _value.__module__.startswith("sqlglot.expressions.") and _name[0] != "_":
                vars(_nodes).setdefault(_name, _value)  # as its ``__init__`` does
    vars(import_module("sqlglot"))["exp"] = _nodes
