"""The logical plan: what a query means.

`nodes` are its frozen nodes, `tree` the recursion over them, `shared` subplans that are used more than once, `properties`
what is proved of a plan, `cardinality` what is guessed, `verify` the check that a plan is sound. `sql` and `api` make plans,
rules rewrite them, `planner.lower` reads them.
"""
