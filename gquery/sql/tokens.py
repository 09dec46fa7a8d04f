"""sqlglot's tokens, made of those that DuckDB's lexer has found (`gquery.sql.lexer`): the text is gone through once.

sqlglot's own tokenizer goes through a text letter by letter, which took a fifth of parsing. What it does with the plain tokens
that most texts are made of is easily told: a word is a keyword or a name, a symbol has a type. Texts with anything else
(comments, parameters, braces, letters beyond ASCII) are left to it, as are all where it is compiled, which is faster still.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from functools import cache

from sqlglot.tokenizer_core import Token, TokenType

from gquery.runtime.tuples import NamedTuple
from gquery.sql.lexer import END, NUMBER, QUOTED, STRING, SYMBOL, WORD, Lexed
from gquery.sql.sqlglot_keywords import TAKEN

_IS_COMPILED = not str(sys.modules["sqlglot.tokenizer_core"].__file__).endswith(".py")
_SPECIAL = re.compile(r"--|/\*|[^\n\t -~]|\\")  # comments, escapes, letters and spaces beyond ASCII
_ODD = frozenset("@#{}")  # that mean more than one thing to sqlglot
_PLAIN_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_BRACKETS = frozenset("()[],;")  # that are part of no other symbol


class _Vocabulary(NamedTuple):
    """sqlglot's types of words, phrases and symbols, in lower case. A phrase has two words, by the first of them. Behind some
    words what follows may be no tokens: ``others``."""

    types: dict[str, TokenType]
    phrases: dict[str, frozenset[str]]
    others: frozenset[str]


@cache
def _vocabulary() -> _Vocabulary:
    from gquery.sql import vocabulary  # with sqlglot's tokenizer, which plain statements do without

    types = {key.lower(): kind for key, kind in {**vocabulary.SINGLE_TOKENS, **vocabulary.KEYWORDS}.items()}
    two = [tuple(key.split(" ")) for key in types if " " in key]
    phrases = {first: frozenset(second for f, second in two if f == first) for first, _ in two}
    commands = {key for key, kind in types.items() if kind in vocabulary.COMMANDS}
    joined = {key.partition("-")[0] for key in types if "-" in key[1:]}  # user-defined
    return _Vocabulary(types, phrases, frozenset(commands | joined))


def is_plain_name(word: str) -> bool:
    """Whether a word of the lexer's is nothing but a name to sqlglot."""
    return word not in TAKEN and "$" not in word


def is_plain_number(text: str) -> bool:
    """Whether sqlglot reads a number of the lexer's as one, as it is typed."""
    return _PLAIN_NUMBER.fullmatch(text) is not None


Names = Mapping[int, tuple[int, str]]
"""What is read as one name: by where it begins in the text, where it ends, and the name."""


def tokens_of(sql: str, lexed: Lexed, names: Names) -> tuple[list[Token], bool]:
    """The tokens that sqlglot's parser reads, and whether each is one of the lexer's, two words of these, or one of ``names``.
    Where they are not, the names are not there."""
    from gquery.sql.dialect import dialect  # with the parser, which plain statements do without

    found = None if _IS_COMPILED or _SPECIAL.search(sql) else _made(sql, lexed, names)
    return (dialect().tokenize(sql), False) if found is None else (found, True)


def with_names(given: list[Token], names: Names) -> list[Token]:
    """sqlglot's own tokens with the names."""
    result: list[Token] = []
    last = -1
    for t in given:
        if t.start <= last:
            continue
        if (found := names.get(t.start)) is not None:
            last, name = found
            t = Token(TokenType.VAR, name, t.line, t.col, t.start, last)
        result.append(t)
    return result


def _made(sql: str, lexed: Lexed, names: Names) -> list[Token] | None:
    """The tokens of a text; None where it holds one of which it is not known here what sqlglot makes of it."""
    types, phrases, others = _vocabulary()
    made: list[Token] = []
    line, line_end, before = 1, sql.find("\n"), -1  # of the token at hand; the line begins behind ``before``
    second = -1  # the end of a phrase or a name that was made
    kinds, words, starts, ends = lexed.kinds, lexed.words, lexed.starts, lexed.ends
    for n, (kind, word, start, end) in enumerate(zip(kinds[:-1], words, starts, ends, strict=False)):
        if end <= second:
            continue
        text = sql[start : end + 1]
        if start in names:
            token_type = TokenType.VAR
            end, text = names[start]
            second = end
        elif kind == WORD:
            if word in phrases and kinds[n + 1] == WORD and words[n + 1] in phrases[word]:
                if "\n" in sql[end : ends[n + 1]]:  # which sqlglot does not count here
                    return None
                word = f"{word} {words[n + 1]}"
                text = word.upper()
                end = second = ends[n + 1]
            elif word in others or "$" in word or (end + 1 == starts[n + 1] and kinds[n + 1] in (STRING, QUOTED)):
                return None
            token_type = types.get(word, TokenType.VAR)
        elif text in _BRACKETS:
            token_type = types[text]
        elif kind == SYMBOL:
            follows = kinds[n + 1] == SYMBOL and end + 1 == starts[n + 1]
            if text not in types or not _ODD.isdisjoint(text) or (follows and words[n + 1] not in _BRACKETS):
                return None
            token_type = types[text]
        elif kind == NUMBER:
            if not _PLAIN_NUMBER.fullmatch(text) or (end + 1 == starts[n + 1] and kinds[n + 1] not in (SYMBOL, END)):
                return None
            token_type = TokenType.NUMBER
        else:
            if "\n" in text or kind not in (STRING, QUOTED):
                return None
            token_type = TokenType.STRING if kind == STRING else TokenType.IDENTIFIER
            text = text[1:-1].replace(text[0] * 2, text[0])
        while 0 <= line_end < end:
            line, before, line_end = line + 1, line_end, sql.find("\n", line_end + 1)
        made.append(Token(token_type, text, line, end - before, start, end))
    return made
