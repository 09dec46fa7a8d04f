"""One random query: DuckDB's answer is ours, or both say that a value does not fit.

Beside the oracle two checks need none: TLP (a table is what is left of it by a predicate, by its negation, and where it is
NULL) and NoREC (a filter keeps as many rows as an expression finds true).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

import duckdb

import gquery
from tests.fuzzing import macros
from tests.fuzzing.changes import Changes
from tests.fuzzing.data import SETS, tables
from tests.fuzzing.grammar import Grammar
from tests.fuzzing.lists import Lists
from tests.fuzzing.nested import Nested
from tests.fuzzing.stored import stored
from tests.fuzzing.tape import Tape
from tests.support.harness import Row, compare, connect, expect, oracle
from tests.support.recorded import run_until_recorded

Kind = Literal["query", "flat", "tlp", "norec", "groups", "windows", "sets", "lists", "changes", "nested", "macros"]
KINDS: tuple[Kind, ...] = (  # so many that no engine's turn (`tests.fuzzing.engines`) goes with one of them
    "query", "groups", "lists", "query", "windows", "changes", "nested", "flat", "groups", "query", "tlp", "sets", "lists",
    "groups", "query", "windows", "nested", "changes", "norec", "macros", "changes", "flat", "macros", "lists", "nested",
    "query", "changes", "lists", "groups",
)  # fmt: skip
Verdict = Literal["same", "both fail", "one fails", "invalid", "answered", "different"]
_MAY_BE_NULL = re.compile(r"nullif\(|CASE|TRY_CAST|\w\(NULL\b")  # of constants, which are the NULL that loses its type
_IS_NULL = re.compile(r"nullif\((\S+), \1\)|TRY_CAST\('")
_WIDEST = re.compile(r"\bed38\b")  # no type has its digits and more of a fraction: it fails beside what has more
_NO_COMMON_TYPE = re.compile(  # DuckDB casts rows as they come, of which all may be NULL
    r"(UNION|INTERSECT|EXCEPT)\b.* cannot mix values of type |cannot mix values of type INTERVAL and (DATE|TIMESTAMP)\b|"
    r"cannot mix values of type (DATE|TIMESTAMP)( WITH TIME ZONE)? and INTERVAL\b"
)
DATA_ERRORS = (duckdb.ConversionException, duckdb.OutOfRangeException, duckdb.InvalidInputException)


@dataclass(frozen=True)
class Case:
    """A query over a set of tables, with what it was made of."""

    kind: Kind
    sets: int
    sql: tuple[str, ...]
    fails: bool
    tape: tuple[int, ...]
    theirs: tuple[str, ...]  # what DuckDB is asked
    skips: bool = False  # what fails may be a part of a condition that other parts decide: gquery leaves it out
    ties: str = ""  # asks DuckDB whether windows may number the same rows in two ways


@dataclass(frozen=True)
class Outcome:
    verdict: Verdict
    said: str = ""


@dataclass(frozen=True)
class Engine:
    """How gquery runs it."""

    target: str = "python"
    ranks: int = 1
    disabled: str = ""
    compiler: str = "auto"
    in_parts: bool = False  # within `tests.support.in_parts.all_in_parts`
    is_stored: bool = False  # tables lie in Parquet files
    writes: bool = False  # the kernels of a GPU too, which need none to be written
    is_recorded: bool = False  # the rows are those of a run that is replayed, if it can be


MACRO = "CREATE OR REPLACE MACRO either(a, b := NULL) AS CASE WHEN a IS NULL THEN b ELSE a END"


def make(kind: Kind, sets: int, tape: Tape) -> Case:
    """The case that a tape stands for."""
    grammar = Grammar(tape)
    sql: tuple[str, ...]
    whole: dict[str, Callable[[], str]] = {
        "query": grammar.statement, "flat": grammar.flat, "groups": grammar.grouped, "windows": grammar.windowed,
        "sets": grammar.set_operations, "lists": lambda: Lists(grammar).statement(),
        "nested": lambda: Nested(grammar).statement(),
    }  # fmt: skip
    if kind == "changes":
        sql = Changes(grammar).script()
    elif kind == "macros":
        sql = macros.script(grammar)
    elif kind in whole:
        sql = (whole[kind](),)
    else:
        source, names, _ = grammar.source(1)
        p = grammar.predicate(names, (), 2, 1)
        if kind == "norec":
            sql = (
                f"SELECT count(*) FROM {source} WHERE {p}",
                f"SELECT count(*) FILTER (q) FROM (SELECT {p} AS q FROM {source}) AS z",
            )
        else:
            items = ", ".join(f"{grammar.column(k, names, ())} AS c{n}" for n, k in enumerate(("int", "str", "dec")))
            head = f"SELECT {items} FROM {source}"
            sql = (head, f"{head} WHERE {p}", f"{head} WHERE NOT {p}", f"{head} WHERE {p} IS NULL")
    theirs = (*sql, grammar.ties)
    for ours, other in grammar.otherwise.items():
        theirs = tuple(text.replace(ours, other) for text in theirs)
    is_widest = any(_WIDEST.search(text) for text in sql)  # a row's comparison may be cast, or be decided before
    fails, skips = grammar.fails or is_widest, grammar.skips or is_widest
    return Case(kind, sets, sql, fails, tuple(tape.drawn), theirs[:-1], skips, theirs[-1])


def of_seed(seed: int) -> Case:
    return make(KINDS[seed % len(KINDS)], seed // 20 % SETS, Tape(seed))


def run(case: Case, engine: Engine) -> Outcome:
    """What comes of a case. An error that is none of the data is raised: a fault."""
    if any("either(" in text for text in case.sql):
        oracle(tables(case.sets)).execute(MACRO)
        _connection(case, engine).sql(MACRO)
    if case.kind in ("tlp", "norec"):
        return _alone(case, engine)
    if case.kind in ("changes", "macros"):
        return _script(case, engine)
    sql, data = case.sql[0], tables(case.sets)
    one_may_fail = case.fails and (case.kind != "flat" or case.skips)
    theirs: str | None = None
    types: list[str] = []
    want: list[Row] = []
    try:
        types, want = expect(case.theirs[0], data)
    except DATA_ERRORS as error:
        theirs = str(error)
    except duckdb.Error as error:
        return _refused_there(case, engine, error)
    try:
        db = _connection(case, engine)
        result = db.sql(sql)
        ours = _rows(db, sql, engine, result)
        if engine.writes:
            db.kernels(sql, target="cuda")
    except gquery.OutOfMemoryError as error:
        if "on purpose" not in str(error):
            raise
        return Outcome("invalid", "rows of one group in parts")
    except gquery.DataError as error:
        if theirs is not None or "which Python does not have" in str(error):
            return Outcome("both fail")
        return Outcome("one fails" if one_may_fail else "different", f"we fail: {error}")
    except gquery.BindError as error:
        if not _NO_COMMON_TYPE.match(str(error)):
            raise
        return Outcome("both fail" if theirs is not None else "one fails", f"we fail: {error}")
    if theirs is not None:
        return Outcome("one fails" if one_may_fail else "different", f"DuckDB fails: {theirs}")
    got = [str(t) for t in result.types]
    for n, (g, w) in enumerate(zip(got, types)):  # as documented: a constant that is NULL loses its type there
        lost = w in ("INTEGER", "BIGINT") and g.startswith(("DECIMAL", "VARCHAR", "BLOB")) and _MAY_BE_NULL.search(sql)
        beside = g.startswith("DECIMAL") and w.startswith("DECIMAL") and _IS_NULL.search(sql)  # others, in CASE and its kin
        is_no_type = w == "TIME WITH TIME ZONE" and "NULL AT TIME ZONE" in sql
        if beside or is_no_type or (lost and all(row[n] is None for row in ours + want)):
            types[n] = g
    wide = _wide(got, types)
    if len(got) != len(types) or any(g != w.replace("HUGEINT", "BIGINT") for g, w, d in zip(got, types, wide) if not d):
        return Outcome("different", f"types {got}, expected {types}")
    ours = list(_with_integers(ours, wide))
    wrong = compare(_one_zero(ours), _one_zero(want), False, types)
    if wrong is not None and are_same_but_for_ties(case, ours, want, types):
        return Outcome("same")
    if wrong is not None and not _is_right_unoptimized(case, ours, types):
        return Outcome("different", wrong)
    return Outcome("same")


def _rows(db: gquery.Connection, sql: str, engine: Engine, first: gquery.Relation) -> list[Row]:
    """The rows of a query; with ``is_recorded`` those of the last of its runs, behind the ones that it takes to be recorded."""
    found = [first.fetchall()]
    if engine.is_recorded:
        run_until_recorded(db, sql, lambda: found.append(db.sql(sql).fetchall()))
    return list(found[-1])


def _refused_there(case: Case, engine: Engine, error: duckdb.Error) -> Outcome:
    """What gquery says of a query that DuckDB does not take: an error of the query or of its values too, or rows, which a table
    of all counts by DuckDB's message. Any other error is raised: a fault."""
    try:
        _connection(case, engine).sql(case.sql[0]).fetchall()
    except (gquery.ProgrammingError, gquery.NotSupportedError, gquery.DataError):
        return Outcome("invalid", str(error))
    except gquery.OutOfMemoryError as raised:
        if "on purpose" not in str(raised):
            raise
        return Outcome("invalid", str(error))
    return Outcome("answered", str(error))


