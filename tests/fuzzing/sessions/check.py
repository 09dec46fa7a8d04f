"""A script in both engines: rows, names and types of each statement are DuckDB's, or both fail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import duckdb

import gquery
from tests.fuzzing.sessions.known import is_known, same_names
from tests.fuzzing.sessions.script import construct
from tests.support.harness import Row, compare

_QUIET = ("CREATE", "ALTER", "DROP", "SET", "BEGIN", "START", "COMMIT", "ROLLBACK", "PREPARE")  # they give no rows


@dataclass(frozen=True)
class Answer:
    """What an engine says of a statement."""

    names: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    rows: Sequence[Row] = ()
    error: Exception | None = None


@dataclass(frozen=True)
class Fault:
    kind: str  # rows, names, types, refused, accepted, internal
    construct: str
    statement: str
    said: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.said}\n{self.statement}"


@dataclass
class Seen:
    """How often constructs have given the same rows, failed in both engines, or differ in a way that is documented."""

    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, statement: str, outcome: str) -> None:
        self.outcomes[construct(statement), outcome] += 1


def run(statements: Sequence[str], seen: Seen) -> Fault | None:
    """The first fault of a script."""
    theirs = duckdb.connect()
    ours = gquery.connect(device="python")
    try:
        for text in statements:
            want, got = _theirs(theirs, text), _ours(ours, text)
            fault = _compared(text, got, want)
            if fault is not None and not is_known(fault.kind, text, got.error, want.error):
                return fault
            seen.add(text, "known" if fault else "both fail" if got.error else "same")
            if fault is not None and not _only_asks(text):
                return None  # what there is differs from here on
            if got.error or want.error:  # DuckDB gives a transaction up
                with suppress(duckdb.Error):
                    theirs.execute("ROLLBACK")
                with suppress(gquery.Error):
                    ours.sql("ROLLBACK")
        return None
    finally:
        theirs.close()
        ours.close()


def _only_asks(text: str) -> bool:
    return text.startswith(
        ("SELECT", "FROM", "TABLE", "WITH", "PIVOT", "UNPIVOT", "DESCRIBE", "SHOW", "PRAGMA", "EXECUTE")
    )


def _theirs(db: duckdb.DuckDBPyConnection, text: str) -> Answer:
    try:
        done = db.execute(text)
        described = done.description or []
        return Answer(tuple(str(d[0]) for d in described), tuple(str(d[1]) for d in described), done.fetchall())
    except (duckdb.Error, RuntimeError) as error:  # a few of DuckDB's errors have no class
        return Answer(error=error)


def _ours(db: gquery.Connection, text: str) -> Answer:
    try:
        result = db.sql(text)
        return Answer(tuple(result.columns), tuple(map(str, result.types)), result.fetchall())
    except Exception as error:
        return Answer(error=error)


def _compared(text: str, got: Answer, want: Answer) -> Fault | None:
    def fault(kind: str, said: str) -> Fault:
        return Fault(kind, construct(text), text, said)

    if got.error is not None and (
        not isinstance(got.error, gquery.Error) or isinstance(got.error, gquery.InternalError)
    ):
        return fault("internal", f"{type(got.error).__name__}: {got.error}")
    if got.error is not None and want.error is not None:
        return None
    if got.error is not None:
        return fault("refused", f"{type(got.error).__name__}: {got.error}")
    if want.error is not None:
        return fault("accepted", f"{type(want.error).__name__}: {want.error}")
    if text.startswith(_QUIET):
        return None
    types = [_plain(t) for t in want.types]
    rows = [[tuple(map(_same_number, row)) for row in answer.rows] for answer in (got, want)]
    if (said := compare(rows[0], rows[1], False, types)) is not None:
        return fault("rows", said)
    if not same_names(got.names, want.names):
        return fault("names", f"{got.names}, expected {want.names}")
    known = [
        _is_type(g, w) or (w in ("INTEGER", "BIGINT") and _is_null(text, want.rows, n))
        for n, (g, w) in enumerate(zip(got.types, want.types))
    ]
    if not all(known):
        return fault("types", f"{got.types}, expected {want.types}")
    return None


def _plain(kind: str) -> str:
    return "DOUBLE" if kind == "FLOAT" else kind


def _is_type(got: str, want: str) -> bool:
    """Sums of integers are BIGINT here, or DECIMAL(38, 0), where DuckDB has HUGEINT."""
    if want == "HUGEINT":
        return got in ("BIGINT", "DECIMAL(38,0)", "HUGEINT")
    return got == want


def _is_null(text: str, rows: Sequence[Row], column: int) -> bool:
    """Whether a column may be a NULL that has lost its type in DuckDB, where a function of it was folded."""
    return "NULL" in text and all(row[column] is None for row in rows)


def _same_number(value: Any) -> Any:
    """One zero of doubles, as groups keep any of them."""
    return value + 0.0 if isinstance(value, float) else value


def shrunk(statements: Sequence[str], fault: Fault) -> tuple[Sequence[str], Fault]:
    """Fewer statements with the same kind of fault of the same construct; the fault that they have."""
    best, left = list(statements), fault
    while True:
        for width in (8, 4, 2, 1):
            for at in range(len(best) - 1, -1, -1):
                shorter = best[:at] + best[at + width :]
                found = run(shorter, Seen())
                if (
                    found is not None
                    and len(shorter) < len(best)
                    and (found.kind, found.statement) == (left.kind, left.statement)
                ):
                    best, left = shorter, found
                    break
            else:
                continue
            break
        else:
            return best, left
