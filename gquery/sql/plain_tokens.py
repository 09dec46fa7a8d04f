"""The tokens of a plain query, gone through one by one, and the leaves of its tree: the base of `sql.plain_expressions`;
`sql.plain` says what this is for."""

from __future__ import annotations

import re
from functools import cache

from sqlglot import exp

from gquery.sql.keywords import COLUMN_NAMES, FUNCTION_NAMES, KEYWORDS, RESERVED
from gquery.sql.lexer import END, NUMBER, PARAMETER, QUOTED, STRING, SYMBOL, WORD, Lexed
from gquery.sql.tokens import known_words

# the keys of tokens that are no words or symbols, in whose place no word can stand
KEYS = {kind: f"'{kind}" for kind in (NUMBER, STRING, QUOTED, PARAMETER, END)}
NUMBERS, STRINGS, NAMES = KEYS[NUMBER], KEYS[STRING], KEYS[QUOTED]
_PLAIN_NUMBER = re.compile(r"\d+(?:\.\d+)?")


class NotPlainError(Exception):
    """What is read has more in it than is built here."""


@cache
def _no_names() -> frozenset[str]:
    """Words that may be more than a name, to DuckDB or to sqlglot."""
    return RESERVED | COLUMN_NAMES | FUNCTION_NAMES | known_words()


class TokenBuilder:
    """Goes through the tokens of a statement, and builds names and constants. ``key`` is the next token's word or symbol, or
    its kind."""

    def __init__(self, sql: str, tokens: Lexed, first: int, keys: list[str]) -> None:
        self.sql, self.first = sql, first
        self.kinds, self.starts, self.ends = tokens.kinds, tokens.starts, tokens.ends
        self.keys = [*keys, KEYS[END]]
        self.no_names = _no_names()
        self.at = 0
        self.key = self.keys[0]

    def next(self) -> None:
        self.at = at = self.at + 1
        self.key = self.keys[at]

    def peek(self) -> str:
        """The key of the token behind the next one."""
        return self.keys[min(self.at + 1, len(self.keys) - 1)]

    def take(self, key: str) -> bool:
        """Goes over a word or symbol where it is the next one."""
        if self.key != key:
            return False
        self.at = at = self.at + 1
        self.key = self.keys[at]
        return True

    def expect(self, key: str) -> None:
        if self.key != key:
            raise NotPlainError
        self.at = at = self.at + 1
        self.key = self.keys[at]

    def placed(self, node: exp.Expr) -> exp.Expr:
        """The node with the place of the next token, which is gone over."""
        n = self.first + self.at
        node._meta = {"start": self.starts[n], "end": self.ends[n]}
        self.next()
        return node

    def text(self) -> str:
        """The next token as it is written."""
        n = self.first + self.at
        return self.sql[self.starts[n] : self.ends[n] + 1]

    def is_name(self) -> bool:
        """Whether the next token is a name and nothing else."""
        key = self.key
        return key == NAMES or (key not in self.no_names and self.kinds[self.first + self.at] == WORD)

    def is_bare_alias(self) -> bool:
        """Whether the next token can be an alias without AS."""
        return self.is_name() and self.key not in KEYWORDS

    def name(self) -> exp.Expr:
        """The name of a column or table, or an alias."""
        if not self.is_name():
            raise NotPlainError
        text = self.text()
        if self.key == NAMES:
            return self.placed(exp.Identifier(this=text[1:-1].replace('""', '"'), quoted=True))
        return self.placed(exp.Identifier(this=text, quoted=False))

    def number(self) -> exp.Expr:
        text = self.text()
        n = self.first + self.at
        if not _PLAIN_NUMBER.fullmatch(text) or (
            self.starts[n + 1] == self.ends[n] + 1 and self.kinds[n + 1] not in (SYMBOL, END)
        ):
            raise NotPlainError
        return self.placed(exp.Literal(this=text, is_string=False))

    def string(self) -> exp.Expr:
        text = self.text()
        if "\n" in text:
            raise NotPlainError
        return self.placed(exp.Literal(this=text[1:-1].replace("''", "'"), is_string=True))

    def star(self) -> exp.Expr:
        return self.placed(exp.Star())

    def is_table_star(self) -> bool:
        """Whether ``t.*`` comes."""
        return self.keys[self.at + 1 : self.at + 3] == [".", "*"] and self.is_name()