def _script(case: Case, engine: Engine) -> Outcome:
    """Statement after statement, none of which another script sees."""
    db, theirs = _connection(case, engine), oracle(tables(case.sets))
    try:
        return _statements(case, db, theirs)
    finally:
        # A script may end behind its BEGIN. DuckDB loses rows' changes in ALTER TYPE while any other transaction is open.
        with suppress(duckdb.TransactionException):
            theirs.execute("ROLLBACK")
        with suppress(gquery.OperationalError):
            db.sql("ROLLBACK")


def _statements(case: Case, db: gquery.Connection, theirs: duckdb.DuckDBPyConnection) -> Outcome:
    """A statement that fails in one engine alone, where that may be, ends the script."""
    for n, (text, other) in enumerate(zip(case.sql, case.theirs, strict=True)):
        error: duckdb.Error | None = None
        types: list[str] = []
        want: list[Row] = []
        try:
            found = theirs.execute(other)
            types, want = [str(c[1]) for c in found.description or ()], found.fetchall()
        except duckdb.Error as raised:
            error = raised
        try:
            result = db.sql(text)
            got = _with_integers(result.fetchall(), _wide([str(t) for t in result.types], types))
        except gquery.OutOfMemoryError as raised:  # rows of one group in parts, as in `run`
            if "on purpose" not in str(raised):
                raise
            return Outcome("invalid", str(raised))
        except gquery.DataError as raised:
            if isinstance(error, DATA_ERRORS) or "which Python does not have" in str(raised):
                return Outcome("both fail")
            return Outcome("one fails" if case.fails else "different", f"we fail: {raised}\n{text}")
        except gquery.IntegrityError as raised:
            if isinstance(error, DATA_ERRORS):  # of a value that is not looked at here
                return Outcome("both fail")
            # ON CONFLICT behind BY NAME without the key; a subquery that a MERGE inserts
            if isinstance(error, (duckdb.BinderException, duckdb.InternalException)):
                return Outcome("invalid", str(error))
            if not isinstance(error, duckdb.ConstraintException):
                return Outcome("different", f"we fail: {raised}\n{text}")
            if case.sql[n - 1] == "BEGIN":  # DuckDB gives a transaction up
                return Outcome("same")
            continue
        except gquery.ProgrammingError as raised:
            if _NO_COMMON_TYPE.match(str(raised)):
                return Outcome("one fails", f"we fail: {raised}\n{text}")
            if error is None or isinstance(error, DATA_ERRORS):
                raise
            return Outcome("invalid", str(error))
        if isinstance(error, duckdb.ConstraintException) and text.startswith("UPDATE") and "uplicate key" in str(error):
            return Outcome("one fails")  # it looks at keys while rows change, and not behind it
        if " RANGE " in text and str(error).startswith("Out of Range Error: Overflow in "):
            return Outcome("one fails")  # bounds of a frame are of the key's type there, and of a wider one here
        if isinstance(error, (*DATA_ERRORS, duckdb.ConstraintException)):
            return Outcome("one fails" if case.fails else "different", f"DuckDB fails: {error}\n{text}")
        if error is not None:
            return Outcome("answered", str(error))
        if text.startswith(("CREATE", "PREPARE")):
            continue
        wrong = compare(_one_zero(got), _one_zero(want), False, types)
        if wrong is None:
            continue
        if _is_right_unoptimized(case, got, types, n):
            return Outcome("same")  # from here on DuckDB's table is another
        return Outcome("different", f"{wrong}\n{text}")
    return Outcome("same")


