"""Groups by what the host makes of few values are groups by these values first.

    Aggregate by k = strftime(t, '%Y-%m'): n = count(*)        Aggregate by k = strftime(m, '%Y-%m'): n = sum(n)
      Scan t                                             =>      Aggregate by m = date_trunc('month', t): n = count(*)
                                                                   Scan t

No kernel makes new text: a key that is one is made on the host, for every row, and groups by it are told apart by all of their
characters. The values that it is made of are keys of a kernel, and the text is made once for each of their groups; groups of
different values may have one text, so that they are merged by it.

Right where values that are equal have the same text, which 0.0 and -0.0 have not, and where results of parts tell those of the
whole (not of DISTINCT, medians and lists). What a CASE computes for some rows alone must not raise for the others.
"""

from __future__ import annotations

from gquery import tuning
from gquery.expression.expr import And, Call, Case, Cast, Column, Expr, Literal, Or, new_column
from gquery.expression.facts import LEAST_DAYS, MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, PARTS_PER_DAY
from gquery.expression.slots import decided, shown
from gquery.expression.traverse import substitute, with_children
from gquery.expression.types import BIGINT, DATE, Bounds, Kind
from gquery.functions import FUNCTIONS, call, cast, may_give_null
from gquery.kernels.host_calls import is_host_call, may_fail
from gquery.planner.logical.cardinality import Estimator
from gquery.planner.logical.nodes import Aggregate, Plan, Project
from gquery.planner.logical.properties import equal_is_same
from gquery.planner.logical.shared import kinds_of, transform_kinds
from gquery.planner.logical.tree import used_columns
from gquery.planner.rules.merged_parts import exact_parts, exactly_merged, merged_value, merges, parts_can_fit

Keys = tuple[tuple[Column, Expr], ...]
_KINDS = kinds_of(Aggregate)
_NAMES = {"dayname": "day", "monthname": "month"}  # functions of moments that a part of it decides


def group_by_arguments(plan: Plan, estimator: Estimator) -> Plan | None:
    """Aggregates by keys that the host makes, over groups of what these are made of."""
    new = transform_kinds(plan, _KINDS, lambda n: _node(n, estimator) if isinstance(n, Aggregate) and n.keys else n)
    return None if new is plan else new


def _node(plan: Aggregate, estimator: Estimator) -> Plan:
    if not all(merges(a) and parts_can_fit(a) for _, a in plan.aggregates):
        return plan
    wanted = _over_source(plan)
    if not any(_needs_host(e) for _, e in wanted.keys):
        return plan
    rows = estimator.rows(wanted.source)
    if rows < tuning.rewrites.argument_rows:
        return plan
    found = _Arguments(estimator, rows)
    keys = [(new_column(c.name, e.dtype, e.nullable), found.over_arguments(e, False)) for c, e in wanted.keys]
    # a second pass over the first groups is nothing where they are few
    if not found.are_keys or rows < tuning.rewrites.rows_an_argument * found.groups:
        return plan
    return _in_two_steps(wanted, tuple([(c, e) for e, c in found.columns.items()]), tuple(keys))


def _over_source(plan: Aggregate) -> Aggregate:
    """The aggregate over what is below a projection that makes its keys."""
    source = plan.source
    if not isinstance(source, Project):
        return plan
    made = {c.id: e for c, e in source.exprs}
    if not any(isinstance(e, Column) and _holds_host_call(made.get(e.id, e)) for _, e in plan.keys):
        return plan
    if any(_holds_host_call(made[i]) for _, a in plan.aggregates for e in a.expressions for i in used_columns(e) if i in made):
        return plan  # it would be made twice
    keys = tuple([(c, substitute(e, made)) for c, e in plan.keys])
    calls = tuple([(c, a.mapped(lambda e: substitute(e, made))) for c, a in plan.aggregates])
    return Aggregate(source.source, keys, calls)


def _in_two_steps(plan: Aggregate, arguments: Keys, keys: Keys) -> Plan:
    """The aggregate by keys over the groups by their arguments."""
    inner = [[(new_column(p.function, p.dtype, may_give_null(p, True)), p) for p in exact_parts(a)] for _, a in plan.aggregates]
    first = Aggregate(plan.source, arguments, tuple([part for own in inner for part in own]))
    outer = []
    for (_, whole), own in zip(plan.aggregates, inner, strict=True):
        again = [exactly_merged(whole, part, column) for column, part in own]
        outer.append([(new_column(a.function, a.dtype, may_give_null(a, True)), a) for a in again])
    second = Aggregate(first, keys, tuple([part for own in outer for part in own]))
    values = [
        (c, merged_value(a, [column for column, _ in own]))
        for (c, a), own in zip(plan.aggregates, outer, strict=True)
    ]
    return Project(second, (*((c, made) for (c, _), (made, _) in zip(plan.keys, keys, strict=True)), *values))


def _needs_host(e: Expr) -> bool:
    """Whether the host makes ``e`` of several columns, or of one that is no text: that of a text may be looked up by its code."""
    if not _holds_host_call(e):
        return False
    used = used_columns(e)
    return len(used) > 1 or (len(used) == 1 and not _is_of_text(e))


def _is_of_text(e: Expr) -> bool:
    return e.dtype.is_string if isinstance(e, Column) else any(map(_is_of_text, e.children))


