"""From SQL text to a logical plan: parsing, names, scopes, types.

A statement's text and a catalog go in, a `statement` with a bound `planner.logical` query comes out: `parse` reads and
checks the text in full, `bind` and the bind_ modules resolve names and types. Called by `api`.
"""
