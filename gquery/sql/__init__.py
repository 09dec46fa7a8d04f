"""From SQL text to a logical plan: parsing, names, scopes, types.

A statement's text and a catalog go in, a `statement` with a bound `planner.logical` query comes out: `parse` reads and
checks the text in full, `bind` and the bind_ modules resolve names and types. Called by `api`.
"""

from __future__ import annotations

from importlib import import_module

from gquery.runtime.lazy_package import import_in_parts
from gquery.runtime.postponed import postponed

# Plain statements need the classes of its nodes; its parser, generator and dialects are half of what it imports. It looks for
# plugins by ``entry_points`` where it does not know a dialect, which is never; with `email` that takes 8 ms to import.
import_in_parts("sqlglot", lambda: postponed("importlib.metadata", "entry_points"))
vars(import_module("sqlglot"))["exp"] = import_module("sqlglot.expressions")  # as its ``__init__`` does
