"""Files that are damaged at random, each read in a process that may die: see `tests.mutations.run`."""
