"""The tokens of a statement, gone through one by one, and what is found in them: names, leaves, what belongs together.

The base of `sql.grammar.values`; `sql.grammar` says what this is for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from sqlglot import exp

from gquery.errors import ParseError, point_at
from gquery.expression.keywords import CALLED_COLUMN_NAMES, COLUMN_NAMES, CONSTANTS, FUNCTION_NAMES, KEYWORDS, RESERVED
from gquery.runtime.records import dataclass
from gquery.sql.grammar.nodes import Made, identifier, is_worth
from gquery.sql.lexer import END, QUOTED, STRING, WORD, Lexed

_MARK = "\x1e"
ABS = "abs"  # marked, a call for ``@x``
ARRAY = "array"  # marked, a call of the query that ARRAY makes a list of
JSON = "json"  # marked, a call for ``->``, or with a third argument for ``->>``
AS_NAME = "\x1d"  # before a name that is put in, which may be that of a keyword
LISTED = "listed"  # marked, a call around the value that IN looks into
METHOD = "method"  # marked, a call around a value and the call behind its dot


def marked(name: str) -> str:
    """A column that no text names: it says what stands behind it in a SELECT list that was made here."""
    return _MARK + name


def mark_of(name: str) -> str:
    """What a column's name says of what stands behind it; "" for a name that a text has."""
    return name[1:] if name[:1] == _MARK else ""


@dataclass(frozen=True)
class Edit:
    """Words that sqlglot's parser reads in place of the token that begins at a place, or before it."""

    start: int
    words: tuple[str, ...]
    is_before: bool = False


@dataclass(frozen=True)
class Form:
    """A statement that is more than its query: PREPARE and EXECUTE of a name, with the text and the parameters of one and the
    names of the other's arguments ("" for those by place); DEALLOCATE; COPY to a file, with its options; a change of a table."""

    kind: str
    name: str
    text: str = ""
    names: tuple[str, ...] = ()
    options: tuple[tuple[str, object], ...] = ()


@dataclass
class Reading:
    """What a statement consists of: where its names and constants begin and end, by their order, and the pairs of the
    first and last of them for all that belongs together. ``calls`` are where the names of functions begin that are called
    as any other; ``pluses`` where a plus stands before a value, and where that ends; ``typed`` where a constant with its
    type before it begins and ends, where a cast or the like stands behind it; ``frames`` where the word begins with which a
    window's frame does; ``edits`` what sqlglot is given to read in place of the text, ``blanks`` where it
    sees spaces, ``form`` what it does not read at all; ``has_methods``: a call stands behind a dot somewhere; ``made``: the
    expressions whose nodes are here already; ``tree``: all of the statement, where all of its nodes are."""

    leaves: list[tuple[int, int]] = field(default_factory=list)
    calls: set[int] = field(default_factory=set)
    pluses: dict[int, int] = field(default_factory=dict)
    typed: dict[int, int] = field(default_factory=dict)
    frames: set[int] = field(default_factory=set)
    edits: list[Edit] = field(default_factory=list)
    blanks: list[tuple[int, int]] = field(default_factory=list)
    form: Form | None = None
    has_methods: bool = False
    made: list[Made] = field(default_factory=list)
    tree: exp.Expr | None = None
    spans: list[tuple[int, int]] = field(default_factory=list)


Mark = tuple[int, int, int, int, int]
"""Where a reader was: its token, and how many of each it had found."""


