"""Reads sqllogictest files: records one behind another, with blank lines between.

    statement ok                       the statement runs
    statement error                    it fails; the lines behind ---- are in the message
    query IT rowsort label             a query of so many columns (I integer, R real, T text), its rows behind ----
    skipif NAME, onlyif NAME           the next record is for other engines, or for one alone
    loop i 0 10, foreach x a b c       the records up to endloop, with ${i} replaced
    hash-threshold N, halt             expected values are hashed from so many on; nothing behind it counts

Both ways of writing rows are read: a value a line (SQLite), or a row a line with tabs between (DuckDB).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

SORTS = ("nosort", "rowsort", "valuesort")


class FormatError(Exception):
    """A file that is no sqllogictest, with its name and line."""


@dataclass(frozen=True)
class Record:
    """A statement or query. ``expected``: the lines behind ``----``; None where there is none. ``place``: file and line."""

    kind: Literal["ok", "error", "query"]
    sql: str
    place: str
    types: str = ""
    sort: str = "nosort"
    label: str = ""
    expected: tuple[str, ...] | None = None
    skipped_by: frozenset[str] = frozenset()
    only_for: str | None = None

    def is_for(self, engine: str) -> bool:
        """Whether an engine of that name runs it."""
        return engine not in self.skipped_by and self.only_for in (None, engine)


@dataclass(frozen=True)
class _Line:
    text: str
    place: str


def read(path: Path) -> list[Record]:
    """The records of a file, loops unrolled. Raises FormatError."""
    lines = [_Line(t, f"{path}:{n}") for n, t in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)]
    return list(_records(lines))


def _records(lines: Sequence[_Line]) -> Iterator[Record]:
    at, skipped = 0, frozenset[str]()
    only: str | None = None
    while at < len(lines):
        line = lines[at]
        words = line.text.split()
        at += 1
        match words:
            case [] | ["hash-threshold" | "mode" | "require", *_]:
                continue
            case [word, *_] if word.startswith("#"):
                continue
            case ["halt", *_]:
                return
            case ["skipif", engine, *_]:
                skipped |= {engine.lower()}
            case ["onlyif", engine, *_]:
                only = engine.lower()
            case ["loop", name, first, end]:
                values = [str(n) for n in range(int(first), int(end))]
                at = yield from _loop(lines, at, name, values, line)
            case ["foreach", name, *values]:
                at = yield from _loop(lines, at, name, values, line)
            case ["statement", "ok" | "error" as kind, *_] | ["query" as kind, *_]:
                record, at = _record(lines, at, line, kind, words)
                yield replace(record, skipped_by=skipped, only_for=only)
                skipped, only = frozenset(), None
            case _:
                raise FormatError(f"{line.place}: {line.text!r} begins no record")


def _loop(
    lines: Sequence[_Line], at: int, name: str, values: Sequence[str], head: _Line
) -> Generator[Record, None, int]:
    """The records of a loop's body for each value; gives the place behind its end."""
    depth, end = 1, at
    while depth:
        if end == len(lines):
            raise FormatError(f"{head.place}: a loop without endloop")
        word = lines[end].text.split()[:1]
        depth += (word in (["loop"], ["foreach"])) - (word == ["endloop"])
        end += 1
    for value in values:
        body = [replace(b, text=b.text.replace(f"${{{name}}}", value)) for b in lines[at : end - 1]]
        yield from _records(body)
    return end


def _record(lines: Sequence[_Line], at: int, head: _Line, kind: str, words: list[str]) -> tuple[Record, int]:
    sql: list[str] = []
    while at < len(lines) and lines[at].text.strip() not in ("", "----"):
        sql.append(lines[at].text)
        at += 1
    expected: list[str] | None = None
    if at < len(lines) and lines[at].text.strip() == "----":
        expected = []
        at += 1
        while at < len(lines) and lines[at].text != "":
            expected.append(lines[at].text)
            at += 1
    if not sql:
        raise FormatError(f"{head.place}: a record without SQL")
    made = Record("query", "\n".join(sql), head.place, expected=None if expected is None else tuple(expected))
    if kind != "query":
        return replace(made, kind="ok" if kind == "ok" else "error"), at
    types, *rest = [*words[1:], ""]
    if not types or set(types) - set("IRT") or expected is None:
        raise FormatError(f"{head.place}: a query has types (I, R, T) and expected rows")
    sort = next((w for w in rest if w in SORTS), "nosort")
    label = next((w for w in rest if w and w not in SORTS), "")
    return replace(made, types=types, sort=sort, label=label), at