def _wide(got: Sequence[str], types: Sequence[str]) -> list[bool]:
    """By column, whether it is a HUGEINT there and a DECIMAL without a fraction here, as documented."""
    return [w == "HUGEINT" and g.startswith("DECIMAL") and g.endswith(",0)") for g, w in zip(got, types)]


def _with_integers(rows: Sequence[Row], wide: Sequence[bool]) -> Sequence[Row]:
    """Rows with the values of `_wide` columns as integers."""
    if not any(wide):
        return rows
    return [tuple(int(v) if d and v is not None else v for v, d in zip(row, wide)) for row in rows]


def are_same_but_for_ties(case: Case, ours: Sequence[Row], want: Sequence[Row], types: Sequence[str]) -> bool:
    """Of rows that are the same in all columns any may be the first, in each window's order another. So what several windows give
    for them may stand together in other ways: each column has the same values. QUALIFY takes as many of them."""
    if not case.ties or oracle(tables(case.sets)).execute(case.ties).fetchall() != [(True,)]:
        return False
    if "QUALIFY" in case.sql[0]:
        return len(ours) == len(want)
    columns = [[_one_zero([(row[n],) for row in rows]) for n in range(len(types))] for rows in (ours, want)]
    return all(compare(a, b, False, [t]) is None for a, b, t in zip(*columns, types, strict=True))


