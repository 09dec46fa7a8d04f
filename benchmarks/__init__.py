"""Measurements of the engine alone: ``python -m benchmarks`` is the suite of microbenchmarks, ``latency.py`` and ``udf.py``
are scripts of their own, NOTES.md says what was measured, where and when.

`__main__` reads the command, `cases` say what is measured, `data` makes their columns on the device, `measure` runs and
times them, `report` prints.
"""
