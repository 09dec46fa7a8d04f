"""Mutations of SQL text: tokens dropped, doubled, swapped, replaced by others, quotes lost, numbers malformed.

The tokens here are rough, and no engine's: what a typist sees. `mutated` changes one to three places; `shrunk` makes a
statement with a fault as small as it can while the fault is there.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

_TOKEN = re.compile(
    r"'(?:[^']|'')*'|\"[^\"]*\"|\d[\w.]*(?:[eE][+-]\d+)?|\.\d+|\w+|<>|<=|>=|!=|\|\||::|\*\*|//|->|--[^\n]*|\S"
)
_WORDS = (
    "NOT", "NULL", "AND", "OR", "AS", "ON", "USING", "ALL", "DISTINCT", "FROM", "WHERE", "BY", "IN", "IS", "LIKE", "JOIN",
    "LEFT", "CROSS", "NATURAL", "POSITIONAL", "SEMI", "OUTER", "LIMIT", "OFFSET", "WITH", "TIES", "ONLY", "FIRST", "LAST",
    "NULLS", "DESC", "END", "CASE", "ELSE", "(", ")", ",", ".", "*", "+", "-", "=", "<", "::", "||", "1", "0", "'a'", "%",
    "UNION", "FILTER", "OVER", "INTERVAL", "DATE", "CAST", "ANY", "EXISTS", "VALUES", "[", "]", ":", ";", "?", "RECURSIVE",
    "MATERIALIZED", "ORDER", "GROUP", "HAVING", "SELECT", "TABLE", "DROP", "EXCLUDE", "REPLACE", "ESCAPE", "COLLATE",
    "IGNORE", "PERCENT", "ROWS", "TRUE", "count", "sum", "2", "-1", "1e3", "1.5", "x", "t", "a",
)  # fmt: skip


def tokens(sql: str) -> list[str]:
    """The tokens of a text; comments go."""
    return [t for t in _TOKEN.findall(sql) if not t.startswith("--")]


def joined(parts: Sequence[str], rng: random.Random | None = None) -> str:
    """A text of tokens. Blanks stand between them; some are left out where ``rng`` is given."""
    if rng is None or rng.random() < 0.7:
        return " ".join(parts)
    return "".join(p + ("" if rng.random() < 0.3 else " ") for p in parts).strip()


def mutated(sql: str, others: Sequence[str], rng: random.Random) -> str:
    """A statement with one to three mutations. ``others`` are statements that tokens are taken from."""
    parts = tokens(sql)
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3))):
        if parts:
            _mutate(parts, others, rng)
            parts = [p for p in parts if p]
    return joined(parts, rng)


def _mutate(parts: list[str], others: Sequence[str], rng: random.Random) -> None:
    at = rng.randrange(len(parts))
    match rng.randrange(11):
        case 0:
            del parts[at]
        case 1:
            parts.insert(at, parts[at])
        case 2:
            other = min(at + 1, len(parts) - 1)
            parts[at], parts[other] = parts[other], parts[at]
        case 3:
            other = rng.randrange(len(parts))
            parts[at], parts[other] = parts[other], parts[at]
        case 4:
            parts[at] = rng.choice(tokens(rng.choice(others)) or ["1"])
        case 5:
            parts[at] = rng.choice(parts)
        case 6:
            parts.insert(at, rng.choice(_WORDS))
        case 7:
            parts[at] = rng.choice(_WORDS)
        case 8:
            end = min(len(parts), at + rng.randint(2, 6))
            if rng.random() < 0.5:
                del parts[at:end]
            else:
                parts[at:at] = parts[at:end]
        case 9:
            parts[at] = _malformed(parts[at], rng)
        case _:
            numbers = [n for n, p in enumerate(parts) if p[0].isdigit() or p[0] in "'\""]
            at = rng.choice(numbers) if numbers else at
            parts[at] = _malformed(parts[at], rng)


def _malformed(token: str, rng: random.Random) -> str:
    """A token with its quotes or digits changed."""
    if token[0] in "'\"":
        return rng.choice(
            (token[1:-1], token[1:], token[:-1], f'"{token[1:-1]}"', f"'{token[1:-1]}'", f"{token}{token}")
        )
    if token[0].isdigit() or token[0] == ".":
        changes = (
            f"{token}e", f"{token}e3", f"{token}.", f"{token}.5", f".{token}", f"{token}_0", f"0x{token}", f"{token}x",
            f"{token}+{token}", f"{token}e3+1", f"-{token}", f"{token}e400", f"{token}{token}{token}", f"'{token}'",
        )  # fmt: skip
        return rng.choice(changes)
    return rng.choice((token.swapcase(), f'"{token}"', token[:-1] or token, f"{token}1", f"{token} {token}"))


def shrunk(sql: str, fails: Callable[[str], bool]) -> str:
    """A statement that still fails, with as few tokens as dropping runs of them gives."""
    parts = tokens(sql)
    if not fails(" ".join(parts)):
        return sql
    size = max(1, len(parts) // 2)
    while size:
        at = 0
        while at < len(parts):
            fewer = parts[:at] + parts[at + size :]
            if fewer and fails(" ".join(fewer)):
                parts = fewer
            else:
                at += size
        size //= 2
    return " ".join(parts)
