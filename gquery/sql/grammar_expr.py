"""Expressions of DuckDB's grammar: operators by how tightly they bind, names, constants, functions, types.

The base of `gquery.sql.grammar`, which says what this is for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from gquery.errors import ParseError, point_at
from gquery.sql.keywords import COLUMN_NAMES, FUNCTION_NAMES, KEYWORDS, RESERVED
from gquery.sql.lexer import END, NUMBER, PARAMETER, QUOTED, STRING, WORD, Lexed

# How tightly operators bind, loosest first, as in DuckDB's grammar
_OR, _AND, _NOT, _IS, _COMPARE, _LIKE, _OTHER, _ADD, _MULTIPLY, _POWER, _MINUS = range(1, 12)
_INFIX = {
    "or": _OR, "and": _AND,
    "=": _COMPARE, "==": _COMPARE, "<>": _COMPARE, "!=": _COMPARE, "<": _COMPARE, "<=": _COMPARE, ">": _COMPARE,
    ">=": _COMPARE,
    "||": _OTHER, "&": _OTHER, "|": _OTHER, "<<": _OTHER, ">>": _OTHER, "~": _OTHER, "!~": _OTHER, "~~": _OTHER,
    "!~~": _OTHER, "~~*": _OTHER, "!~~*": _OTHER, "~~~": _OTHER, "^@": _OTHER,
    "+": _ADD, "-": _ADD, "*": _MULTIPLY, "/": _MULTIPLY, "//": _MULTIPLY, "%": _MULTIPLY, "^": _POWER, "**": _POWER,
}  # fmt: skip
_MATCHES = ("like", "ilike", "glob", "similar", "in", "between")
_CONSTANTS = ("null", "true", "false")
_SINGULAR = (
    "year",
    "month",
    "day",
    "hour",
    "minute",
    "second",
    "millisecond",
    "microsecond",
    "week",
    "quarter",
    "decade",
)
_UNITS = frozenset(f"{u}{s}" for u in _SINGULAR for s in ("", "s")) | {
    "century", "centuries", "millennium", "millennia"
}  # fmt: skip
_TYPE_WORDS = frozenset((
    "int", "integer", "smallint", "bigint", "real", "float", "decimal", "dec", "numeric", "boolean", "char", "character",
    "varchar", "timestamp", "time", "bit",
))  # fmt: skip
_CALLS = frozenset(("coalesce", "nullif", "row", "exists"))  # names of columns that are functions, too


@dataclass
class Reading:
    """What a statement consists of: where its names and constants begin and end, by their order, and the pairs of the
    first and last of them for all that belongs together. ``calls`` are where the names of functions begin that are called
    as any other; ``pluses`` where a plus stands before a value, and where that ends; ``typed`` where a constant with its
    type before it begins and ends, where a cast or the like stands behind it."""

    leaves: list[tuple[int, int]] = field(default_factory=list)
    calls: set[int] = field(default_factory=set)
    pluses: dict[int, int] = field(default_factory=dict)
    typed: dict[int, int] = field(default_factory=dict)
    spans: list[tuple[int, int]] = field(default_factory=list)


class ExpressionReader:
    """Goes through the tokens of a statement; ``at`` is the next one."""

    def __init__(self, sql: str, tokens: Lexed, first: int, behind: int) -> None:
        self.sql, self.kinds, self.words = sql, tokens.kinds, tokens.words
        self.starts, self.ends, self.behind = tokens.starts, tokens.ends, behind
        self.reading = Reading()
        self._failed: set[int] = set()
        self.go(first)

    # ---- tokens ------------------------------------------------------------------------------------------------------

    def go(self, at: int) -> None:
        """Makes a token the next one. ``word`` is its text where it is a keyword, a plain name or a symbol."""
        self.at = at
        self.kind = self.kinds[at] if at < self.behind else END
        self.word = self.words[at] if self.kind in (WORD, "symbol") else ""

    def next(self) -> None:
        """Goes over one token."""
        self.go(self.at + 1)

    def peek(self, ahead: int) -> str:
        """A symbol or word further on."""
        at = self.at + ahead
        return self.words[at] if at < self.behind and self.kinds[at] in (WORD, "symbol") else ""

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

    def mark(self) -> tuple[int, int, int]:
        """Where the reader is."""
        return self.at, len(self.reading.leaves), len(self.reading.spans)

    def tries(self, rule: Callable[[], None], mark: tuple[int, int, int]) -> bool:
        """Whether a rule takes what comes; back at ``mark`` where it does not. Each place is tried once."""
        if mark[0] in self._failed:
            return False
        try:
            rule()
        except ParseError:
            self._failed.add(mark[0])
            self.go(mark[0])
            del self.reading.leaves[mark[1] :], self.reading.spans[mark[2] :]
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
            self.kind == WORD and self.word not in RESERVED and (self.word not in COLUMN_NAMES or self.word in _CALLS)
        )

    def is_bare_alias(self) -> bool:
        """Whether the next token can be an alias without AS: no keyword can."""
        return self.kind == QUOTED or (self.kind == WORD and self.word not in KEYWORDS)

    def can_begin(self) -> bool:
        """Whether an expression can begin here: a comma may stand at the end of a list."""
        return self.kind not in (END,) and (
            self.kind != WORD or self.word not in RESERVED or self.word in ("not", "case", "cast", *_CONSTANTS)
        ) and self.word not in (")", "]", ";")  # fmt: skip

    def name(self, leaf: bool = False) -> None:
        """The name of a column or table."""
        if not self.is_column_name():
            raise self.unexpected()
        self.leaf() if leaf else self.next()

    def label(self, leaf: bool = False, text: bool = False) -> None:
        """A name where keywords can stand too: behind a dot or AS."""
        if self.kind not in (WORD, QUOTED) and not (text and self.kind == STRING):
            raise self.unexpected("a name")
        self.leaf() if leaf else self.next()

    def names(self, trailing: bool = False) -> None:
        """Names with commas between them."""
        self.name(leaf=True)
        while self.take(","):
            if trailing and self.word == ")":
                return
            self.name(leaf=True)

    # ---- operators ---------------------------------------------------------------------------------------------------

    def expressions(self, trailing: bool = False) -> int:
        """Expressions with commas between them; how many."""
        self.expression()
        count = 1
        while self.take(","):
            if trailing and self.word == ")":
                break
            self.expression()
            count += 1
        return count

    def expression(self, least: int = _OR, star: bool = False, is_simple: bool = False) -> None:
        """An expression of operators that bind at least that tightly. ``star``: ``t.*`` may stand here; ``is_simple``: a
        bound of BETWEEN, where no AND can stand."""
        start = self.begin()
        if self.take("not"):
            self.expression(_NOT)
            self.end(start)
        elif self.word in ("-", "+"):
            sign = self.at
            self.next()
            self.expression(_MINUS)
            self.end(start)
            if self.words[sign] == "+":
                self.reading.pluses[self.starts[sign]] = self.ends[self.at - 1]
        elif self.word in ("~", "@"):
            self.next()
            self.expression(_OTHER + 1)
            self.end(start)
        else:
            if self._primary_expression(star):
                return
            self._postfix(start)
        closed = 0  # the level that may not come again: a < b < c is none
        while True:
            level = self._level(is_simple)
            if level < least or level == 0:
                return
            if level == closed:
                raise self.unexpected("parentheses")
            closed = self._operator(level)
            if level == _LIKE and self.word == "==":
                raise self.unexpected("parentheses")
            self.end(start)

    def _level(self, is_simple: bool) -> int:
        """How tightly the operator here binds; 0 for none."""
        word = self.word
        found = _INFIX.get(word)
        if found is not None:
            if is_simple and found == _COMPARE:  # sqlglot reads none there
                raise self.unexpected("parentheses")
            return 0 if is_simple and found <= _AND else found
        if is_simple or self.kind != WORD:
            return _IS if is_simple and word == "is" and "distinct" in (self.peek(1), self.peek(2)) else 0
        if word in ("is", "isnull", "notnull"):
            return _IS
        if word in _MATCHES or (word == "not" and self.peek(1) in (*_MATCHES, "null")):
            return _LIKE if self.peek(1) != "null" or word != "not" else _IS
        return 0

    def _operator(self, level: int) -> int:
        """An operator and what stands right of it. Gives the level if it may not come again."""
        word = self.word
        if level == _IS:
            return self._is()
        if level == _LIKE:
            return self._match()
        self.next()
        if self.word == "not" and (
            level == _OTHER or word == "=="
        ):  # DuckDB takes the operator for one behind its value
            raise self.unexpected("a value")
        if level == _COMPARE and self.word in ("any", "all", "some") and self.peek(1) == "(":
            self.next()
            self._subquery_in_parentheses()
            return 0
        if word == "==":  # binds as || does in DuckDB and as = does in sqlglot: allowed where that is the same
            self.expression(_ADD)
            if self._level(False) in (_LIKE, _OTHER):
                raise self.unexpected("parentheses")
            return level
        self.expression(level + 1)
        return level if level == _COMPARE and word else 0

    def _is(self) -> int:
        if self.take("isnull") or self.take("notnull"):
            return 0
        if self.take("not"):  # a NOT NULL
            self.expect("null")
            return 0
        self.next()
        self.take("not")
        if self.take("distinct"):
            self.expect("from")
            self.expression(_IS + 1)
            return _IS
        if self.word not in (*_CONSTANTS, "unknown"):
            raise self.unexpected("NULL, TRUE, FALSE or DISTINCT FROM")
        self.next()
        return 0

    def _match(self) -> int:
        """LIKE and its kin, IN, BETWEEN."""
        self.take("not")
        word = self.word
        self.next()
        if word == "in":
            self._in()
            return 0
        if word == "between":
            self.expression(_COMPARE, is_simple=True)
            self.expect("and")
            self.expression(_LIKE + 1)
            return _LIKE
        if word == "similar":
            self.expect("to")
        self.expression(_LIKE + 1)
        if self.take("escape"):
            self.expression(_LIKE + 1)
        return _LIKE

    def _in(self) -> None:
        if self.word != "(":
            raise self.unexpected("(")
        if self.starts_query() and self.tries(self._subquery_in_parentheses, self.mark()):
            return
        self.next()
        self.expressions(trailing=True)
        self.expect(")")

    # ---- primaries ---------------------------------------------------------------------------------------------------

    def starts_query(self) -> bool:
        """Whether a query begins here, in parentheses or not."""
        raise NotImplementedError

    def query(self) -> None:
        """A query without parentheses around it."""
        raise NotImplementedError

    def _subquery_in_parentheses(self) -> None:
        self.expect("(")
        self.query()
        self.expect(")")

    def _primary_expression(self, star: bool) -> bool:
        """What operators combine. Whether it was ``t.*``."""
        kind, word = self.kind, self.word
        if kind in (NUMBER, STRING):
            self.leaf()
        elif kind == PARAMETER:
            self.next()
        elif kind == QUOTED:
            return self._named(star)
        elif word == "(":
            self._parentheses()
        elif word == "[":
            self._list()
        elif word == "{":
            self._struct()
        elif kind != WORD:
            raise self.unexpected("an expression" if kind == END else "")
        elif word in _CONSTANTS:
            self.next()
        elif word == "case":
            self._case()
        elif word == "exists" and self.peek(1) == "(":
            self.next()
            self._subquery_in_parentheses()
        elif word in ("cast", "try_cast"):
            self._cast()
        elif word == "interval" and self._is_interval():
            self._interval()
        elif word in _SPECIAL and self.peek(1) == "(":
            self.next()
            self.next()
            _SPECIAL[word](self)
            self.expect(")")
        else:
            return self._named(star)
        return False

    def _postfix(self, start: int) -> None:
        """Casts and slices behind a value."""
        while True:
            if self.take("::"):
                self._type()
            elif self.word == "[":
                self.next()
                if self.kind == NUMBER and self.peek(1) == "]":
                    self.next()  # sqlglot counts from 0, and makes a number of its own
                elif self.word != ":":
                    self.expression()
                if self.take(":") and self.word != "]":
                    self.expression()
                self.expect("]")
                self.end(start)
            elif self.word == "at" and (self.peek(1), self.peek(2)) == ("time", "zone"):
                for _ in range(3):
                    self.next()
                if self.kind != STRING:
                    raise self.unexpected("the name of a zone")
                self.leaf()
                if self.word == "::":  # it would be a cast of the zone's name
                    raise self.unexpected("parentheses")
                self.end(start)
            else:
                return

    def _parentheses(self) -> None:
        mark = self.mark()
        if self.starts_query() and self.tries(self._subquery_in_parentheses, mark):
            return
        self.next()
        start = self.begin()
        self.expressions()
        self.expect(")")
        self.end(start)

    def _named(self, star: bool) -> bool:
        """A column, a function's call, or a constant with its type before it. Whether it was ``t.*``."""
        if self._is_typed_constant():
            first = self.at
            self._type()
            self.leaf()
            self._end_typed(first)
            return False
        if self.peek(1) == "(" and self.is_function_name():
            self._call()
            return False
        self.name(leaf=True)
        while self.take("."):
            if star and self.take("*"):
                self.star()
                return True
            self.label(leaf=True)
        return False

    def _end_typed(self, first: int) -> None:
        """The end of a constant whose type stands before it."""
        if self.word == "[":
            raise self.unexpected("parentheses")
        if self.word in ("::", "at"):
            self.reading.typed[self.starts[first]] = self.ends[self.at - 1]

    def _call(self) -> None:
        start = self.begin()
        if self.word in ("coalesce", "nullif"):  # constructs of the grammar: they take values alone
            self.function_name()
            self.expressions()
            self.expect(")")
            self.end(start)
            return
        self.function_name()
        self.arguments()
        if self.word == "filter" and self.peek(1) == "(":
            self.next()
            self.next()
            self.take("where")
            self.expression()
            self.expect(")")
        self.end(start)

    def function_name(self) -> None:
        """The name of a function that is called, and the parenthesis behind it."""
        if self.kind == QUOTED and self.words[self.at].lower() == '"coalesce"':
            raise self.unexpected("COALESCE without quotes")  # a construct of the grammar, and no function
        self.reading.calls.add(self.starts[self.at])
        self.next()
        self.next()

    def arguments(self, named: bool = False) -> None:
        """What stands in the parentheses of a call, up to the closing one. ``named``: of a table function."""
        if self.take(")"):
            return
        if self.word == "*" and self.peek(1) == ")":
            self.next()
        else:
            if not self.take("distinct"):
                self.take("all")
            self._argument(named)
            while self.take(","):
                self._argument(named)
            if self.word == "order":
                self.order()
        self.expect(")")

    def _argument(self, named: bool) -> None:
        if named and self.peek(1) in (":=", "=>", "="):
            self.label()
            self.next()
        self.expression()

    def order(self) -> None:
        """ORDER BY."""
        self.next()
        self.expect("by")
        if not self.take("all"):
            self.expression()
            self._direction()
            while self.take(","):
                self.expression()
                self._direction()
        else:
            self._direction()

    def _direction(self) -> None:
        if not self.take("asc"):
            self.take("desc")
        if self.take("nulls") and not self.take("first"):
            self.expect("last")

    def star(self) -> None:
        """What may follow ``*``: EXCLUDE, REPLACE, RENAME."""
        if self.take("exclude"):
            if self.take("("):
                self.names(trailing=True)
                self.expect(")")
            else:
                self.name(leaf=True)
        if self.take("replace"):
            self._pairs(self.expression)
        if self.take("rename"):
            self._pairs(lambda: self.name(leaf=True))

    def _pairs(self, what: Callable[[], None]) -> None:
        """``(x AS name, ...)``."""
        self.expect("(")
        while True:
            what()
            self.expect("as")
            self.name(leaf=True)
            if not self.take(",") or self.word == ")":
                break
        self.expect(")")

    # ---- what has a syntax of its own --------------------------------------------------------------------------------

    def _case(self) -> None:
        start = self.begin()
        self.next()
        if self.word != "when":
            self.expression()
        self.expect("when")
        while True:
            branch = self.begin()
            self.expression()
            self.expect("then")
            self.expression()
            self.end(branch)
            if not self.take("when"):
                break
        if self.take("else"):
            self.expression()
        self.expect("end")
        self.end(start)

    def _cast(self) -> None:
        self.next()
        self.expect("(")
        self.expression()
        self.expect("as")
        self._type()
        self.expect(")")

    def _extract(self) -> None:
        if self.kind != STRING:
            self.label()
        else:
            self.next()
        self.expect("from")
        self.expression()

    def _substring(self) -> None:
        start = self.begin()
        self.expression()
        if self.word in ("from", "for"):
            word = self.word
            self.next()
            self.expression()
            if self.take("for" if word == "from" else "from"):
                self.expression()
        else:
            while self.take(","):
                self.expression()
        self.end(start)

    def _trim(self) -> None:
        start = self.begin()
        if self.word in ("both", "leading", "trailing"):
            self.next()
        if self.take("from"):
            self.expression()
        else:
            self.expression()
            if self.take("from"):
                self.expression()
        while self.take(","):
            self.expression()
        self.end(start)

    def _position(self) -> None:
        start = self.begin()
        self.expression(_COMPARE, is_simple=True)
        self.expect("in")
        self.expression(_COMPARE, is_simple=True)
        self.end(start)

    def _is_interval(self) -> bool:
        at = self.at + 1
        return at < self.behind and (self.kinds[at] in (STRING, NUMBER) or self.words[at] == "(")

    def _interval(self) -> None:
        """``INTERVAL amount unit``: sqlglot splits a text's words, so that it is no leaf."""
        first = self.at
        self.next()
        is_text = self.kind == STRING
        if self.kind == NUMBER and not self.words[self.at].replace("_", "").isdigit():
            raise self.unexpected("an integer")
        if self.take("("):
            self.expression()
            self.expect(")")
        else:
            self.next()
        if self.word in _UNITS:
            self.next()
        elif not is_text:
            raise self.unexpected("a unit")
        self._end_typed(first)

    def _list(self) -> None:
        self.next()
        if not self.take("]"):
            self.expressions()
            self.expect("]")

    def _struct(self) -> None:
        """``{'key': value}``, an option of a table function."""
        self.next()
        while True:
            if self.kind != STRING:
                self.label()
            else:
                self.next()
            self.expect(":")
            self.expression()
            if not self.take(","):
                break
        self.expect("}")

    def _is_typed_constant(self) -> bool:
        """``DATE '2020-01-01'``, ``DECIMAL(5, 2) '1.5'``, ``DOUBLE PRECISION '1'``."""
        if self.kind not in (WORD, QUOTED) or (self.kind == WORD and self.word in RESERVED):
            return False
        at = self.at + 1
        if self.word in ("double", "character") and self.peek(1) in ("precision", "varying"):
            at += 1
        elif self.word in _TYPE_WORDS and self.peek(1) == "(":
            while at < self.behind and self.words[at] != ")":
                at += 1
            at += 1
        elif self.word == "timestamp" and self.peek(1) in ("with", "without") and self.peek(2) == "time":
            at += 3
        return at < self.behind and self.kinds[at] == STRING

    def _type(self) -> None:
        """The name of a type, with what belongs to it."""
        word = self.word
        if self.kind != QUOTED and (
            self.kind != WORD or word in RESERVED or (word in COLUMN_NAMES and word not in (*_TYPE_WORDS, "interval"))
        ):
            raise self.unexpected("a type")
        if self.kind == QUOTED and not self.words[self.at][1:-1].isidentifier():  # sqlglot would read what stands in it
            raise self.unexpected("a type")
        self.next()
        if word == "double":
            self.take("precision")
        elif word in ("character", "char"):
            self.take("varying")
        if self.word == "(" and word not in ("int", "integer", "smallint", "bigint", "real", "boolean"):
            self.next()
            self._type_arguments(word in ("decimal", "dec", "numeric"))
        if word in ("timestamp", "time") and self.word in ("with", "without") and self.peek(1) == "time":
            self.next()
            self.next()
            self.expect("zone")

    def _type_arguments(self, are_several: bool) -> None:
        """A number or several, up to the closing parenthesis."""
        while True:
            if self.kind != NUMBER:
                raise self.unexpected("a number")
            self.next()
            if not are_several or not self.take(",") or self.word == ")":
                break
        self.expect(")")


_SPECIAL: dict[str, Callable[[ExpressionReader], None]] = {
    "extract": ExpressionReader._extract,
    "substring": ExpressionReader._substring,
    "trim": ExpressionReader._trim,
    "position": ExpressionReader._position,
}