_WITHOUT = {
    "SET disabled_optimizers = 'expression_rewriter'": "SET disabled_optimizers = ''",
    "PRAGMA disable_optimizer": "PRAGMA enable_optimizer",
}
"""What DuckDB does without, and how it gets that back."""


def _is_right_unoptimized(case: Case, ours: Sequence[Row], types: Sequence[str], last: int = 0) -> bool:
    """Whether our rows of a statement, behind those before it, are DuckDB's without its optimizer, or without a part of it.

    That makes `date_trunc('hour', NULL) <> t` TRUE where t is no full hour, `b IS NOT TRUE OR b IS TRUE` FALSE in a column that
    it knows to be all NULL, and `TRY_CAST(moment AS VARCHAR) NOT LIKE ''` never TRUE. All of it off, a comparison may fail
    that a join had left out.
    """
    found = [_unoptimized(case, last, how) for how in _WITHOUT]
    return any(rows is not None and compare(_one_zero(ours), _one_zero(rows), False, types) is None for rows in found)


def _unoptimized(case: Case, last: int, how: str) -> Sequence[Row] | None:
    """DuckDB's rows; None where it cannot do without, as in a MERGE with NOT MATCHED BY SOURCE, or fails."""
    db = oracle(tables(case.sets))
    with suppress(duckdb.TransactionException):
        db.execute("ROLLBACK")
    db.execute(how)
    try:
        for text in case.theirs[:last]:
            with suppress(duckdb.ConstraintException):  # which both raised the first time
                db.execute(text).fetchall()
        return db.execute(case.theirs[last]).fetchall()
    except (duckdb.InternalException, *DATA_ERRORS):
        return None
    finally:
        db.execute(_WITHOUT[how])


def _one_zero(rows: Sequence[Row]) -> list[Row]:
    """Rows with one zero of doubles: the two are equal, and groups keep any of them."""
    return [tuple(map(_with_one_zero, row)) for row in rows]


def _with_one_zero(value: Any) -> Any:
    match value:
        case float():
            return value + 0.0
        case list():
            return [_with_one_zero(v) for v in value]
        case dict():
            return {k: _with_one_zero(v) for k, v in value.items()}
        case _:
            return value


def _alone(case: Case, engine: Engine) -> Outcome:
    """TLP and NoREC, without an oracle."""
    db = _connection(case, engine)
    try:
        answers: list[Sequence[Row]] = [_rows(db, text, engine, db.sql(text)) for text in case.sql]
    except gquery.DataError:
        return (
            Outcome("both fail") if case.fails else Outcome("different", "an error of the data that nothing asks for")
        )
    except gquery.ProgrammingError as error:
        if _NO_COMMON_TYPE.match(str(error)):
            return Outcome("one fails", f"we fail: {error}")
        try:
            oracle(tables(case.sets)).execute(case.theirs[-1])
        except duckdb.Error:
            return Outcome("invalid", str(error))
        raise
    if case.kind == "norec":
        return Outcome("same") if answers[0] == answers[1] else Outcome("different", f"{answers[0]} and {answers[1]}")
    whole, parts = Counter(answers[0]), Counter(row for answer in answers[1:] for row in answer)
    return (
        Outcome("same") if whole == parts else Outcome("different", f"{whole - parts} lost, {parts - whole} too many")
    )


def _connection(case: Case, engine: Engine) -> gquery.Connection:
    settings = {"disabled_rules": engine.disabled} if engine.disabled else {}
    if engine.compiler != "auto":
        settings["compiler"] = engine.compiler
    if engine.in_parts:
        settings["memory_limit"] = "1GB"
    if engine.is_stored and not any("POSITIONAL" in text for text in case.sql):  # rows stand in the order of folders
        return stored(engine.target, engine.ranks, case.sets, settings)
    return connect(engine.target, engine.ranks, tables(case.sets), settings)


def fault(case: Case, engine: Engine) -> str | None:
    """What is wrong with a case, in a line; None where nothing is."""
    try:
        outcome = run(case, engine)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return outcome.said if outcome.verdict == "different" else None
