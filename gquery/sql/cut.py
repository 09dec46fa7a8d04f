"""Constants cut out of a text: texts that differ in constants alone have one shape, and may share a plan.

`shape_of` gives a text's shape and its constants. `TextSlots.cut` takes constants out of the tree where the binder makes
nothing of them but a literal: of terms of WHERE, HAVING and ON, and of columns that have a name of their own. What is left in
the tree (LIMIT, names of files and of columns, ordinals, arguments of special forms) is part of what a plan was made for.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import field
from functools import lru_cache
from typing import Any

from sqlglot import exp

from gquery.expression.expr import Literal
from gquery.expression.keywords import FUNCTION_NAMES, RESERVED
from gquery.expression.slots import SlotLiteral, Slots, pin
from gquery.expression.types import VARCHAR, DType, Kind
from gquery.runtime.records import dataclass
from gquery.sql.grammar.tokens import mark_of
from gquery.sql.lexer import NUMBER, STRING, WORD, Lexed
from gquery.sql.parse import Parsed
from gquery.sql.types import cut_node, number

_ROOTS = (exp.Where, exp.Having)
_PASSED = frozenset(  # nodes whose operands are bound as any expression
    (
        exp.And, exp.Or, exp.Not, exp.Paren, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In, exp.Like,
        exp.ILike, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Case, exp.If, exp.Cast, exp.Interval, exp.Anonymous,
        exp.Where, exp.Having, exp.Alias,
    )
)  # fmt: skip
_NEVER_NAMES = RESERVED | FUNCTION_NAMES  # of columns and tables, but behind AS
_KINDS = frozenset((Kind.VARCHAR, Kind.DOUBLE, Kind.DECIMAL, Kind.DATE, Kind.TIMESTAMP))


class ShapeKey:
    """The words of a text, with types in place of constants. It is looked up several times a query: its hash is made once."""

    __slots__ = ("_hash", "words")

    def __init__(self, words: tuple[Hashable, ...]) -> None:
        self.words = words
        self._hash = hash(words)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, ShapeKey) and self.words == other.words)


@dataclass(frozen=True)
class Shape:
    """A text: ``key`` is that of all texts that differ in the values of constants alone (not in their types), ``constants`` are
    these as they are written, ``starts`` where."""

    key: ShapeKey
    constants: tuple[str, ...]
    starts: tuple[int, ...] = field(repr=False)


def shape_of(tokens: Lexed, sql: str) -> Shape:
    """The shape of a text. Names are as they are written: columns of the result have them so."""
    key: list[Hashable] = list(tokens.words)
    constants: list[str] = []
    starts: list[int] = []
    for n, kind in enumerate(tokens.kinds):
        if kind in (NUMBER, STRING):
            text = tokens.words[n]
            key[n] = type_of(text)
            constants.append(text)
            starts.append(tokens.starts[n])
        elif kind == WORD and (key[n] not in _NEVER_NAMES or (n and key[n - 1] == "as")):
            key[n] = sql[tokens.starts[n] : tokens.ends[n] + 1]
    return Shape(ShapeKey(tuple(key)), tuple(constants), tuple(starts))


@lru_cache(maxsize=1024)
def _number(text: str) -> Literal:
    return number(text)


def type_of(text: str) -> DType:
    """The type of a constant as it is written."""
    return VARCHAR if text[0] == "'" else _number(text).dtype


def constant(text: str) -> Literal:
    """The literal that a constant of a text stands for."""
    return Literal(value_of(text), VARCHAR) if text[0] == "'" else _number(text)


def value_of(text: str) -> Any:
    """Its value."""
    return text[1:-1].replace("''", "'") if text[0] == "'" else _number(text).value


class TextSlots:
    """The slots of one text. Constants that are written alike share one, parameters of one name too."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.slots = Slots()
        self.tokens: dict[int, list[int]] = {}  # by the number of a slot, which of the shape's constants it stands for
        self.parameters: dict[int, str] = {}  # by the number of a slot, its parameter
        self._literals: list[SlotLiteral] = []
        self._named: dict[str, int] = {}

    def pin(self) -> None:
        """What is made now serves no other constants."""
        pin(self._literals)

    def literal(self, number: int) -> SlotLiteral:
        return self._literals[number]

    def _new(self, name: str, literal: Literal) -> int:
        made = self._named.setdefault(name, len(self._literals))
        if made == len(self._literals):
            self._literals.append(SlotLiteral(literal.value, literal.dtype, self.slots, made))
        return made

    def parameter(self, name: str, literal: Literal) -> Literal:
        """The literal of a parameter, as a slot where its type has many values."""
        if literal.is_null or not has_slots(literal.dtype):
            return literal
        made = self._new(f"${name}", literal)
        self.parameters[made] = name
        return self._literals[made]

    def cut(self, parsed: Parsed) -> None:
        """Put slots in place of constants in the tree of the statement. Columns without a name are passed by: their text is
        their name."""
        places = {start: n for n, start in enumerate(self.shape.starts)}
        known: dict[int, bool | None] = {}
        for node in tuple(parsed.nodes):
            if type(node) is exp.Literal and node.parent is not None and _passes(node.parent, known):
                self._cut(node.parent, node, places, parsed.nodes)

    def _cut(self, parent: exp.Expr, child: exp.Expr, places: Mapping[int, int], nodes: list[exp.Expr]) -> None:
        start = (child._meta or {}).get("start")
        n = None if start is None else places.get(start)
        if n is None or (isinstance(parent, exp.Interval) and not child.is_string):
            return
        text = self.shape.constants[n]
        made = self._new(text, constant(text))
        if n not in self.tokens.setdefault(made, []):
            self.tokens[made].append(n)
        node = cut_node(made)
        node._meta = dict(child._meta or {})
        _replace(parent, child, node)
        nodes.append(node)


