"""Plans as text: one node a line, sources indented below it. What EXPLAIN shows and golden tests compare.

Columns go by name; where two columns of a plan share a name, ``#`` and a number in order of appearance tells them
apart, so the text does not depend on ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import assert_never

from gquery.expression.expr import (
    TRUE,
    AggregateCall,
    And,
    Call,
    Case,
    Cast,
    Column,
    Exists,
    Expr,
    In,
    InSubquery,
    IsNull,
    Literal,
    Not,
    Or,
    ScalarSubquery,
    SortKey,
)
from gquery.expression.interval import Interval
from gquery.expression.types import DType, Kind, python_value
from gquery.expression.windows import TO_CURRENT, FrameBound, WindowCall, WindowFrame
from gquery.planner.logical.nodes import (
    Aggregate,
    Apply,
    Filter,
    Fixpoint,
    Join,
    Limit,
    Plan,
    Project,
    Query,
    Range,
    Scan,
    Shared,
    Sort,
    UnionAll,
    Unnest,
    Values,
    Window,
    WorkingTable,
)
from gquery.planner.logical.shared import definitions
from gquery.planner.logical.tree import expressions, made_columns, subqueries, walk

_OPERATORS = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "int_divide": "//", "modulo": "%", "eq": "=",
    "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "like": "LIKE", "ilike": "ILIKE", "_joined": "||",
    "is_distinct_from": "IS DISTINCT FROM", "is_not_distinct_from": "IS NOT DISTINCT FROM",
}  # fmt: skip
MOST_TEXT = 10_000  # characters of an expression


def explain_query(query: Query, rows: Callable[[Plan], float] | None) -> str:
    """The result's columns, then the plan."""
    printer = Printer(query.plan)
    outputs = ", ".join(
        printer.column(c) if c.name == name else f"{name} = {printer.column(c)}"
        for c, name in zip(query.outputs, query.names, strict=True)
    )
    return "\n".join([f"Query {outputs}", *printer.lines(query.plan, 1, rows)]) + "\n"


def explain(plan: Plan | Query, rows: Callable[[Plan], float] | None = None) -> str:
    """The plan as an indented tree; ``rows`` adds an estimate to each node."""
    if isinstance(plan, Query):
        return explain_query(plan, rows)
    return "\n".join(Printer(plan).lines(plan, 0, rows)) + "\n"


