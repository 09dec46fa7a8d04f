"""The 22 queries of TPC-H with the validation values of their parameters, one a file, and the tables that they read."""

from __future__ import annotations

from pathlib import Path

from gquery import InterfaceError

TABLES = ("region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem")
NUMBERS = tuple(range(1, 23))


def sql(number: int) -> str:
    """The text of query 1 to 22."""
    return (Path(__file__).parent / f"q{number:02d}.sql").read_text().strip().removesuffix(";")


def parse_numbers(text: str) -> tuple[int, ...]:
    """The query numbers that a list of numbers and ranges names.

    >>> parse_numbers("1,3-5")
    (1, 3, 4, 5)
    """
    numbers: list[int] = []
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if not first.isdigit() or not (last or first).isdigit():
            raise InterfaceError(f'"{part}" is no query number or range; write 1,3-5')
        numbers += range(int(first), int(last or first) + 1)
    unknown = [n for n in numbers if n not in NUMBERS]
    if unknown:
        raise InterfaceError(f"TPC-H has queries 1 to 22, not {unknown[0]}")
    return tuple(numbers)
