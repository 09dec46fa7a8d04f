"""Differences that are documented (docs/reference/duckdb.md), or are faults of DuckDB, each by what an error says."""

from __future__ import annotations

import re

_REFUSED = (
    "lists of BLOB",
    "structs of BLOB",
    "to_json of JSON beside VARCHAR",
    '"all" at this place',  # a quoted name that sqlglot takes for ORDER BY ALL
    "fixed number of values",
    "not supported: 1",  # list[1] and date[1]: sqlglot takes these for types
    "not supported: 'a'",
    "Expecting > near",  # list < x
    "has not the fields of STRUCT",  # constants are cast while planning, also over no rows
    "is no STRUCT",
    "CHECK (",  # of a column that is to be renamed
    "the keys of a map have to differ",
)
_ACCEPTED = (
    "Could not choose a best candidate function",  # a NULL without a type
    'Did you mean "q"q"?',  # DuckDB takes two quotes away from names in texts
    "Table with name QQ does not exist",
    "database has been invalidated",
    "INTERNAL Error",
    "Invalid LIST argument during lambda function binding",  # a variable that is NULL
    "ORDER BY non-integer literal has no effect",
    "an index depends on a column after it",
    "another transaction has altered this table",  # there is no other
)
_NOT_CONVERTED = re.compile(r"can't be cast|field format|field value out of range|Could not convert string")
_EXPRESSION = re.compile(r"[\w\"][(]|^[(]|^'|^NULL$|\[|^[(]?CASE ")


def is_known(kind: str, text: str, ours: Exception | None, theirs: Exception | None) -> bool:
    """Whether a fault is one of those that are documented."""
    if kind == "refused":
        # DuckDB does not see rows that a transaction added twice
        return any(part in str(ours) for part in _REFUSED) or ("ADD PRIMARY KEY" in text and "failed" in str(ours))
    if kind != "accepted":
        return False
    # DuckDB converts rows that were deleted, too
    if text.startswith("ALTER") and _NOT_CONVERTED.search(str(theirs)):
        return True
    return text.startswith("PREPARE") or any(
        part in str(theirs) for part in _ACCEPTED
    )  # names are looked for by EXECUTE


def same_names(got: tuple[str, ...], want: tuple[str, ...]) -> bool:
    """Whether columns have the same names. That of an expression without one is how DuckDB writes it, with casts that it adds."""
    return len(got) == len(want) and all(g == w or _EXPRESSION.search(w) for g, w in zip(got, want, strict=True))