def _replace(parent: exp.Expr, child: exp.Expr, node: exp.Expr) -> None:
    """Puts a node in the place of a child: sqlglot's own way goes through the whole list that the child stands in, and long lists
    of constants would be gone through as often as they are long."""
    key, index = child.arg_key, child.index
    assert key is not None
    place: Any = parent.args if index is None else parent.args[key]
    at: Any = key if index is None else index
    assert place[at] is child
    place[at] = node
    node.parent, node.arg_key, node.index = parent, key, index
    child.parent = None


def _passes(node: exp.Expr, known: dict[int, bool | None]) -> bool | None:
    """Whether a literal right below a node is cut; None in a column without a name, whatever stands below that. ``known``
    holds what was said of nodes."""
    chain: list[exp.Expr] = []
    above: exp.Expr | None = node
    while above is not None and id(above) not in known:
        chain.append(above)
        above = above.parent
    is_inside = False if above is None else known[id(above)]
    for below in reversed(chain):
        known[id(below)] = is_inside = _is_inside(below, is_inside)
    return is_inside


def _is_inside(node: exp.Expr, above: bool | None) -> bool | None:
    if above is None:
        return None
    parent = node.parent
    if isinstance(parent, exp.Select) and node.arg_key == "expressions":
        if not isinstance(node, exp.Alias) or mark_of(parent.expressions[0].name):
            return None
        above = True
    elif isinstance(parent, exp.Join) and node.arg_key == "on":
        above = True
    return isinstance(node, _ROOTS) or (above and type(node) in _PASSED)


def has_slots(dtype: DType) -> bool:
    """Whether parameters of a type are slots."""
    return dtype.is_integer or dtype.kind in _KINDS


def parameter_types(literals: Mapping[str, Literal]) -> Hashable:
    """What of parameters is part of what a plan was made for: their types, and the values that are no slots."""
    return tuple(
        (name, x.dtype, None if not x.is_null and has_slots(x.dtype) else x.value) for name, x in literals.items()
    )
