"""Runs mutants in both engines and says what became of each.

`Judge` holds a pool's tables in gquery and in DuckDB, there a second time with the rows in another order: where DuckDB's own
answers differ, the answer is not determined, and only the number of rows is compared. A watchdog ends what takes long: it counts
the process's CPU time, so that other work on the machine makes nothing slow, and what waits for ever by the clock.
"""

from __future__ import annotations

import random
import re
import threading
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any

import duckdb
import pyarrow as pa

import gquery
from tests.support.harness import compare
from tests.support.mutation import mutated, shrunk
from tests.support.mutation_pools import Pool, pools

BATCH = 250  # seeds
SECONDS = 2.0  # of CPU time for one statement in one engine
MOST_SECONDS = 60.0  # by the clock
_BY_CONSTANT = re.compile(r"\border\s+by\s+('[^']*'|\d+)\s+rows\b", re.I)  # a window's frames of rows in any order
_ORDERED = re.compile(r"\border\s+by\b(?!.*[)])", re.I | re.S)
_READS_FILES = re.compile(r"\b(copy|export|import|attach|install|load|read_\w+|pragma|set|checkpoint)\b", re.I)
_DESCRIBES = re.compile(r"\s*(desc|describe|show|explain)\b", re.I)  # whose answers have other columns


@dataclass(frozen=True)
class Outcome:
    """What became of a statement. ``kind``: "same", "refused" (by gquery alone), "wrong" (by both), "accepted" (DuckDB
    refuses), "differs", "foreign" (an exception that is none of gquery's), "slow"."""

    kind: str
    detail: str = ""


class Watchdog:
    """Interrupts what takes more than `SECONDS` of CPU time, or `MOST_SECONDS`."""

    def __init__(self) -> None:
        self._cpu_until = self._until = 0.0
        self._stop: Any = None
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while True:
            time.sleep(0.1)
            stop = self._stop
            if stop is not None and self._is_late():
                stop()

    def _is_late(self) -> bool:
        return time.process_time() > self._cpu_until or time.monotonic() > self._until

    def start(self, stop: Any) -> None:
        """The clock begins; ``stop`` ends what it is for."""
        self._cpu_until, self._until = time.process_time() + SECONDS, time.monotonic() + MOST_SECONDS
        self._stop = stop

    def end(self) -> bool:
        """The clock ends; whether time was up."""
        self._stop = None
        return self._is_late()


class Judge:
    """A pool's tables in both engines."""

    def __init__(self, pool: Pool, watchdog: Watchdog) -> None:
        self.pool, self.watchdog = pool, watchdog
        self.tables = pool.tables()
        self.duckdb = self._duckdb(None)
        self.shuffled = [self._duckdb(random.Random(seed)) for seed in range(4)]
        self._connect()

    def _duckdb(self, rng: random.Random | None) -> duckdb.DuckDBPyConnection:
        made = duckdb.connect(config={"threads": 1, "enable_external_access": False, "memory_limit": "1GB"})
        for name, table in self.tables.items():
            rows = list(range(table.num_rows))
            if rng is not None:
                rng.shuffle(rows)
            made.register("registered", table.take(pa.array(rows, pa.int64())))
            made.execute(f'CREATE TABLE "{name}" AS FROM registered')
            made.unregister("registered")
        return made

    def _connect(self) -> None:
        self.gquery = gquery.connect(device="python", memory_limit="1GB")
        for name, table in self.tables.items():
            self.gquery.register(name, table)
        self._version = self.gquery._catalog.version

    def judge(self, sql: str) -> Outcome:
        """What becomes of a statement."""
        mine: tuple[list[str], list[Any]] | gquery.Error | None
        try:
            mine = self._mine(sql)
        except gquery.InternalError as error:
            return Outcome("foreign", f"{type(error).__name__}: {error}")
        except gquery.Error as error:
            mine = error
        except Exception as error:  # which is what this looks for
            return Outcome("foreign", f"{type(error).__name__}: {error}")
        finally:
            if self.gquery._catalog.version != self._version:
                self._connect()
        theirs = self._theirs(self.duckdb, sql)
        if mine is None or theirs is None:
            return Outcome("slow")
        if isinstance(mine, Exception):
            what = f"{type(mine).__name__}: {str(mine).splitlines()[0]}"
            return Outcome("wrong" if isinstance(theirs, duckdb.Error) else "refused", what)
        if isinstance(theirs, duckdb.Error):
            return Outcome("accepted", str(theirs).splitlines()[0])
        return self._compared(sql, mine, theirs)

    def _mine(self, sql: str) -> tuple[list[str], list[Any]] | None:
        self.watchdog.start(self.gquery.interrupt)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                result = self.gquery.sql(sql)
                rows = result.fetchall()
        except gquery.InterruptError:
            return None
        finally:
            late = self.watchdog.end()
        return None if late else (list(result.columns), rows)

    def _theirs(self, connection: duckdb.DuckDBPyConnection, sql: str) -> tuple[Any, ...] | duckdb.Error | None:
        self.watchdog.start(connection.interrupt)
        try:
            connection.execute("BEGIN")
            cursor = connection.execute(sql)
            if cursor is None:  # no statement
                return duckdb.Error("there is no statement")
            types = [str(c[1]) for c in cursor.description or ()]
            return [c[0] for c in cursor.description or ()], cursor.fetchall(), types
        except duckdb.InterruptException:
            return None
        except duckdb.Error as error:
            return error
        except (OverflowError, ValueError, UnicodeDecodeError):  # DuckDB's values that Python has not
            return None
        finally:
            self.watchdog.end()
            with suppress(duckdb.Error):
                connection.execute("ROLLBACK")

    def _compared(self, sql: str, mine: tuple[list[str], list[Any]], theirs: tuple[Any, ...]) -> Outcome:
        got, want, types = _plain(mine[1], theirs[2]), _plain(theirs[1], theirs[2]), theirs[2]
        difference = compare(got, want, False, types)
        if difference is None and not (_ORDERED.search(sql) and _is_disordered(got, want)):
            return Outcome("same")
        if _BY_CONSTANT.search(sql):
            return Outcome("same", "not determined")
        for connection in self.shuffled:
            again = self._theirs(connection, sql)
            if again is None or isinstance(again, duckdb.Error):
                return Outcome("same", "not determined")
            if compare(_plain(again[1], types), want, difference is None, types) is not None and len(got) == len(want):
                return Outcome("same", "not determined")
        return Outcome("differs", difference or "in order")


