"""Moments of frames: what `functions.frame_parts` asks for where sums are not exact."""

from __future__ import annotations

from gquery.columns.table import ColumnData
from gquery.expression.windows import WindowCall
from gquery.operators.window.aggregates import difference
from gquery.operators.window.moment_trees import central_moments
from gquery.operators.window.positions import Work, prefix, present_by_position, values_by_position
from gquery.operators.window.results import result_column
from gquery.planner.physical import Stored

MOMENTS = ("central_moment", "central_product")


def moment_column(stored: Stored, call: WindowCall, work: Work) -> ColumnData:
    """The sum of the second, third or fourth powers of the distances from the mean of each frame's values (there are as many
    equal arguments), or of products of those of two arguments; NULL of no row. FILTER leaves rows out that have a NULL."""
    columns = [work.column(e) for e in call.args]
    keep = None if call.filter is None else work.column(call.filter)
    present = present_by_position(None, keep, work)
    if call.function == "central_moment":
        power, columns = len(columns), columns[:1]
    else:
        power = 2
    values = [values_by_position(c, "f64", present, 0.0, work) for c in columns]
    found, ranges = central_moments(values, present, power, call.frame, work)
    counts = difference(None if present is None else prefix(present, work.device), ranges, work)
    return result_column(stored, found, counts, "double", work)
