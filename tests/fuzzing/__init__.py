"""A fuzzer with a generator of its own: `tape` draws, `data` makes tables, `grammar` writes queries, `check` compares,
`shrink` makes what fails small. ``python -m tests.fuzzing --help`` runs it at length.
"""