def _is_disordered(got: list[Any], want: list[Any]) -> bool:
    """Whether the same rows come in another order by every column: rows with equal keys may come in any."""
    columns = [(list(a), list(b)) for a, b in zip(zip(*got, strict=True), zip(*want, strict=True), strict=True)]
    several = [repr(a) != repr(b) for a, b in columns if len({repr(v) for v in a}) > 1]
    return bool(several) and all(several)


def _plain(rows: list[Any], types: list[str]) -> list[Any]:
    """Rows without -0.0, which is equal to 0.0, and which DuckDB turns into it here and there. A HUGEINT is a BIGINT or
    DECIMAL(38, 0) of gquery."""

    def plain(value: Any, type_: str) -> Any:
        if type_ == "HUGEINT" and isinstance(value, Decimal):
            return int(value)
        return value + 0.0 if isinstance(value, float) else value

    return [tuple(map(plain, row, types)) if len(row) == len(types) else row for row in rows]


def run(seeds: range) -> Iterator[tuple[int, Judge, str, Outcome]]:
    """Makes and judges a mutant a seed: (seed, judge, statement, outcome). Seeds of one batch are of one pool."""
    watchdog = Watchdog()
    judges: dict[str, Judge] = {}
    for seed in seeds:
        rng = random.Random(seed)
        pool = pools()[seed // BATCH % len(pools())]
        sql = mutated(rng.choice(pool.statements), pool.statements, rng)
        if _READS_FILES.search(sql) or _DESCRIBES.match(sql) or not sql:
            continue
        if pool.name not in judges:
            judges[pool.name] = Judge(pool, watchdog)
        judge = judges[pool.name]
        yield seed, judge, sql, judge.judge(sql)


def _becomes(judge: Judge, kind: str, sql: str) -> bool:
    return judge.judge(sql).kind == kind


def counted(seeds: range) -> tuple[Counter[str], list[str]]:
    """How many statements came to each end, and a line for each that should not have."""
    counts: Counter[str] = Counter()
    bad: list[str] = []
    for seed, judge, sql, outcome in run(seeds):
        counts[outcome.kind] += 1
        if outcome.kind in ("accepted", "differs", "foreign"):
            kind = outcome.kind
            small = shrunk(sql, partial(_becomes, judge, kind)) if len(bad) < 20 else ""
            bad.append(f"{kind}: seed {seed} of {judge.pool.name}: {outcome.detail}\n    {sql}\n    {small}")
    return counts, bad


if __name__ == "__main__":
    import sys

    first, last = int(sys.argv[1]), int(sys.argv[2])
    total, failures = counted(range(first, last))
    print("\n".join(failures))
    print(dict(total))
