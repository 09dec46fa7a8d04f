"""Numbers as names have them."""

from __future__ import annotations


def short(number: int) -> str:
    """
    >>> short(4), short(1000), short(50_000_000), short(1234)
    ('4', '1k', '50M', '1234')
    """
    for unit, name in ((10**6, "M"), (10**3, "k")):
        if number >= unit and number % unit == 0:
            return f"{number // unit}{name}"
    return str(number)
