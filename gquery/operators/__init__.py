"""The operators: what each writes into a loop, and what it does at run time. One file an operator.

A stage of `planner.physical` goes in; out go lines of a kernel (`codegen` calls the operators of a pipeline in turn), the
kernel's state, and columns when it has run. `specialize` and `selection` fit a pipeline to what it meets first. Called by
`execution` and `profile`.
"""
