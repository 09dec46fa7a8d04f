"""Window functions at run time: values that are computed over the rows of a partition, in order, and stored at each row.

`run_window` is called as a pipeline breaker is. The rows of a frame are put in order once (`operators.ordered`); every call is
computed by *position* in that order, and its value is stored at the row that stands there, so that no column which is only passed
on is moved. `frames` turns what a call says of its frame into ranges of positions; `ranks`, `values` and `aggregates` compute.
"""

from gquery.operators.window.run import run_window

__all__ = ["run_window"]
