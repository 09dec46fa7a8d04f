"""DuckDB's lexer: what the characters of a text mean before any grammar sees them.

sqlglot has a lexer of its own, which takes ``1e3+1e3`` for two numbers, one of them ``1e3+1``. The tokens that are made
here are DuckDB's; `gquery.sql.grammar` reads them, and `gquery.sql.covered` compares their places with sqlglot's tree.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import accumulate

from gquery.errors import ParseError, point_at
from gquery.runtime.records import dataclass

# kinds of tokens
WORD, QUOTED, NUMBER, STRING, PARAMETER, SYMBOL, END = (
    "word",
    "quoted",
    "number",
    "string",
    "parameter",
    "symbol",
    "end",
)

_DIGITS = r"\d(?:_?\d)*"
# Letters, digits and those that a word may hold, by the ASCII characters that are none: what lies beyond are all letters, which
# `re` takes 9 ms to compile where they are named.
_LETTER = r"[^\x00-@\[-^`{-\x7f]"
_LETTER_OR_DIGIT = r"[^\x00-/:-@\[-^`{-\x7f]"
_IN_WORD = r"[^\x00-\#%-/:-@\[-^`{-\x7f]"
_NUMBER = rf"(?:{_DIGITS}\.(?!\.)(?:{_DIGITS})?|\.{_DIGITS}|{_DIGITS})(?:[eE][+-]?{_DIGITS})?"
_BETWEEN = r"(?:\s+|--[^\n]*)*+"  # possessive: a part of a comment is no token
# What most texts are made of, comments, parameters and letters beyond ASCII aside; nothing else is spaces alone between these.
_PLAIN = re.compile(
    rf"""([A-Za-z_][A-Za-z0-9_$]*|{_NUMBER}|'(?:[^']|'')*'|"(?:[^"]|"")+"|::|:=|=>|[(),\[\].;:{{}}]|[~!@%^|`+*/<>=\#-]+)"""
)
_FIRST = dict.fromkeys("0123456789", NUMBER) | {"'": STRING, '"': QUOTED} | dict.fromkeys("(),[].;:{}~!@%^|`+*/<>=#-", SYMBOL)
_PAIRS = frozenset(("::", "<=", ">=", "<>", "!=", "||"))  # operators of several signs that are always one
_SHOWN = (WORD, SYMBOL)
_PREFIXES = frozenset("exbn")  # words that belong to a text right behind them
_BROKEN = {"'": "a string that does not end", '"': "a name that does not end, or has no letter"}
_KEEPS_SIGN = re.compile("[~!@#%^&|`?]")
_OPERATORS = "+ - * / // % ^ ** = == <> != < <= > >= || & | << >> ~ !~ ~~ !~~ ~~* !~~* ~~~ ^@ -> ->> # @"
SYMBOLS = frozenset(f"( ) [ ] {{ }} , ; . : :: := => {_OPERATORS}".split())


# Compiled when they are first wanted, for 0.3 ms each: plain texts do without.


@cache
def _space() -> re.Pattern[str]:
    return re.compile(_BETWEEN)


@cache
def _token() -> re.Pattern[str]:
    return re.compile(
        rf"""{_BETWEEN}(?:(?P<comment>/\*)
        |(?P<odd>[eExXbBnN]'|[uU]&['"]|\$(?:{_LETTER}{_LETTER_OR_DIGIT}*)?\$)
        |(?P<word>{_LETTER}{_IN_WORD}*)
        |(?P<number>{_NUMBER})
        |(?P<string>'(?:[^']|'')*')
        |(?P<quoted>"(?:[^"]|"")+")
        |(?P<parameter>\${_LETTER_OR_DIGIT}+|\?\d*)
        |(?P<symbol>::|:=|=>|[(),\[\].;:{{}}]|[~!@%^&|`+*/<>=\#-]+)
        |(?P<end>\Z))""",
        re.X,
    )


@cache
def _constants() -> re.Pattern[str]:
    # What `lex` takes for quoted names and for constants in a text without comments, or more than that: a digit behind what a
    # word or a parameter is made of begins no number, nor does a digit that is a letter to the lexer. All begin with one of few
    # characters, which `re` looks for at once; what was passed tells which it was. Numbers are as in `_NUMBER`.
    return re.compile(
        rf"""(["'.0-9](?:(?<=")(?:[^"]|"")+"|(?<=')[^']*(?:''[^']*)*+'
        |(?<![^\x00-\#%-\-/:->@\[-^`{{-\x7f][.0-9])(?:(?<=\.){_DIGITS}|(?<=[0-9])(?:_?\d)*(?:\.(?!\.)(?:{_DIGITS})?)?)(?:[eE][+-]?{_DIGITS})?))""",
        re.X,
    )


@dataclass(frozen=True, slots=True)
class Lexed:
    """The tokens of a text, as columns: kinds, words (in lower case where they are no strings or quoted names), and
    the offsets of first and last characters. The last one is END. ``shown`` are the words of keywords, plain names and symbols,
    "" for others."""

    kinds: list[str]
    words: list[str]
    starts: list[int]
    ends: list[int]
    shown: list[str]


