"""Cuts a text into statements and dot commands.

A statement ends at a semicolon outside of strings, quoted names and comments. A line that begins with a dot where no
statement is open is a dot command. Statements keep the newlines before them, so that errors name the line of the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gquery.runtime.records import dataclass

# What a semicolon may hide in; an end that is missing takes the rest of the text.
_TOKEN = re.compile(
    r"""'(?:[^']|'')*(?:'|\Z) | "(?:[^"]|"")*(?:"|\Z) | --[^\n]*(?:\n|\Z) | /\*.*?(?:\*/|\Z)
      | (?P<tag>\$(?:[A-Za-z_]\w*)?\$).*?(?:(?P=tag)|\Z) | ; | [^'"\-/$;]+ | .""",
    re.S | re.X,
)
_CLOSED = re.compile(r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | /\*.*\*/ | (\$\w*\$).*\1""", re.S | re.X)
# What people type who know other shells: alone in its line, where no statement is open, it is the dot command.
_WORD = re.compile(r"(exit|quit|help)[ \t]*;?[ \t]*\r?(?=\n|\Z)", re.I)
_OPENS = ("'", '"', "/*", "$")


@dataclass(frozen=True)
class Statement:
    """SQL text, without its semicolon. ``line`` is the line of the script that it begins in, counted from 0."""

    sql: str
    line: int = 0
    complete: bool = True  # whether a semicolon ended it

    @property
    def located(self) -> str:
        """The text after as many newlines as it has lines before it, so that LINE n in an error is the script's."""
        return "\n" * self.line + self.sql


@dataclass(frozen=True)
class Command:
    """A dot command: its name without the dot, and the words after it."""

    name: str
    words: tuple[str, ...]


def split(text: str, line: int = 0) -> Iterator[Statement | Command]:
    """The parts of a text, in order; its first line is number ``line`` of the script.

    >>> [p.sql for p in split("SELECT ';' ; SELECT 2 -- two;") if isinstance(p, Statement)]
    ["SELECT ';'", 'SELECT 2 -- two;']
    >>> list(split(".mode csv"))
    [Command(name='mode', words=('csv',))]
    >>> list(split("exit;"))
    [Command(name='exit', words=())]
    """
    at = 0
    while at < len(text):
        begin = _skip(text, at)
        if word := _WORD.match(text, begin):
            end = word.end()
            yield Command(word[1].lower(), ())
        elif text.startswith(".", begin):
            end = text.find("\n", begin)
            end = len(text) if end < 0 else end
            yield command(text[begin:end])
        else:
            end, complete = _end_of_statement(text, begin)
            sql = text[begin:end].rstrip()
            if sql and not is_blank(sql):
                yield Statement(sql, line + text.count("\n", 0, begin), complete)
        at = end + 1


def command(line: str) -> Command:
    """A line as a dot command. Words may be quoted.

    >>> command(".nullvalue 'no value'")
    Command(name='nullvalue', words=('no value',))
    """
    import shlex

    try:
        words = shlex.split(line.strip()[1:], posix=True)
    except ValueError:  # a quote without its end is taken as it stands
        words = line.strip()[1:].split()
    return Command(words[0] if words else "", tuple(words[1:]))


def is_complete(text: str) -> bool:
    """Whether Enter runs the text: a dot command, nothing, or all statements ended.

    >>> is_complete("SELECT 1"), is_complete("SELECT ';'"), is_complete("SELECT 1; -- end"), is_complete(".help")
    (False, False, True, True)
    >>> is_complete("exit"), is_complete("help;"), is_complete("exit now")
    (True, True, False)
    """
    if text.lstrip().startswith(".") or _WORD.fullmatch(text.lstrip()):
        return True
    parts = [p for p in split(text) if isinstance(p, Statement)]
    return (not parts and not _is_open(text)) or (bool(parts) and parts[-1].complete)


def is_blank(sql: str) -> bool:
    """Whether there is nothing but white space and comments.

    >>> is_blank(" -- nothing"), is_blank("1")
    (True, False)
    """
    return all(t.isspace() or t.startswith(("--", "/*")) for t in _tokens(sql))


def _is_open(text: str) -> bool:
    last = next(reversed(list(_tokens(text))), "")
    return last.startswith(_OPENS) and not _CLOSED.fullmatch(last)


def _tokens(text: str) -> Iterator[str]:
    return (m[0] for m in _TOKEN.finditer(text))


def _skip(text: str, at: int) -> int:
    """The first character after ``at`` that is no white space."""
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _end_of_statement(text: str, at: int) -> tuple[int, bool]:
    """Where the statement that begins at ``at`` ends, and whether with a semicolon."""
    for match in _TOKEN.finditer(text, at):
        if match[0] == ";":
            return match.start(), True
    return len(text), False
