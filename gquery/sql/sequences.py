"""Sequences: `nextval` in what a statement gives, row by row.

A call is bound to a mark. `numbered` puts numbers in place of the marks of a statement's outermost rows: those of the sequence's
next values, by the number of the row. How many were drawn is known when the rows are there; the sequence goes on behind them then
(`Sequences.advance`). No transaction takes that back.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import field

from gquery.errors import CatalogError, NotSupportedError, OutOfRangeError, did_you_mean
from gquery.expression.expr import Call, Expr, Literal, new_column
from gquery.expression.traverse import transform
from gquery.expression.traverse import walk as walk_expr
from gquery.expression.types import BIGINT, INT64, VARCHAR
from gquery.expression.windows import WindowCall
from gquery.functions import call
from gquery.planner.logical.nodes import Drawn, Plan, Project, Query, Sort, Values, Window
from gquery.planner.logical.shared import every_node
from gquery.planner.logical.tree import expressions, map_expressions
from gquery.runtime.records import dataclass, replace

_MARK = "_nextval"
_calls = itertools.count()


@dataclass(frozen=True)
class Sequence:
    """A sequence, by its whole name."""

    name: str
    start: int = 1
    increment: int = 1
    least: int = 1
    most: int = INT64.high
    cycle: bool = False
    number: int = field(default_factory=lambda: next(_calls), compare=False)  # another one of its name has another


@dataclass
class Sequences:
    """The sequences of a connection, by name in lower case (another dictionary after each change), and what they gave last, by
    their numbers: what a rolled back transaction dropped goes on where it was."""

    entries: dict[str, Sequence] = field(default_factory=dict)
    _last: dict[int, int] = field(default_factory=dict)

    def last(self, sequence: Sequence) -> int | None:
        """What a sequence gave last."""
        return self._last.get(sequence.number)

    def get(self, name: str) -> Sequence:
        """The sequence of a name; CatalogError where there is none."""
        found = self.entries.get(name.lower())
        if found is None:
            raise CatalogError(f"sequence {name!r} does not exist.{did_you_mean(name, tuple(self.entries))}")
        return found

    def create(self, sequence: Sequence, replace: bool, if_not_exists: bool) -> None:
        """Adds a sequence; CatalogError where there is one of its name."""
        key = sequence.name.lower()
        if key in self.entries and not replace:
            if not if_not_exists:
                raise CatalogError(f"sequence {sequence.name!r} already exists")
            return
        self.entries = {**self.entries, key: sequence}

    def drop(self, name: str, if_exists: bool) -> None:
        """Removes a sequence; CatalogError where there is none, unless ``if_exists``."""
        if if_exists and name.lower() not in self.entries:
            return
        self.get(name)
        self.entries = {n: s for n, s in self.entries.items() if n != name.lower()}

    def next(self, name: str) -> int:
        """What a sequence gives next."""
        sequence = self.get(name)
        last = self.last(sequence)
        return sequence.start if last is None else _behind(sequence, last, 1)

    def advance(self, drawn: Drawn, rows: int) -> None:
        """Go on behind what so many rows have drawn. OutOfRangeError where a sequence has no such values, CatalogError where it
        gave others meanwhile."""
        if not rows:
            return
        sequence = self.get(drawn.name)
        if self.next(drawn.name) != drawn.first:
            raise CatalogError(f"sequence {sequence.name!r} was drawn from meanwhile; this statement has changed nothing")
        last = _behind(sequence, drawn.first, rows * drawn.calls - 1)
        if not sequence.least <= last <= sequence.most:
            end = f"maximum, {sequence.most}" if sequence.increment > 0 else f"minimum, {sequence.least}"
            text = f"nextval: sequence {sequence.name!r} is at its {end}; this statement has changed nothing"
            raise OutOfRangeError(text)
        self._last[sequence.number] = last


def _behind(sequence: Sequence, value: int, count: int) -> int:
    """What stands so many values behind one."""
    if not sequence.cycle:
        return value + count * sequence.increment
    low, size = _cycle(sequence)
    return low + ((value - low) // sequence.increment + count) % size * sequence.increment


def _cycle(sequence: Sequence) -> tuple[int, int]:
    """Where a cycle begins, and how many values it has."""
    low = sequence.least if sequence.increment > 0 else sequence.most
    return low, (sequence.most - sequence.least) // abs(sequence.increment) + 1


def mark(sequence: Sequence) -> Expr:
    """What stands for a call of nextval until it is known where that stands."""
    return Call(_MARK, (Literal(sequence.name, VARCHAR), Literal(next(_calls), BIGINT)), BIGINT, False)


def _marks(exprs: Iterable[Expr]) -> list[Call]:
    found = (x for e in exprs for x in walk_expr(e))
    return list(dict.fromkeys(x for x in found if isinstance(x, Call) and x.function == _MARK))


def _name(mark: Call) -> str:
    (name, _) = mark.args
    assert isinstance(name, Literal)
    return str(name.value)


def numbered(query: Query, sequences: Sequences) -> Query:
    """A query with numbers in place of marks. NotSupportedError for marks that are not of its outermost rows."""
    everywhere = [m for p in every_node(query.plan) for m in _marks(expressions(p))]
    if not everywhere:
        return query
    chain: list[Project | Sort] = []
    plan = query.plan
    while isinstance(plan, Project | Sort):
        chain.append(plan)
        plan = plan.source
    of_rows = [_marks(row) for row in plan.rows] if isinstance(plan, Values) else []
    of_projects = [m for p in chain if isinstance(p, Project) for m in _marks(expressions(p))]
    if len(everywhere) != sum(map(len, of_rows)) + len(of_projects):
        raise NotSupportedError("not supported: nextval but in the SELECT list of a statement, VALUES of INSERT, and DEFAULT")
    names = [[_name(m) for m in row] for row in of_rows]
    if any(sorted(row) != sorted(names[0]) for row in names):
        raise NotSupportedError("not supported: nextval in some rows of VALUES and not in others")
    each = [*(names[0] if names else ()), *map(_name, of_projects)]  # what a row draws, in order
    drawn = {n: Drawn(n, sequences.next(n), each.count(n)) for n in each}
    numbers = _Numbers(sequences, drawn)
    for k, row in enumerate(of_rows):
        for m, place in zip(row, _places(list(map(_name, row))), strict=True):
            numbers.of[m] = place, Literal(k, BIGINT)
    behind = _places(each)[len(each) - len(of_projects) :]
    numbers.of.update({m: (place, None) for m, place in zip(of_projects, behind, strict=True)})
    made = map_expressions(plan, lambda e: transform(e, numbers.value)) if any(of_rows) else plan
    for node in reversed(chain):
        made = numbers.over(node, made)
    return replace(query, plan=made, drawn=(*query.drawn, *drawn.values()))


def _places(names: list[str]) -> list[int]:
    """Which call of its sequence each is."""
    return [names[:k].count(n) for k, n in enumerate(names)]


class _Numbers:
    """What stands in place of marks: ``of`` has which call of a row each is, and that row's number, from 0, if it is known."""

    def __init__(self, sequences: Sequences, drawn: dict[str, Drawn]) -> None:
        self._sequences, self._drawn = sequences, drawn
        self.of: dict[Call, tuple[int, Expr | None]] = {}
        self.row: Expr | None = None

    def value(self, e: Expr) -> Expr:
        """The value of a mark; any other expression as it is."""
        if not isinstance(e, Call) or e not in self.of:
            return e
        (place, row), drawn = self.of[e], self._drawn[_name(e)]
        row = self.row if row is None else row
        assert row is not None
        sequence = self._sequences.get(drawn.name)
        before = _plus(_times(row, drawn.calls), place)
        if not sequence.cycle:
            return _plus(_times(before, sequence.increment), drawn.first)
        low, size = _cycle(sequence)
        at = call("modulo", _plus(before, (drawn.first - low) // sequence.increment), Literal(size, BIGINT))
        return _plus(_times(at, sequence.increment), low)

    def over(self, node: Project | Sort, source: Plan) -> Plan:
        """A node over another source, with numbers of its rows where it has marks."""
        if not _marks(expressions(node)):
            return replace(node, source=source)
        rows: Plan = source
        if isinstance(source, Values) and len(source.rows) == 1:
            self.row = Literal(0, BIGINT)
        else:
            number = new_column("row_number", BIGINT, False)
            rows = Window(source, (), (), ((number, WindowCall("row_number", (), BIGINT, False)),))
            self.row = call("subtract", number, Literal(1, BIGINT))
        return map_expressions(replace(node, source=rows), lambda e: transform(e, self.value))


def _times(e: Expr, factor: int) -> Expr:
    return e if factor == 1 else call("multiply", e, Literal(factor, BIGINT))


def _plus(e: Expr, other: int) -> Expr:
    return e if other == 0 else call("add", e, Literal(other, BIGINT))


def sequence_of(name: str, said: Mapping[str, object]) -> Sequence:
    """What CREATE SEQUENCE asks for; OutOfRangeError for numbers that do not go together."""
    step = _number(said.get("increment"), 1)
    least = _number(said.get("minvalue"), 1 if step > 0 else INT64.low)
    most = _number(said.get("maxvalue"), INT64.high if step > 0 else -1)
    start = _number(said.get("start"), least if step > 0 else most)
    if step == 0:
        raise OutOfRangeError("CREATE SEQUENCE: INCREMENT BY 0")
    if not least < most:
        raise OutOfRangeError(f"CREATE SEQUENCE: MINVALUE {least} is not less than MAXVALUE {most}")
    if not least <= start <= most:
        raise OutOfRangeError(f"CREATE SEQUENCE: START {start} is not within {least} and {most}")
    made = Sequence(name, start, step, least, most, bool(said.get("cycle")))
    if made.cycle and (start - _cycle(made)[0]) % step:
        raise NotSupportedError("not supported: CYCLE of a sequence whose START is no value of its later rounds")
    return made


def _number(said: object, default: int) -> int:
    value = default if said is None else int(str(said))
    if not INT64.low <= value <= INT64.high:
        raise OutOfRangeError(f"CREATE SEQUENCE: {value} is no BIGINT")
    return value
