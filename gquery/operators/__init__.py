"""The operators: what each writes into a loop, and what it does at run time. One file an operator."""
