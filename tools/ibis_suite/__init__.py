"""Ibis' own tests of backends, run on gquery: ``python -m tools.ibis_suite``. Its wheel has the tests, not the data: `data` makes
tables of the same columns."""
