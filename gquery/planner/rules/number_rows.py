"""The number of a row among all of a table is a column that the table has: no window is computed.

    Project a, rowid = row_number - 1        Project a, rowid = row number
      Window: row_number = row_number()  =>    Scan t (a, row number)
        Scan t (a)

Tables in memory give numbers from 0 on as one more field (`columns.numbered`), sorted and unique: a filter on them reads the
rows that it keeps, a join of them needs no hash table. Whoever numbers rows without an order gets them so: ``rowid``,
``row_number() OVER ()``, samples, POSITIONAL joins. Windows stay over rows that a filter or another node has chosen, and over
files, of which parts are read.
"""

from __future__ import annotations

from gquery.columns.numbered import NumberedRows, can_be_numbered
from gquery.expression.expr import Call, Column, Expr, Literal, new_column
from gquery.expression.traverse import substitute, transform
from gquery.expression.types import BIGINT
from gquery.functions import call
from gquery.planner.logical.nodes import Plan, Project, Scan, Window
from gquery.planner.logical.tree import transform_up
from gquery.runtime.records import replace

_ROW = "row number"
_ONE = Literal(1, BIGINT)


def number_rows(plan: Plan) -> Plan | None:
    """Windows that number the rows of a table as columns of its scan."""
    new = transform_up(plan, _Numbers().of)
    return None if new is plan else new


class _Numbers:
    """Those of a plan: by the id of a number from 1 on the column that counts from 0."""

    def __init__(self) -> None:
        self._from_zero: dict[int, Column] = {}

    def of(self, plan: Plan) -> Plan:
        """The node over its rewritten sources."""
        if isinstance(plan, Window) and not plan.partition and not plan.order and plan.first is None:
            return self._window(plan)
        if isinstance(plan, Project) and isinstance(below := plan.source, Project):
            if any(c.id in self._from_zero for c, _ in below.exprs):
                by_id = {c.id: e for c, e in below.exprs}
                exprs = tuple((c, substitute(transform(e, self._without_one), by_id)) for c, e in plan.exprs)
                return Project(below.source, exprs)
        return plan

    def _window(self, plan: Window) -> Plan:
        numbers = [c for c, made in plan.calls if made.function == "row_number"]
        found = _with_number(plan.source) if numbers else None
        if found is None:
            return plan
        rows, row = found
        self._from_zero |= {c.id: row for c in numbers}
        one_more = call("add", row, _ONE)
        rows = Project(rows, (*[(c, c) for c in plan.source.columns], *[(c, one_more) for c in numbers]))
        rest = tuple((c, made) for c, made in plan.calls if made.function != "row_number")
        return replace(plan, source=rows, calls=rest) if rest else rows

    def _without_one(self, e: Expr) -> Expr:
        """``number - 1`` as what counts from 0."""
        if isinstance(e, Call) and e.function == "subtract" and isinstance(number := e.args[0], Column) and e.args[1] == _ONE:
            return self._from_zero.get(number.id, e)
        return e


def _with_number(plan: Plan) -> tuple[Plan, Column] | None:
    """The rows of a table as they lie there, with the number of each; None where they are others."""
    match plan:
        case Scan(source, columns, fields) if isinstance(source, NumberedRows) and source.number in fields:
            return plan, columns[fields.index(source.number)]
        case Scan(source, columns, fields):
            if not can_be_numbered(source):
                return None
            numbered = source.numbered()
            row = new_column(_ROW, BIGINT, False)
            return Scan(numbered, (*columns, row), (*fields, numbered.number)), row
        case Project(below, exprs):
            found = _with_number(below)
            if found is None:
                return None
            rows, row = found
            return Project(rows, (*exprs, (row, row))), row
        case _:
            return None