class TokenReader:
    """Goes through the tokens of a statement; ``at`` is the next one."""

    def __init__(self, sql: str, tokens: Lexed, first: int, behind: int) -> None:
        self.sql, self.kinds, self.words = sql, tokens.kinds, tokens.words
        self.starts, self.ends, self.behind, self.shown = tokens.starts, tokens.ends, behind, tokens.shown
        self.reading = Reading()
        self.tried: exp.Expr | None = None
        self._failed: set[int] = set()
        self._stop = -1  # a token that no operator begins with
        self.go(first)

    # ---- tokens ------------------------------------------------------------------------------------------------------

    def go(self, at: int) -> None:
        """Makes a token the next one. ``word`` is its text where it is a keyword, a plain name or a symbol."""
        self.at = at
        if at < self.behind:
            self.kind, self.word = self.kinds[at], self.shown[at]
        else:
            self.kind, self.word = END, ""

    def next(self) -> None:
        """Goes over one token."""
        self.go(self.at + 1)

    def peek(self, ahead: int) -> str:
        """A symbol or word further on."""
        at = self.at + ahead
        return self.shown[at] if at < self.behind else ""

    def take(self, word: str) -> bool:
        """Goes over a keyword or symbol where it is the next one."""
        if self.word != word:
            return False
        self.go(self.at + 1)
        return True

    def expect(self, word: str, wanted: str = "") -> None:
        """Goes over a keyword or symbol that has to be here."""
        if not self.take(word):
            raise self.unexpected(wanted or word.upper())

    def edit(self, at: int, words: tuple[str, ...], is_before: bool = False) -> None:
        """Has sqlglot read words in place of a token, or before it."""
        self.reading.edits.append(Edit(self.starts[at], words, is_before))

    def blank(self) -> None:
        """Hides the next token from sqlglot, whose tokenizer takes all that is behind some words for one text."""
        self.reading.blanks.append((self.starts[self.at], self.ends[self.at] + 1))
        self.next()

    def say(self, *words: str) -> None:
        """Has sqlglot read words in place of the next token, and goes over it."""
        self.edit(self.at, words)
        self.next()

    def say_before(self, *words: str) -> None:
        """Has sqlglot read words before the next token."""
        if words:
            self.edit(self.at, words, is_before=True)

    def unexpected(self, wanted: str = "") -> ParseError:
        """The error of the next token."""
        before = f": {wanted} is expected" if wanted else ""
        if self.kind == END:
            text, place = f"the statement ends too early{before}", self.starts[min(self.at, self.behind)]
        else:
            place = self.starts[self.at]
            typed = self.sql[place : self.ends[self.at] + 1]
            text = f"{typed if len(typed) < 50 else typed[:50] + '...'} cannot stand here{before}"
        return ParseError(f"{text}\n{point_at(self.sql, place)}")

    def leaf(self) -> None:
        """Goes over a name or constant that must stand in the tree."""
        self.reading.leaves.append((self.starts[self.at], self.ends[self.at]))
        self.go(self.at + 1)

    def begin(self) -> int:
        """The start of something that belongs together."""
        return len(self.reading.leaves)

    def end(self, start: int) -> None:
        """The end of it."""
        last = len(self.reading.leaves) - 1
        if last > start:
            self.reading.spans.append((start, last))

    def keep(self, trees: list[exp.Expr], first: int, start: int, behind: int, last: int) -> None:
        """Has sqlglot read one name in place of the tokens from ``first`` to the one before ``behind``, expressions with commas
        between them, where that gains anything. ``start`` and ``last``: the first of their leaves and the one behind them."""
        if len(trees) > 1 or (trees and is_worth(trees[0])):
            place, end, made = self.starts[first], self.ends[behind - 1], self.reading.made
            within = len(made)
            while within and made[within - 1].start >= place:
                within -= 1
            made[within:] = [m for m in made[within:] if m.start > end]  # others are parts of these, in queries
            made.append(Made(place, end, start, last, trees))

    def keep_one(self, tree: exp.Expr | None, first: int, start: int) -> None:
        """The same for one expression that ends here, if its tree is there."""
        if tree is not None:
            self.keep([tree], first, start, self.at, self.begin())

    def keep_list(self, rule: Callable[[], exp.Expr | None]) -> list[exp.Expr] | None:
        """Entries with commas between them, each read by a rule: neighbours whose trees are there are one name to sqlglot. The
        trees, if all are there."""
        trees: list[exp.Expr] = []
        is_whole = True
        first = start = behind = last = 0
        while True:
            place, leaf = self.at, self.begin()
            tree = rule()
            if tree is None:
                self.keep(trees, first, start, behind, last)
                trees, is_whole = [], False
            else:
                if not trees:
                    first, start = place, leaf
                trees.append(tree)
                behind, last = self.at, self.begin()
            if not self.take(",") or not self.can_begin():  # DuckDB takes a comma at the end
                break
        self.keep(trees, first, start, behind, last)
        return trees if is_whole else None

    def mark(self) -> Mark:
        """Where the reader is."""
        r = self.reading
        return self.at, len(r.leaves), len(r.spans), len(r.edits), len(r.made)

    def tries(self, rule: Callable[[], exp.Expr | None], mark: Mark) -> bool:
        """Whether a rule takes what comes; back at ``mark`` where it does not. Each place is tried once. ``tried`` is what the
        rule gave."""
        if mark[0] in self._failed:
            return False
        try:
            self.tried = rule()
        except ParseError:
            self._failed.add(mark[0])
            self.go(mark[0])
            r = self.reading
            del r.leaves[mark[1] :], r.spans[mark[2] :], r.edits[mark[3] :], r.made[mark[4] :]
            return False
        return True

    # ---- names -------------------------------------------------------------------------------------------------------

    def is_column_name(self) -> bool:
        """Whether the next token can name a column or table."""
        return self.kind == QUOTED or (
            self.kind == WORD and self.word not in RESERVED and self.word not in FUNCTION_NAMES
        )

    def is_function_name(self) -> bool:
        """Whether the next token can name a function."""
        return self.kind == QUOTED or (
            self.kind == WORD
            and self.word not in RESERVED
            and (self.word not in COLUMN_NAMES or self.word in CALLED_COLUMN_NAMES)
        )

    def is_bare_alias(self) -> bool:
        """Whether the next token can be an alias without AS: no keyword can."""
        return self.kind == QUOTED or (self.kind == WORD and self.word not in KEYWORDS)

    def can_begin(self) -> bool:
        """Whether an expression can begin here: a comma may stand at the end of a list."""
        return self.kind not in (END,) and (
            self.kind != WORD or self.word not in RESERVED or self.word in ("not", "case", "cast", "array", *CONSTANTS)
        ) and self.word not in (")", "]", ";")  # fmt: skip

    def name(self, leaf: bool = False) -> None:
        """The name of a column or table."""
        if not self.is_column_name():
            raise self.unexpected()
        self.leaf() if leaf else self.next()

    def identifier(self, is_field: bool = False) -> exp.Identifier | None:
        """The node of the next token, a name; see `grammar.nodes`."""
        start = self.starts[self.at]
        return identifier(self.sql[start : self.ends[self.at] + 1], self.kind, self.word, start, is_field)

    def label(self, leaf: bool = False, text: bool = False) -> None:
        """A name where keywords can stand too: behind a dot or AS."""
        if self.kind not in (WORD, QUOTED) and not (text and self.kind == STRING):
            raise self.unexpected("a name")
        self.leaf() if leaf else self.next()

    def names(self, trailing: bool = False) -> list[exp.Expr | None]:
        """Names with commas between them."""
        found: list[exp.Expr | None] = [self.identifier()]
        self.name(leaf=True)
        while self.take(","):
            if trailing and self.word == ")":
                break
            found.append(self.identifier())
            self.name(leaf=True)
        return found
