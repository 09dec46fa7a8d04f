"""How tightly operators bind, as in DuckDB's grammar."""

from __future__ import annotations

# Loosest first.
OR, AND, NOT, IS, COMPARE, LIKE, OTHER, ADD, MULTIPLY, POWER, MINUS = range(1, 12)
INFIX = {
    "or": OR, "and": AND,
    "=": COMPARE, "==": COMPARE, "<>": COMPARE, "!=": COMPARE, "<": COMPARE, "<=": COMPARE, ">": COMPARE,
    ">=": COMPARE,
    "||": OTHER, "&": OTHER, "|": OTHER, "<<": OTHER, ">>": OTHER, "~": OTHER, "!~": OTHER, "~~": OTHER,
    "!~~": OTHER, "~~*": OTHER, "!~~*": OTHER, "~~~": OTHER, "^@": OTHER,
    "+": ADD, "-": ADD, "*": MULTIPLY, "/": MULTIPLY, "//": MULTIPLY, "%": MULTIPLY, "^": POWER, "**": POWER,
}  # fmt: skip