class Printer:
    """Names for the columns of one plan, and its text."""

    def __init__(self, plan: Plan | None) -> None:
        self.names: dict[int, str] = {}
        self.subqueries: list[Plan] = []
        self._texts: dict[int, tuple[Expr, str]] = {}  # by identity; the expression is kept, so its id too
        self.definitions: dict[int, str] = {}  # their names, by number, as they are first met
        self.shown: set[int] = set()
        if plan is not None:
            self._name(c for node in _all_nodes(plan) for c in made_columns(node))

    @staticmethod
    def of(columns: Iterable[Column]) -> Printer:
        """A printer for expressions over these columns."""
        printer = Printer(None)
        printer._name(columns)
        return printer

    def _name(self, columns: Iterable[Column]) -> None:
        used: dict[str, int] = {}
        for c in columns:
            if c.id not in self.names:
                used[c.name] = used.get(c.name, 0) + 1
                self.names[c.id] = c.name if used[c.name] == 1 else f"{c.name}#{used[c.name]}"

    def column(self, c: Column) -> str:
        return self.names.get(c.id, f"{c.name}#?")

    def lines(self, plan: Plan, depth: int, rows: Callable[[Plan], float] | None) -> Iterator[str]:
        known = len(self.subqueries)
        text = self.node(plan)
        yield "  " * depth + text + (f"  [{rows(plan):,.0f} rows]" if rows else "")
        new = self.subqueries[known:]
        for i, sub in enumerate(new):
            yield "  " * (depth + 1) + f"subquery {known + i + 1}:"
            yield from self.lines(sub, depth + 2, rows)
        for s in self.below(plan):
            yield from self.lines(s, depth + 1, rows)

    def below(self, plan: Plan) -> tuple[Plan, ...]:
        """What is printed below a node: its sources, and below the first use of a definition the definition."""
        if isinstance(plan, Fixpoint):
            return (plan.source, plan.step.plan)
        if not isinstance(plan, Shared):
            return plan.sources
        if plan.definition.number in self.shown:
            return ()
        self.shown.add(plan.definition.number)
        return (plan.definition.plan,)

    def definition(self, plan: Shared) -> str:
        """A name for a definition: the user's, if no other has it."""
        d = plan.definition
        if d.number not in self.definitions:
            name = d.name or "subplan"
            taken = sum(1 for n in self.definitions.values() if n.partition("#")[0] == name)
            self.definitions[d.number] = f"{name}#{taken + 1}" if taken else name
        return self.definitions[d.number]

    def node(self, plan: Plan) -> str:
        match plan:
            case Scan():
                return f"Scan {plan.source.name} ({', '.join(self.column(c) for c in plan.columns)})"
            case Values(columns=columns, rows=rows):
                shown = ", ".join("(" + ", ".join(self.expr(e) for e in row) + ")" for row in rows[:4])
                more = f", ... {len(rows)} rows" if len(rows) > 4 else ""
                return f"Values ({', '.join(self.column(c) for c in columns)}) {shown}{more}".rstrip()
            case Range():
                return f"Range {self.column(plan.column)} from {plan.start} to {plan.stop} by {plan.step}"
            case Shared(columns=columns):
                shown = ", ".join(self.named(c, made) for c, made in zip(columns, plan.outputs, strict=True))
                again = " as above" if plan.definition.number in self.shown else ""
                return f"Shared {self.definition(plan)} ({shown}){again}"
            case Filter(predicate=p):
                return f"Filter {self.expr(p)}"
            case Project(exprs=exprs):
                return f"Project {', '.join(self.named(c, e) for c, e in exprs)}"
            case Join(kind=kind, condition=on, mark=mark) | Apply(kind=kind, condition=on, mark=mark):
                where = "" if on == TRUE else f" on {self.expr(on)}"
                made = f" -> {self.column(mark)}" if mark is not None else ""
                return f"{type(plan).__name__} {kind.value}{made}{where}"
            case Aggregate(keys=keys, aggregates=calls, sets=sets):
                by = f" by {', '.join(self.named(c, e) for c, e in keys)}" if keys else ""
                if sets is not None:
                    by += f" in sets {', '.join(f'({self.in_set(plan, s)})' for s in sets.sets)}"
                of = ", ".join(f"{self.column(c)} = {self.call(a)}" for c, a in calls)
                return f"Aggregate{by}" + (f": {of}" if of else "")
            case Window(partition=partition, order=order, calls=windows, first=first):
                by = f" by {', '.join(map(self.expr, partition))}" if partition else ""
                inside = f" order {', '.join(map(self.key, order))}" if order else ""
                made = ", ".join(f"{self.column(c)} = {self.window(call)}" for c, call in windows)
                top = "" if first is None else f" top {first}"
                return f"Window{top}{by}{inside}: {made}"
            case Unnest(lists=lists, ordinal=ordinal, kept=kept):
                numbered = "" if ordinal is None else f", numbered {self.column(ordinal)}"
                none = ", a row for none" if kept else ""
                return f"Unnest {', '.join(self.named(c, e) for c, e in lists)}{numbered}{none}"
            case Sort(keys=sort_keys, limit=limit, offset=offset):
                top = "" if limit is None else f" top {limit}"
                skip = f" after {offset}" if offset else ""
                return f"Sort{top}{skip} by {', '.join(self.key(k) for k in sort_keys)}"
            case Limit(limit=limit, offset=offset):
                return f"Limit {'all' if limit is None else limit}" + (f" after {offset}" if offset else "")
            case WorkingTable(level=level):
                which = "rows" if level is None else f"level {level} of all rows"
                return f"Working {which} ({', '.join(self.column(c) for c in plan.columns)})"
            case Fixpoint(enough=enough):
                most = "" if enough is None else f", {enough} rows will do"
                return f"Fixpoint {', '.join(self.column(c) for c in plan.columns)}{most}"
            case UnionAll():
                return f"UnionAll {', '.join(self.column(c) for c in plan.columns)}"
            case _:
                assert_never(plan)

    def named(self, c: Column, e: Expr) -> str:
        if isinstance(e, Column) and e.id == c.id:
            return self.column(c)
        return f"{self.column(c)} = {self.expr(e)}"

    def key(self, k: SortKey) -> str:
        nulls = (" nulls first" if k.nulls_first else "") if k.expr.nullable else ""
        return self.expr(k.expr) + (" desc" if k.descending else "") + nulls

    def in_set(self, plan: Aggregate, positions: tuple[int, ...]) -> str:
        return ", ".join(self.column(plan.keys[n][0]) for n in positions)

    def call(self, a: AggregateCall) -> str:
        args = ", ".join(self.expr(e) for e in a.args) or "*"
        where = f" where {self.expr(a.filter)}" if a.filter is not None else ""
        order = f" order by {', '.join(map(self.key, a.order))}" if a.order else ""
        return f"{a.function}({'distinct ' if a.distinct else ''}{args}{order}){where}"

    def window(self, call: WindowCall) -> str:
        """A call over a window, without the partition and order of its node."""
        args = ("distinct " if call.distinct else "") + (
            ", ".join(map(self.expr, call.args)) or "*" * (call.function == "count")
        )
        order = f" order {', '.join(map(self.key, call.order))}" if call.order else ""
        nulls = " ignore nulls" if call.ignore_nulls else ""
        where = f" where {self.expr(call.filter)}" if call.filter is not None else ""
        return f"{call.function}({args}{order}{nulls}){where}{self._frame(call.frame)}"

    def _frame(self, frame: WindowFrame) -> str:
        """The frame of a call; nothing for one that names none."""
        if frame == TO_CURRENT:
            return ""

        def bound(b: FrameBound) -> str:
            return b.kind if b.amount is None else f"{self.expr(b.amount)} {b.kind}"

        excluded = "" if frame.exclude == "no others" else f" exclude {frame.exclude}"
        return f" {frame.unit} {bound(frame.start)} to {bound(frame.end)}{excluded}"

    def expr(self, e: Expr, nested: bool = False) -> str:
        """The text of an expression; a very long one is cut short. One in several places is written once."""
        known = self._texts.get(id(e))
        text = known[1] if known is not None else self._expr(e)
        if known is None and e.children and not subqueries(e):  # subqueries are numbered where they stand
            text = text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]} ..."
            self._texts[id(e)] = (e, text)
        compound = isinstance(e, And | Or | Not) or (isinstance(e, Call) and e.function in _OPERATORS)
        return f"({text})" if nested and compound else text

    def _expr(self, e: Expr) -> str:
        match e:
            case Column():
                return self.column(e)
            case Literal(value, dtype):
                return literal(value, dtype)
            case Call(function=f, args=(a, b)) if f in _OPERATORS:
                return f"{self.expr(a, True)} {_OPERATORS[f]} {self.expr(b, True)}"
            case Call(function=f, args=(a, b, *_)) if f in ("like", "ilike"):
                return f"{self.expr(a, True)} {_OPERATORS[f]} {self.expr(b, True)}"
            case Call(function=f, args=args):
                return f"{f}({', '.join(self.expr(a) for a in args)})"
            case Cast(arg=arg, dtype=dtype, try_=try_):
                return f"{'TRY_' if try_ else ''}CAST({self.expr(arg)} AS {dtype})"
            case Case(branches, otherwise):
                whens = " ".join(f"WHEN {self.expr(c)} THEN {self.expr(v)}" for c, v in branches)
                return f"CASE {whens} ELSE {self.expr(otherwise)} END"
            case And(args):
                return " AND ".join(self.expr(a, isinstance(a, Or)) for a in args)
            case Or(args):
                return " OR ".join(self.expr(a, isinstance(a, And)) for a in args)
            case Not(IsNull(arg)):
                return f"{self.expr(arg, True)} IS NOT NULL"
            case Not(arg):
                return f"NOT {self.expr(arg, True)}"
            case IsNull(arg):
                return f"{self.expr(arg, True)} IS NULL"
            case In(arg=arg, values=values):
                listed = ", ".join(literal(v, arg.dtype) for v in values)
                return f"{self.expr(arg, True)} IN ({listed})"
            case ScalarSubquery(plan, field):
                part = f".{self.column(plan.columns[field])}" if len(plan.columns) > 1 else ""
                return f"(subquery {self._subquery(plan)}){part}"
            case Exists(plan):
                return f"EXISTS (subquery {self._subquery(plan)})"
            case InSubquery(args, plan):
                listed = ", ".join(self.expr(a, True) for a in args)
                listed = f"({listed})" if len(args) > 1 else listed
                return f"{listed} IN (subquery {self._subquery(plan)})"
            case _:
                assert_never(e)

    def _subquery(self, plan: Plan) -> int:
        """The number of a subquery's plan, which several expressions of a node may ask."""
        known = next((n for n, p in enumerate(self.subqueries, 1) if p is plan), None)
        if known is None:
            self.subqueries.append(plan)
        return known or len(self.subqueries)


