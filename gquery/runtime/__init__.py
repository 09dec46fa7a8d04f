"""What every room needs while it runs and that knows nothing of queries.

`threads` runs phases of tasks on all cores, `interrupt` ends work, `stopwatch` times its parts, `nesting` gives deep
recursion room, `recent` is a bounded mapping, `arguments` and `boundary` guard the public functions: bad arguments and
faults of others go in, errors of gquery come out. Imports `errors` and `tuning` alone.
"""
