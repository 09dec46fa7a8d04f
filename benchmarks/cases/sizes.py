"""Numbers as the names of cases and the command have them."""

from __future__ import annotations


def short(value: int) -> str:
    """
    >>> short(4), short(1000), short(50_000_000), short(1234)
    ('4', '1k', '50M', '1234')
    """
    for unit, name in ((10**6, "M"), (10**3, "k")):
        if value >= unit and value % unit == 0:
            return f"{value // unit}{name}"
    return str(value)


def number(text: str) -> int:
    """
    >>> number("200000"), number("1e6"), number("100M"), number("5k")
    (200000, 1000000, 100000000, 5000)
    """
    unit = {"k": 10**3, "m": 10**6}.get(text[-1:].lower(), 1)
    return int(float(text if unit == 1 else text[:-1]) * unit)
