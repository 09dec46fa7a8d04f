"""How often each optimizer rule fires, and what it gains, over TPC-H, TPC-DS, JOB and ClickBench.

`workloads` gives the texts and the tables, `measure` plans and runs a query with and without a rule, `report` writes the
table. ``python -m benchmarks.rules`` is the command.
"""
