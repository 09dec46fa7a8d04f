"""EXPLAIN: a query's plan and program as a tree, with what an analyzed run measured.

A plan, its program and a run's reports go in; text (`explain`, `explain_program`, `text`), JSON (`tree`) or a page (`page`)
comes out. Called by `api`; asks `operators` and `execution` what would run, and decides nothing itself.
"""
