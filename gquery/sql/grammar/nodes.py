"""Operators of DuckDB's grammar, and nodes of sqlglot's tree for plain expressions, made while the grammar is read.

sqlglot's parser goes through some twenty functions for an operand, whatever it is. The reader of the grammar goes through the
same tokens before it, and knows what belongs together. So it makes the nodes of what has no syntax of its own (names, constants,
operators, calls, CASE, IN, BETWEEN, LIKE), and sqlglot is given one name to read in place of all that (`Made`); anything else
gives None here and is sqlglot's. The nodes are those that it would have made, and a test compares them
(`tests/sql/test_made_nodes.py`). `gquery.sql.grammar.query_nodes` has those of queries.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from sqlglot import exp

from gquery.functions.registry import OPERATORS
from gquery.runtime.records import dataclass
from gquery.sql.lexer import NUMBER, QUOTED, STRING, WORD
from gquery.sql.tokens import is_plain_name, is_plain_number

# how tightly operators bind, loosest first
ARROW, OR, AND, NOT, IS, COMPARE, LIKE, OTHER, ADD, MULTIPLY, POWER, MINUS = range(1, 13)
INFIX = {
    "->": ARROW, "->>": ARROW, "or": OR, "and": AND,
    "=": COMPARE, "==": COMPARE, "<>": COMPARE, "!=": COMPARE, "<": COMPARE, "<=": COMPARE, ">": COMPARE,
    ">=": COMPARE,
    "||": OTHER, "&": OTHER, "|": OTHER, "<<": OTHER, ">>": OTHER, "~": OTHER, "!~": OTHER, "~~": OTHER,
    "!~~": OTHER, "~~*": OTHER, "!~~*": OTHER, "~~~": OTHER, "^@": OTHER,
    "+": ADD, "-": ADD, "*": MULTIPLY, "/": MULTIPLY, "//": MULTIPLY, "%": MULTIPLY, "^": POWER, "**": POWER,
}  # fmt: skip
_STANDS_FOR: Final = "\x1d"  # begins the name that sqlglot reads in place of an expression
BINARY: dict[str, type[exp.Binary]] = {
    "or": exp.Or, "and": exp.And, "=": exp.EQ, "<>": exp.NEQ, "!=": exp.NEQ, "<": exp.LT, "<=": exp.LTE, ">": exp.GT,
    ">=": exp.GTE, "+": exp.Add, "-": exp.Sub, "*": exp.Mul, "/": exp.Div, "%": exp.Mod, "||": exp.DPipe,
}  # fmt: skip
_TRUTHS: dict[str, bool] = {"true": True, "false": False}
_ATOMS = (exp.Column, exp.Literal)
# sides of a comparison, and what IS is asked of, around which sqlglot puts no parentheses
_VALUES = frozenset((
    exp.Column, exp.Literal, exp.Anonymous, exp.Paren, exp.Case, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.DPipe,
    exp.Neg, exp.Null, exp.Boolean, exp.Subquery, exp.Cast, exp.Extract, exp.Substring, exp.Filter, exp.Window,
))  # fmt: skip
_COMPARISONS = frozenset((exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE))
_ESCAPED = re.compile(r"[\\\n]")


@dataclass(frozen=True, slots=True)
class Made:
    """What sqlglot reads as one name, an expression or several with commas between them: where it begins and ends in the text,
    the first of its leaves and the one behind the last (see `Reading`), and the trees."""

    start: int
    end: int
    first: int
    behind: int
    trees: list[exp.Expr]


def name_of(number: int) -> str:
    """The name that stands for number ``number`` of what was made."""
    return f"{_STANDS_FOR}{number}"


def number_of(node: exp.Expr) -> int | None:
    """Which of what was made a node of sqlglot's stands for; None for a node that the text has."""
    if type(node) is not exp.Column:
        return None
    name = node.args["this"]
    text = name.args["this"] if type(name) is exp.Identifier else ""
    return int(text[1:]) if text[:1] == _STANDS_FOR else None


def put_in_place(nodes: Sequence[exp.Expr], made: Sequence[Made]) -> None:
    """Puts the trees of what was made in the places of the nodes of those names. The nodes still know their parents."""
    count, lists = 0, {}
    for node in reversed(nodes):  # of those in one list the last first
        if (n := number_of(node)) is None:
            continue
        trees, parent, key, index = made[n].trees, node.parent, node.arg_key, node.index
        assert parent is not None and key is not None
        count += 1
        if index is None:
            (parent.args[key],) = trees
        else:
            parent.args[key][index : index + 1] = trees
            lists[id(parent), key] = parent
        for tree in trees:
            tree.parent, tree.arg_key = parent, key
    assert count == len(made), "sqlglot did not read each name as a column"
    for (_, key), parent in lists.items():
        for n, node in enumerate(parent.args[key]):
            node.index = n


def node(kind: type[exp.Expr], **parts: exp.Expr) -> exp.Expr:
    """A node of parts that are nodes: what its class does in twice the time."""
    made = kind()
    made.args = parts
    for key, part in parts.items():
        part.parent, part.arg_key = made, key
    return made


def is_worth(tree: exp.Expr) -> bool:
    """Whether an expression is more than a name, which sqlglot reads as fast as what would stand for it."""
    return not isinstance(tree, _ATOMS)


