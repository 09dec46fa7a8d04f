"""What has a syntax of its own in expressions: CASE, CAST, EXTRACT and the like, intervals, lists, structs, windows.

Between `sql.grammar.types` and `sql.grammar.values`, whose expressions stand in these forms; `sql.grammar` says what this is
for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from sqlglot import exp

from gquery.sql.grammar import nodes
from gquery.sql.grammar import query_nodes as query_nodes
from gquery.sql.grammar.nodes import COMPARE, OR
from gquery.sql.grammar.types import UNITS, TypeReader
from gquery.sql.lexer import NUMBER, STRING

_FRAMES = ("rows", "range", "groups")
_SIDES = ("preceding", "following")

Special = exp.Expr | list[exp.Expr | None] | None
"""The node of a form, or the arguments of a call; None where there is neither."""


class FormReader(TypeReader, ABC):
    """Reads forms whose parts are expressions."""

    @abstractmethod
    def expression(self, least: int = OR, star: bool = False, is_simple: bool = False) -> exp.Expr | None:
        """An expression of operators that bind at least that tightly; its node where it is a plain one."""

    @abstractmethod
    def expressions(self, trailing: bool = False) -> list[exp.Expr | None]:
        """Expressions with commas between them."""

    @abstractmethod
    def order(self) -> exp.Expr | None:
        """ORDER BY; its node where all of it is plain."""

    def _end_typed(self, first: int) -> bool:
        """The end of a constant whose type stands before it. Whether nothing stands behind it that sqlglot would read first."""
        if self.word == "[":
            raise self.unexpected("parentheses")
        if self.word in ("::", "at"):
            self.reading.typed[self.starts[first]] = self.ends[self.at - 1]
            return False
        return True

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

    def _cast(self) -> exp.Expr | None:
        is_try = self.word == "try_cast"
        self.next()
        self.expect("(")
        value = self.expression()
        self.expect("as")
        to = self._type()
        self.expect(")")
        return None if is_try else query_nodes.cast(value, to)

    # These four are forms of SQL's own, or calls as any other where their words are left out: then the arguments are told.

    def _extract(self) -> Special:
        part = ""
        if self.kind != STRING:
            part = self.word
            self.label()
        else:
            self.next()
        self.expect("from")
        return query_nodes.extract(part, self.expression())

    def _substring(self) -> Special:
        start = self.begin()
        value = self.expression()
        made: Special = None
        if (word := self.word) in ("from", "for"):
            self.next()
            place, length = self.expression(), None
            if self.take("for" if word == "from" else "from"):
                length = self.expression()
            made = query_nodes.substring(value, place, length) if word == "from" else None
        else:
            made = [value]
            while self.take(","):
                made.append(self.expression())
        self.end(start)
        return made

    def _trim(self) -> Special:
        start = self.begin()
        is_form = self.word in ("both", "leading", "trailing")
        if is_form:
            self.next()
        if self.take("from"):
            is_form = True
            args = [self.expression()]
        else:
            args = [self.expression()]
            if self.take("from"):
                is_form = True
                self.expression()
        while self.take(","):
            args.append(self.expression())
        self.end(start)
        return None if is_form else args

    def _position(self) -> Special:
        start = self.begin()
        self.expression(COMPARE, is_simple=True)
        self.expect("in")
        self.expression(COMPARE, is_simple=True)
        self.end(start)
        return None

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

    def window(self, call: exp.Expr | None = None) -> exp.Expr | None:
        """``([name] [PARTITION BY ...] [ORDER BY ...] [frame])``, what stands behind OVER and in a WINDOW clause. The node of a
        call with that, where there is neither a name nor a frame."""
        self.expect("(")
        partition: list[exp.Expr] | None = []
        order: exp.Expr | None = None
        if self.word not in (")", "order") and self.word not in _FRAMES and not self._is_partition():
            self.name(leaf=True)
            call = None
        if self._is_partition():
            self.next()
            self.next()
            partition = query_nodes.whole(self.expressions())
        if self.word == "order" and (order := self.order()) is None:
            call = None
        if self.word in _FRAMES:
            self._frame()
            call = None
        self.expect(")")
        return query_nodes.window(call, partition, order)

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

    def _interval(self) -> exp.Expr | None:
        """``INTERVAL amount unit``: sqlglot splits a text's words, so that it is no leaf."""
        first, unit, amount = self.at, "", None
        self.next()
        is_text = self.kind == STRING
        if is_text:
            start = self.starts[self.at]
            amount = nodes.constant(self.sql[start : self.ends[self.at] + 1], STRING, start)
        if self.kind == NUMBER and not self.words[self.at].replace("_", "").isdigit():
            raise self.unexpected("an integer")
        if self.take("("):
            self.expression()
            self.expect(")")
        else:
            self.next()
        if self.word in UNITS:
            unit = self.word
            self.next()
        elif not is_text:
            raise self.unexpected("a unit")
        else:
            self._behind_interval()
        is_plain = self._end_typed(first)
        return query_nodes.interval(amount, unit) if is_plain else None

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

    def star(self) -> bool:
        """What may follow ``*``: EXCLUDE, REPLACE, RENAME. Whether none does."""
        first = self.at
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
        return self.at == first

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


SPECIAL: dict[str, Callable[[FormReader], Special]] = {
    "extract": FormReader._extract,
    "substring": FormReader._substring,
    "trim": FormReader._trim,
    "position": FormReader._position,
}
