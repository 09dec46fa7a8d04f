"""TPC-H on gquery: data, the 22 queries, their answers, runs and comparisons (README.md, ``python -m tpch --help``).

It stands beside the engine and uses its public API alone (but for `cubins`); nothing under ``gquery`` knows it.
"""
