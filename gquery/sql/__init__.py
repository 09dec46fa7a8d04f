"""From SQL text to a logical plan: parsing, names, scopes, types.

A statement's text and a catalog go in, a `statement` with a bound `planner.logical` query comes out: `parse` reads and
checks the text in full by `grammar`, `bind` and the modules of `binding` resolve names and types. Called by `api`.
"""

from __future__ import annotations

from importlib import import_module

from gquery.runtime.postponed import postponed

# sqlglot looks for plugins by it where it does not know a dialect, which is never; with `email` it takes 8 ms to import
with postponed("importlib.metadata", "entry_points"):
    import_module("sqlglot")
