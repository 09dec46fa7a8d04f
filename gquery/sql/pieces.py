"""Pieces of a statement that are read for themselves: their trees have the places of the whole text, to which errors point."""

from __future__ import annotations

from gquery.runtime.records import replace
from gquery.sql.check import check
from gquery.sql.parse import Parsed, parse_one


def parsed_piece(sql: str, start: int, behind: int, head: str) -> Parsed:
    """What ``head`` and a piece of a text are together; what stands before the piece has to be as long as the head."""
    before = "".join(c if c == "\n" else " " for c in sql[: start - len(head)])
    parsed = replace(parse_one(before + head + sql[start:behind]), sql=sql)
    check(parsed)
    return parsed
