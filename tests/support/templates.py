"""Texts of one shape with other constants, and the assertion that a template serves them as a plan of their own would."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from random import Random

import gquery
from gquery.sql.lexer import NUMBER, STRING, lex

Pool = Mapping[str, Sequence[str]]
"""Constants by what they look like."""
ODD = 0.2  # the share of constants that are of no pool
_DATE = re.compile(r"'\d{4}-\d\d-\d\d'")
_INTEGERS = (
    "0",
    "1",
    "1",
    "2",
    "2",
    "3",
    "4",
    "7",
    "10",
    "12",
    "100",
    "127",
    "128",
    "255",
    "32768",
    "99999",
    "2147483647",
)
_TEXTS = ("", "a", "ab", "b", "bab", "zz", "ç", "%", "%%", "_", "a%", "%b", "%a%", "%a%b%", "a_", "it''s", "AIR", "13")
_DATES = (
    "1969-12-31",
    "1970-01-01",
    "1995-03-15",
    "1996-02-29",
    "0001-01-01",
    "2262-04-12",
    "9999-12-31",
    "1994-01-01",
)


def constants(texts: Iterable[str]) -> Pool:
    """The constants of texts by what they look like, for `varied`."""
    found: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for text in texts:
        tokens = lex(text)
        for kind, word in zip(tokens.kinds, tokens.words, strict=True):
            if kind in (NUMBER, STRING):
                found[_look(word)][word] = None
    return {look: tuple(words) for look, words in found.items()}


def _look(word: str) -> str:
    """What constants share that may stand for each other: years are no numbers of days."""
    if _DATE.fullmatch(word):
        return "date"
    return "text" if word.startswith("'") else re.sub(r"\d", "0", word)


def varied(sql: str, random: Random, least: float = 0.5, pool: Pool | None = None) -> str:
    """The text with other constants of the same types in the place of some, ``least`` of them on average: any, or mostly those
    of a pool that look like them."""
    tokens = lex(sql)
    out, end = [], 0
    for kind, word, start, last in zip(tokens.kinds, tokens.words, tokens.starts, tokens.ends, strict=True):
        if kind not in (NUMBER, STRING) or random.random() > least:
            continue
        known = () if pool is None or random.random() < ODD else pool.get(_look(word), ())
        out += [sql[end:start], random.choice(known) if known else _other(word, random)]
        end = last + 1
    return "".join([*out, sql[end:]])


def _other(word: str, random: Random) -> str:
    if _DATE.fullmatch(word):
        return f"'{random.choice(_DATES)}'"
    if word.startswith("'"):
        return f"'{random.choice(_TEXTS)}'"
    if word.isdigit():
        return random.choice(_INTEGERS)
    return "".join(str(random.randint(0, 9)) if c.isdigit() else c for c in word)


def answer(connection: gquery.Connection, sql: str) -> tuple[str, object]:
    """The rows of a query, or the kind of error that it raises; and what became of its template."""
    try:
        relation = connection.sql(sql)
        rows = relation.fetchall()
    except gquery.Error as error:
        return "", type(error)
    assert relation.prepared is not None
    return relation.prepared.template, (relation.columns, [str(t) for t in relation.types], rows)


def fresh(connection: gquery.Connection, sql: str) -> object:
    """The same without plans and templates that were made before."""
    connection._plans.clear()
    connection._templates.clear()
    return answer(connection, sql)[1]


def hits(
    served: gquery.Connection, alone: gquery.Connection, texts: list[str], known: dict[str, object] | None = None
) -> int:
    """How many of the texts a template served; AssertionError where one got another answer than a plan of its own gives. What
    those gave is put into ``known``, for who asks again over the same data."""
    known = {} if known is None else known
    count = 0
    for sql in texts:
        template, rows = answer(served, sql)
        if sql not in known:
            known[sql] = fresh(alone, sql)
        want = known[sql]
        assert repr(rows) == repr(want), f"{template}\n{sql}\n{rows}\n{want}"
        count += template == "hit"
    return count