def _all_nodes(plan: Plan) -> Iterator[Plan]:
    nodes = [n for p in (plan, *(d.plan for d in definitions(plan))) for n in walk(p)]
    yield from nodes
    for node in nodes:
        if isinstance(node, Fixpoint):
            yield from _all_nodes(node.step.plan)
        for e in expressions(node):
            for s in subqueries(e):
                yield from _all_nodes(s.plan)


def _moment(value: object, dtype: DType) -> str:
    try:
        return str(python_value(dtype, value))
    except OverflowError:  # a year that Python has not
        import numpy as np

        number = np.int64(int(str(value)))
        return str(number.astype("M8[D]" if dtype.kind is Kind.DATE else "M8[us]")).replace("T", " ")


def literal(value: object, dtype: DType) -> str:
    """A constant as SQL would write it."""
    if value is None:
        return "NULL"
    match dtype.kind:
        case Kind.INTERVAL:
            parts = Interval.of(int(str(value)))
            units = ((parts.months, "months"), (parts.days, "days"), (parts.micros, "microseconds"))
            return f"INTERVAL '{' '.join(f'{n} {unit}' for n, unit in units if n) or '0 days'}'"
        case Kind.VARCHAR:
            return "'" + str(value).replace("'", "''") + "'"
        case Kind.DATE | Kind.TIME | Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            return f"{dtype} '{_moment(value, dtype)}'"
        case Kind.BOOLEAN:
            return "TRUE" if value else "FALSE"
        case _:
            return str(python_value(dtype, value))
