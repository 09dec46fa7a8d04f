"""What users call: connections, relations, the DB-API, data frames.

`connection.Connection` takes a statement or data and gives a `relation.Relation`, whose rows are computed when they are
asked for; `plan_cache` keeps plans, `readers` opens files, `dbapi` and `dataframe` are two more ways in. Every public
function stands behind `runtime.boundary`, so only errors of gquery leave.
"""