def lex(sql: str) -> Lexed:
    """The tokens of a text. Raises ParseError where DuckDB has none, with a caret."""
    return _plain(sql) or _one_by_one(sql)


def _plain(sql: str) -> Lexed | None:
    """The tokens of a text that `_PLAIN` takes apart: Python looks at each word that is another, not at each token. None where
    anything may be something else."""
    if not sql.isascii():  # spaces among them look like letters
        return None
    parts = _PLAIN.split(sql)
    spaces = "".join(parts[::2])
    if spaces and not spaces.isspace():
        return None
    typed = parts[1::2]
    kind_of: dict[str, str] = {}
    word_of: dict[str, str] = {}
    shown_of: dict[str, str] = {}
    for text in set(typed):
        kind = kind_of[text] = _FIRST.get(text[0], WORD)
        word = word_of[text] = text.lower() if kind == WORD else text
        shown_of[text] = word if kind in _SHOWN else ""
        if kind == SYMBOL and len(text) > 1 and text not in _PAIRS:
            return None
    kinds, words = [*map(kind_of.__getitem__, typed)], [*map(word_of.__getitem__, typed)]
    shown = [*map(shown_of.__getitem__, typed), ""]
    places = [*accumulate(map(len, parts))]
    starts, ends = places[:-1:2], [place - 1 for place in places[1::2]]
    n = -1
    for _ in range(kinds.count(STRING)):
        n = kinds.index(STRING, n + 1)
        if n > 0 and (kinds[n - 1] == STRING or (words[n - 1] in _PREFIXES and not parts[2 * n])):
            return None
    kinds.append(END)
    words.append("")
    starts.append(len(sql.rstrip()))
    ends.append(len(sql))
    return Lexed(kinds, words, starts, ends, shown)


def _one_by_one(sql: str) -> Lexed:
    """The tokens of any text."""
    tokens: list[tuple[str, str, int, int]] = []
    position, match, add = 0, _token().match, tokens.append
    before, twice = "", -1  # the kind of the token before, and where the first string behind another begins
    while True:
        found = match(sql, position)
        kind = found.lastgroup if found is not None else None
        if found is None or kind is None or kind == "odd":
            raise _refused(sql, position, found)
        text, end = found[kind], found.end()
        start = end - len(text)
        if kind == "word":
            text = text.lower()
        elif kind == "string":
            if before == "string" and twice < 0:
                twice = start
        elif kind == "symbol":
            if len(text) > 1:
                end = start + _operator(sql, start, text)
                text = sql[start:end]
        elif kind == "end":
            break
        elif kind == "comment":
            position = _comment_end(sql, start)
            continue
        add((kind, text, start, end - 1))
        position, before = end, kind
    add((END, "", len(sql.rstrip()), len(sql)))
    kinds, words, starts, ends = zip(*tokens, strict=True)
    if twice >= 0:  # DuckDB joins those on different lines, and refuses others
        raise ParseError(f"two texts side by side: write || between them\n{point_at(sql, twice)}")
    shown = [word if kind in _SHOWN else "" for kind, word in zip(kinds, words, strict=True)]
    return Lexed([*kinds], [*words], [*starts], [*ends], shown)


def split_at_constants(sql: str) -> list[str] | None:
    """A text cut at constants, by a glance: what stands before a constant or quoted name, that, and so on; None for a text with
    comments. Where `lex` finds the same constants, it finds the same tokens in any text that has the same other parts, and
    constants of the same kinds."""
    return None if "--" in sql or "/*" in sql else _constants().split(sql)


def _operator(sql: str, position: int, text: str) -> int:
    """How many of the characters are one operator: the longest run that is no comment; a final sign is one of its own."""
    if text in ("::", ":=", "=>"):
        return 2
    for mark in ("--", "/*"):
        text = text.split(mark)[0] if text.find(mark) > 0 else text
    while len(text) > 1 and text[-1] in "+-" and not _KEEPS_SIGN.search(text[:-1]):
        text = text[:-1]
    if text in ("//", "**") and sql.startswith(("-", "+"), position + 2):  # DuckDB binds these two less tightly there
        raise ParseError(f"{text} before a sign; put a space between operators\n{point_at(sql, position)}")
    if text not in SYMBOLS:
        raise ParseError(f"there is no operator {text!r}; put a space between operators\n{point_at(sql, position)}")
    return len(text)


def _comment_end(sql: str, start: int) -> int:
    """Where a comment ends; others may stand in it."""
    depth, position = 1, start + 2
    while depth:
        opened, closed = sql.find("/*", position), sql.find("*/", position)
        if closed < 0:
            raise ParseError(f"a comment that does not end\n{point_at(sql, start)}")
        inner = 0 <= opened < closed
        depth += 1 if inner else -1
        position = (opened if inner else closed) + 2
    return position


def _refused(sql: str, position: int, found: re.Match[str] | None) -> ParseError:
    if found is not None:
        position = found.start("odd")
        what = f"a text that begins with {found['odd']} is not supported: write '...'"
    else:
        between = _space().match(sql, position)
        position = position if between is None else between.end()
        what = _BROKEN.get(sql[position], f"the character {sql[position]!r} means nothing here")
    return ParseError(f"{what}\n{point_at(sql, position)}")