def _holds_host_call(e: Expr) -> bool:
    return is_host_call(e) or any(map(_holds_host_call, e.children))


class _Arguments:
    """What kernels compute below calls of the host: the keys of the first groups. ``are_keys`` is False where one cannot be
    such a key, ``groups`` how many groups there are at most, as far as is known."""

    def __init__(self, estimator: Estimator, rows: float) -> None:
        self.columns: dict[Expr, Column] = {}
        self.are_keys, self.groups = True, 1.0
        self._estimator, self._rows = estimator, rows

    def over_arguments(self, e: Expr, is_conditional: bool) -> Expr:
        """``e`` over the columns of the first groups."""
        if not _holds_host_call(e):
            return self._column(e, is_conditional) if used_columns(e) else e
        if not used_columns(e):
            self.are_keys = False  # a value a row for all that is known
            return e
        part = _part(e)
        if part is not None and not _holds_host_call(e.children[0]):
            moment, rest = e.children[0], e.children[1:]
            return with_children(e, (self._beginning(moment, part, is_conditional), *rest))
        made = [
            self.over_arguments(c, is_conditional or (n > 0 and isinstance(e, Case | And | Or)))
            for n, c in enumerate(e.children)
        ]
        return with_children(e, tuple(made))

    def _beginning(self, moment: Expr, part: str, is_conditional: bool) -> Column:
        """The column of a moment that is cut to a part; to days, which takes less, where these are few."""
        if part in PARTS_PER_DAY:
            return self._column(_cut(moment, part), is_conditional, float(PARTS_PER_DAY[part]))
        bounds, is_date = _bounds(moment, self._estimator), moment.dtype.kind is Kind.DATE
        if bounds is None:
            return self._column(_cut(moment, part), is_conditional)
        days = bounds.width / (1 if is_date else MICROS_PER_DAY) + 1
        if part != "minute" and days * tuning.rewrites.rows_a_day <= self._rows:
            part = "day"
        if part == "day" and is_date:
            return self._column(moment, is_conditional)
        return self._column(_cut(moment, part), is_conditional, days / LEAST_DAYS[part] + 1)

    def _column(self, e: Expr, is_conditional: bool, most: float | None = None) -> Column:
        if not equal_is_same(e.dtype) or (is_conditional and may_fail(e)):
            self.are_keys = False
        found = self.columns.get(e)
        if found is None:
            found = self.columns[e] = new_column(e.name if isinstance(e, Column) else "argument", e.dtype, e.nullable)
            self.groups *= self._values(e) if most is None else most
        return found

    def _values(self, e: Expr) -> float:
        """How many values there are at most, as far as is known."""
        bounds, known = _bounds(e, self._estimator), self._estimator.distinct(e, self._rows)
        return known if bounds is None else min(known, float(bounds.width))


def _part(e: Expr) -> str | None:
    """The coarsest part of its first argument, a date or timestamp, that decides a text; None where it is all of it, or ``e`` is
    no such text."""
    if not isinstance(e, Call) or not e.args or e.args[0].dtype.kind not in (Kind.DATE, Kind.TIMESTAMP):
        return None
    is_format = e.function == "strftime" and isinstance(e.args[1], Literal) and not e.args[1].is_null
    part = decided(_part_of_format, (e.args[1],)) if is_format and isinstance(e.args[1], Literal) else _NAMES.get(e.function)
    has_no_time = e.args[0].dtype.kind is Kind.DATE and part in ("minute", *PARTS_PER_DAY)
    return "day" if has_no_time else part


def _part_of_format(pattern: str) -> str | None:
    from gquery.functions.date_formats import deciding_part  # with the first format

    return deciding_part(pattern)


def _cut(moment: Expr, part: str) -> Expr:
    """The beginning of a part of time, of a part of a day that of the first one of all; what is infinite stays so."""
    if part == "minute":
        begin = call("_trunc_micros", moment, Literal(MICROS_PER_MINUTE, BIGINT))
    elif part in PARTS_PER_DAY:
        micros = call("multiply", call("_hour", moment), Literal(MICROS_PER_HOUR, BIGINT))
        if part == "minute_of_day":
            minutes = call("multiply", call("_minute", moment), Literal(MICROS_PER_MINUTE, BIGINT))
            micros = call("add", micros, minutes)
        begin = call("_from_micros", micros)
    else:
        day = cast(moment, DATE)
        begin = cast(day if part == "day" else call(f"_trunc_{part}", day), moment.dtype)
    return Case(((call("isfinite", moment), begin),), moment)


def _bounds(e: Expr, estimator: Estimator) -> Bounds | None:
    """The range of an expression's values, where its columns' are known."""
    match e:
        case Column():
            return None if e.dtype.is_string else estimator.values(e)
        case Cast(arg=arg, dtype=dtype) if arg.dtype.kind is Kind.TIMESTAMP and dtype.kind is Kind.DATE:
            bounds = _bounds(arg, estimator)
            return None if bounds is None else Bounds(bounds.low // MICROS_PER_DAY, bounds.high // MICROS_PER_DAY)
        case Call(function=function, args=args):
            of, known = FUNCTIONS[function].bounds, [_bounds(a, estimator) for a in args]
            return None if of is None or None in known else of(*known)
        case Literal(dtype=dtype) if dtype.is_integer and not e.is_null:
            return Bounds(shown(e), shown(e))
        case _:
            return None
