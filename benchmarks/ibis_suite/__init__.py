"""Ibis' own tests of backends, run on gquery: ``python -m benchmarks.ibis_suite``. Its wheel has them, but not their data: `data`
makes tables of the same columns."""
