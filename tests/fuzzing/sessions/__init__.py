"""Random scripts of statements as a user types them, each run here and in DuckDB: schemas, tables, views, sequences, macros,
variables, JSON, PIVOT, names that are keywords, transactions. ``python -m tests.fuzzing.sessions --seeds 0:2000`` runs many.
"""