def identifier(text: str, kind: str, word: str, start: int, is_field: bool = False) -> exp.Identifier | None:
    """A name as it is typed; ``word``: in lower case. None for one that may mean something else to sqlglot, but for a
    ``field`` behind a dot."""
    if kind == QUOTED and text[0] == '"':
        made = exp.Identifier(this=text[1:-1].replace('""', '"'), quoted=True)
    elif kind == WORD and (is_field or is_plain_name(word)):
        made = exp.Identifier(this=text, quoted=False)
    else:
        return None
    made._meta = {"start": start, "end": start + len(text) - 1}
    return made


def constant(text: str, kind: str, start: int) -> exp.Expr | None:
    """A number or a text."""
    if kind == NUMBER and is_plain_number(text):
        made = exp.Literal(this=text, is_string=False)
    elif kind == STRING and text[0] == "'" and not _ESCAPED.search(text):
        made = exp.Literal(this=text[1:-1].replace("''", "'"), is_string=True)
    else:
        return None
    made._meta = {"start": start, "end": start + len(text) - 1}
    return made


def word(text: str) -> exp.Expr | None:
    """NULL, TRUE or FALSE."""
    return exp.Null() if text == "null" else exp.Boolean(this=_TRUTHS[text])


def column(name: exp.Identifier | None, table: exp.Identifier | None) -> exp.Expr | None:
    if name is None:
        return None
    return node(exp.Column, this=name) if table is None else node(exp.Column, this=name, table=table)


def call(name: str, start: int, args: Sequence[exp.Expr | None] | None) -> exp.Expr | None:
    """A call of a function by its name as it is typed, "" for one in quotes. One that no text may name is sqlglot's, as the error
    for it points to its node."""
    if args is None or None in args or not name or name[0] == "_" or name.lower() in OPERATORS:
        return None
    made = exp.Anonymous(this=name, expressions=list(args))
    made._meta = {"start": start, "end": start + len(name) - 1}
    return made


def star(start: int) -> exp.Expr:
    """The star of ``count(*)``."""
    made = exp.Star()
    made._meta = {"start": start, "end": start}
    return made


def distinct(args: Sequence[exp.Expr | None]) -> exp.Expr | None:
    """The arguments of a call behind DISTINCT."""
    return None if None in args else exp.Distinct(expressions=list(args))


def binary(operator: str, left: exp.Expr | None, right: exp.Expr | None) -> exp.Expr | None:
    """Two values with an operator between them."""
    kind = BINARY.get(operator)
    if kind is None or left is None or right is None:
        return None
    if kind in _COMPARISONS and not (type(left) in _VALUES and type(right) in _VALUES):
        return None
    made = node(kind, this=left, expression=right)
    if kind is exp.DPipe:
        made.args["safe"] = True
    return made


def negated(made: exp.Expr | None, is_negated: bool = True) -> exp.Expr | None:
    """NOT of a condition."""
    return node(exp.Not, this=made) if is_negated and made is not None else made


def negative(made: exp.Expr | None) -> exp.Expr | None:
    """A value with a minus before it."""
    return None if made is None or isinstance(made, exp.Neg) else node(exp.Neg, this=made)


def parentheses(inner: Sequence[exp.Expr | None]) -> exp.Expr | None:
    """One value in parentheses: rows are sqlglot's."""
    return node(exp.Paren, this=inner[0]) if len(inner) == 1 and inner[0] is not None else None


def is_(made: exp.Expr | None, what: str, is_negated: bool) -> exp.Expr | None:
    """IS NULL, IS TRUE and the like."""
    if made is None or type(made) not in _VALUES or (what != "null" and what not in _TRUTHS):
        return None
    return negated(exp.Is(this=made, expression=word(what)), is_negated)


def like(operator: str, left: exp.Expr | None, right: exp.Expr | None, is_negated: bool) -> exp.Expr | None:
    """LIKE or ILIKE, without ESCAPE."""
    if left is None or right is None or operator not in ("like", "ilike"):
        return None
    made = node(exp.Like if operator == "like" else exp.ILike, this=left, expression=right)
    if is_negated:
        made.args["negate"] = True
    return made


def alias(value: exp.Expr | None, name: exp.Identifier | None) -> exp.Expr | None:
    """An entry of a SELECT list with its name."""
    return None if value is None or name is None else node(exp.Alias, this=value, alias=name)


def is_in(
    left: exp.Expr | None, items: Sequence[exp.Expr | None] | exp.Expr | None, is_negated: bool
) -> exp.Expr | None:
    """IN with a list or a query."""
    if left is None or items is None:
        return None
    if isinstance(items, exp.Expr):
        return negated(node(exp.In, this=left, query=node(exp.Subquery, this=items)), is_negated)
    if None in items:
        return None
    return negated(exp.In(this=left, expressions=list(items)), is_negated)


def between(value: exp.Expr | None, low: exp.Expr | None, high: exp.Expr | None, is_negated: bool) -> exp.Expr | None:
    if value is None or low is None or high is None:
        return None
    return negated(node(exp.Between, this=value, low=low, high=high), is_negated)


def case(
    value: exp.Expr | None, branches: Sequence[tuple[exp.Expr | None, exp.Expr | None]], default: exp.Expr | None
) -> exp.Expr | None:
    """CASE with its branches, each a test or a value, and a result."""
    ifs: list[exp.Expr] = []
    for test, result in branches:
        if test is None or result is None:
            return None
        ifs.append(node(exp.If, this=test, true=result))
    return exp.Case(this=value, ifs=ifs, default=default)
