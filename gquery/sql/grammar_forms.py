"""What has a syntax of its own in expressions: CASE, CAST, EXTRACT and the like, intervals, lists, structs, types.

Between `sql.grammar_tokens` and `sql.grammar_values`, whose expressions stand in these forms; `sql.grammar` says what this is
for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from sqlglot import exp

from gquery.errors import NotSupportedError, point_at
from gquery.expression.keywords import COLUMN_NAMES, RESERVED
from gquery.sql import grammar_nodes as nodes
from gquery.sql.grammar_nodes import COMPARE, OR
from gquery.sql.grammar_tokens import TokenReader
from gquery.sql.lexer import NUMBER, QUOTED, STRING, WORD

_FRAMES = ("rows", "range", "groups")
_SIDES = ("preceding", "following")
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
_UP_TO = {
    "year": ("month",), "day": ("hour", "minute", "second"), "hour": ("minute", "second"), "minute": ("second",),
}  # fmt: skip
_TYPE_WORDS = frozenset((
    "int", "integer", "smallint", "bigint", "real", "float", "decimal", "dec", "numeric", "boolean", "char", "character",
    "varchar", "timestamp", "time", "bit",
))  # fmt: skip


class FormReader(TokenReader, ABC):
    """Reads forms whose parts are expressions."""

    @abstractmethod
    def expression(self, least: int = OR, star: bool = False, is_simple: bool = False) -> exp.Expr | None:
        """An expression of operators that bind at least that tightly; its node where it is a plain one."""

    @abstractmethod
    def expressions(self, trailing: bool = False) -> list[exp.Expr | None]:
        """Expressions with commas between them."""

    @abstractmethod
    def order(self) -> None:
        """ORDER BY."""

    def _end_typed(self, first: int) -> None:
        """The end of a constant whose type stands before it."""
        if self.word == "[":
            raise self.unexpected("parentheses")
        if self.word in ("::", "at"):
            self.reading.typed[self.starts[first]] = self.ends[self.at - 1]

    def _case(self) -> exp.Expr | None:
        start = self.begin()
        self.next()
        has_value, has_default = self.word != "when", False
        value = self.expression() if has_value else None
        self.expect("when")
        branches: list[tuple[exp.Expr | None, exp.Expr | None]] = []
        while True:
            branch = self.begin()
            test = self.expression()
            self.expect("then")
            branches.append((test, self.expression()))
            self.end(branch)
            if not self.take("when"):
                break
        default = None
        if self.take("else"):
            has_default, default = True, self.expression()
        self.expect("end")
        self.end(start)
        is_whole = (value is not None or not has_value) and (default is not None or not has_default)
        return nodes.case(value, branches, default) if is_whole else None

    def _cast(self) -> None:
        self.next()
        self.expect("(")
        self.expression()
        self.expect("as")
        self._type()
        self.expect(")")

    # These four are forms of SQL's own, or calls as any other where their words are left out; which it was.

    def _extract(self) -> bool:
        if self.kind != STRING:
            self.label()
        else:
            self.next()
        self.expect("from")
        self.expression()
        return False

    def _substring(self) -> bool:
        start = self.begin()
        self.expression()
        is_form = self.word in ("from", "for")
        if is_form:
            word = self.word
            self.next()
            self.expression()
            if self.take("for" if word == "from" else "from"):
                self.expression()
        else:
            while self.take(","):
                self.expression()
        self.end(start)
        return not is_form

    def _trim(self) -> bool:
        start = self.begin()
        is_form = self.word in ("both", "leading", "trailing")
        if is_form:
            self.next()
        if self.take("from"):
            is_form = True
            self.expression()
        else:
            self.expression()
            if self.take("from"):
                is_form = True
                self.expression()
        while self.take(","):
            self.expression()
        self.end(start)
        return not is_form

    def _position(self) -> bool:
        start = self.begin()
        self.expression(COMPARE, is_simple=True)
        self.expect("in")
        self.expression(COMPARE, is_simple=True)
        self.end(start)
        return False

    def windows_and_qualify(self) -> None:
        """``[WINDOW name AS (...), ...] [QUALIFY predicate]``."""
        is_next = self.word == "window"
        while is_next:
            self.next()
            start = self.begin()
            self.name(leaf=True)
            self.expect("as")
            self.window()
            self.end(start)
            is_next = self.word == ","
        if self.take("qualify"):
            self.expression()

    def window(self) -> None:
        """``([name] [PARTITION BY ...] [ORDER BY ...] [frame])``, what stands behind OVER and in a WINDOW clause."""
        self.expect("(")
        if self.word not in (")", "order") and self.word not in _FRAMES and not self._is_partition():
            self.name(leaf=True)
        if self._is_partition():
            self.next()
            self.next()
            self.expressions()
        if self.word == "order":
            self.order()
        if self.word in _FRAMES:
            self._frame()
        self.expect(")")

    def _is_partition(self) -> bool:
        return self.word == "partition" and self.peek(1) == "by"

    def _frame(self) -> None:
        """``ROWS bound``, ``ROWS BETWEEN bound AND bound``, with what is excluded."""
        self.reading.frames.add(self.starts[self.at])
        self.next()
        if self.take("between"):
            self._bound()
            self.expect("and")
        self._bound()
        if self.take("exclude"):
            if self.take("current"):
                self.expect("row")
            elif self.take("no"):
                self.expect("others")
            elif not self.take("group"):
                self.expect("ties", "CURRENT ROW, GROUP, TIES or NO OTHERS")

    def _bound(self) -> None:
        if self.word == "current" and self.peek(1) == "row":
            self.next()
            self.next()
            return
        if self.word == "unbounded" and self.peek(1) in _SIDES:
            self.next()
        else:
            self.expression()
        if self.word not in _SIDES:
            raise self.unexpected("PRECEDING or FOLLOWING")
        self.next()

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
        else:
            self._behind_interval()
        self._end_typed(first)

    def _units(self) -> None:
        """``DAY`` or ``DAY TO HOUR`` behind the type INTERVAL: they change nothing in DuckDB, and sqlglot does not see them."""
        ends = _UP_TO.get(self.word.removesuffix("s"), ())
        if self.word in _UNITS:
            self.say()
            if self.word == "to" and self.peek(1).removesuffix("s") in ends:
                self.say()
                self.say()

    def _behind_interval(self) -> None:
        """An alias without AS: sqlglot takes one like ``w`` or ``d`` for a unit, which DuckDB has whole words for."""
        if self.is_bare_alias():
            self.say_before("as")

    def _list(self) -> None:
        self.next()
        if not self.take("]"):
            if len(self.expressions()) == 1 and self.take("for"):
                self.name(leaf=True)
                self.expect("in")
                self.expression()
                if self.take("if"):
                    self.expression()
            self.expect("]")

    def _struct(self) -> None:
        """``{'key': value}``; the keys of a map, ``MAP {key: value}``, are no labels but expressions."""
        has_labels = not self.take("map")
        self.next()
        if not has_labels and self.take("}"):
            return
        while True:
            if not has_labels:
                self.expression()
            elif self.kind != STRING:
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
        if word == "interval":
            self._units()
        if word == "interval" or self.words[self.at - 1].lower() == '"interval"':
            self._behind_interval()
        if word == "double":
            self.take("precision")
        elif word in ("character", "char"):
            self.take("varying")
        if word in ("struct", "map") and self.word == "(":
            self._types_inside(word == "struct")
        elif self.word == "(" and word == "enum":
            raise self.no_type("type ENUM; VARCHAR with a CHECK")
        elif self.word == "(" and word not in ("int", "integer", "smallint", "bigint", "real", "boolean"):
            self.next()
            self._type_arguments(word in ("decimal", "dec", "numeric"))
        if word in ("timestamp", "time") and self.word in ("with", "without") and self.peek(1) == "time":
            self.next()
            self.next()
            self.expect("zone")
        while self.word == "[" and self.peek(1) == "]":  # a list of such values
            self.next()
            self.next()
        if self.word == "[" and self.peek(2) == "]":
            raise self.no_type("type with a fixed number of values; lists have none")

    def no_type(self, what: str) -> NotSupportedError:
        """The error of a type that gquery does not have, at the next token."""
        return NotSupportedError(f"not supported: {what}\n{point_at(self.sql, self.starts[self.at])}")

    def _types_inside(self, has_labels: bool) -> None:
        """The types in a struct, each behind a name, or in a map."""
        self.next()
        while True:
            if has_labels:
                self.label(leaf=True)
            self._type()
            if not self.take(","):
                break
        self.expect(")")

    def _type_arguments(self, are_several: bool) -> None:
        """A number or several, up to the closing parenthesis."""
        while True:
            if self.kind != NUMBER:
                raise self.unexpected("a number")
            self.next()
            if not are_several or not self.take(",") or self.word == ")":
                break
        self.expect(")")

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

    def _pairs(self, what: Callable[[], object]) -> None:
        """``(x AS name, ...)``, or one without parentheses."""
        if not self.take("("):
            what()
            self.expect("as")
            self.name(leaf=True)
            return
        while True:
            what()
            self.expect("as")
            self.name(leaf=True)
            if not self.take(",") or self.word == ")":
                break
        self.expect(")")


SPECIAL: dict[str, Callable[[FormReader], bool]] = {
    "extract": FormReader._extract,
    "substring": FormReader._substring,
    "trim": FormReader._trim,
    "position": FormReader._position,
}
