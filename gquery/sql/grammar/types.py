"""Types of DuckDB's grammar, and the units of intervals.

Between `sql.grammar.tokens` and `sql.grammar.forms`, in whose forms types stand; `sql.grammar` says what this is for.
"""

from __future__ import annotations

from sqlglot import exp

from gquery.errors import NotSupportedError, point_at
from gquery.expression.keywords import COLUMN_NAMES, RESERVED
from gquery.sql.grammar import nodes
from gquery.sql.grammar import query_nodes as query_nodes
from gquery.sql.grammar.tokens import TokenReader
from gquery.sql.lexer import NUMBER, QUOTED, STRING, WORD

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
UNITS = frozenset(f"{u}{s}" for u in _SINGULAR for s in ("", "s")) | {
    "century", "centuries", "millennium", "millennia"
}  # fmt: skip
_UP_TO = {
    "year": ("month",), "day": ("hour", "minute", "second"), "hour": ("minute", "second"), "minute": ("second",),
}  # fmt: skip
_TYPE_WORDS = frozenset((
    "int", "integer", "smallint", "bigint", "real", "float", "decimal", "dec", "numeric", "boolean", "char", "character",
    "varchar", "timestamp", "time", "bit",
))  # fmt: skip
_LONG_TYPES = _TYPE_WORDS | {"double"}  # behind which more may stand before the text of a constant


class TypeReader(TokenReader):
    """Reads the names of types."""

    def _is_typed_constant(self) -> bool:
        """``DATE '2020-01-01'``, ``DECIMAL(5, 2) '1.5'``, ``DOUBLE PRECISION '1'``."""
        at = self.at + 1
        if self.word not in _LONG_TYPES and not (at < self.behind and self.kinds[at] == STRING):
            return False  # most
        if self.kind not in (WORD, QUOTED) or (self.kind == WORD and self.word in RESERVED):
            return False
        if self.word in ("double", "character") and self.peek(1) in ("precision", "varying"):
            at += 1
        elif self.word in _TYPE_WORDS and self.peek(1) == "(":
            while at < self.behind and self.words[at] != ")":
                at += 1
            at += 1
        elif self.word == "timestamp" and self.peek(1) in ("with", "without") and self.peek(2) == "time":
            at += 3
        return at < self.behind and self.kinds[at] == STRING

    def _type(self) -> exp.Expr | None:
        """The name of a type, with what belongs to it; its node where it is one word, with numbers behind it or none."""
        word, first = self.word, self.at
        arguments: list[exp.Expr] | None = []
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
            arguments = self._type_arguments(word in ("decimal", "dec", "numeric"))
            first = self.at - 1  # the one word ends here
        if word in ("timestamp", "time") and self.word in ("with", "without") and self.peek(1) == "time":
            self.next()
            self.next()
            self.expect("zone")
        while self.word == "[" and self.peek(1) == "]":  # a list of such values
            self.next()
            self.next()
        if self.word == "[" and self.kinds[self.at + 1] == NUMBER and self.peek(2) == "]":
            raise self.no_type("type with a fixed number of values; lists have none")
        if self.word == "[":  # no element or slice of what is cast
            self.next()
            if self.kind == NUMBER:
                self.next()
            raise self.unexpected("]")
        return query_nodes.data_type(word, arguments) if self.at == first + 1 else None

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

    def _type_arguments(self, are_several: bool) -> list[exp.Expr] | None:
        """A number or several, up to the closing parenthesis; their nodes."""
        found: list[exp.Expr | None] = []
        while True:
            if self.kind != NUMBER:
                raise self.unexpected("a number")
            start = self.starts[self.at]
            found.append(nodes.constant(self.sql[start : self.ends[self.at] + 1], NUMBER, start))
            self.next()
            if not are_several or not self.take(",") or self.word == ")":
                break
        self.expect(")")
        return query_nodes.whole(found)

    def _units(self) -> None:
        """``DAY`` or ``DAY TO HOUR`` behind the type INTERVAL: they change nothing in DuckDB, and sqlglot does not see them."""
        ends = _UP_TO.get(self.word.removesuffix("s"), ())
        if self.word in UNITS:
            self.say()
            if self.word == "to" and self.peek(1).removesuffix("s") in ends:
                self.say()
                self.say()

    def _behind_interval(self) -> None:
        """An alias without AS: sqlglot takes one like ``w`` or ``d`` for a unit, which DuckDB has whole words for."""
        if self.is_bare_alias():
            self.say_before("as")
