"""From SQL text to a logical plan: parsing, names, scopes, types.

A statement's text and a catalog go in, a `statement` with a bound `planner.logical` query comes out: `parse` reads and
checks the text in full, `bind` and the bind_ modules resolve names and types. Called by `api`.
"""

from __future__ import annotations

from contextlib import nullcontext
from importlib import import_module

from gquery.runtime.lazy_package import import_in_parts
from gquery.runtime.postponed import postponed

# Plain statements need some classes of its nodes; its parser, generator and dialects are half of what it imports, and tables of
# all classes a fourth. It looks for plugins by ``entry_points`` where it does not know a dialect, which is never; with `email`
# that takes 8 ms to import.
import_in_parts("sqlglot", lambda: postponed("importlib.metadata", "entry_points"))
import_in_parts("sqlglot.expressions", nullcontext)
_nodes = import_module("sqlglot.expressions")
for _part in ("core", "datatypes", "query", "ddl", "functions"):  # a name of another part brings all of them
    _names = vars(import_module(f"sqlglot.expressions.{_part}"))
    vars(_nodes).update({name: value for name, value in _names.items() if name[0] != "_"})  # as its ``__init__`` does
vars(import_module("sqlglot"))["exp"] = _nodes
