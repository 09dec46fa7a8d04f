"""Random parameters of the 22 queries, drawn as the specification says (clauses 2.4.1.3 to 2.4.22.3).

A query's text holds the validation values. `POINTS` names the places where they stand, with what stands there instead;
`DRAWS` draws values for these. A seed and the number of a stream give the same values on every machine.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

from tpch import queries
from tpch.words import (
    BRANDS,
    COLORS,
    COMMENT_WORDS,
    CONTAINERS,
    COUNTRY_CODES,
    MODES,
    NATIONS,
    REGIONS,
    SEGMENTS,
    TYPE_SYLLABLES,
    TYPES,
)

Values = dict[str, str]

# by query: the text of a validation value, and what it becomes; all are replaced at once, wherever they stand
POINTS: dict[int, dict[str, str]] = {
    1: {"interval '90' day": "interval '{delta}' day"},
    2: {"p_size = 15": "p_size = {size}", "'%BRASS'": "'%{type}'", "'EUROPE'": "'{region}'"},
    3: {"'BUILDING'": "'{segment}'", "'1995-03-15'": "'{date}'"},
    4: {"'1993-07-01'": "'{date}'"},
    5: {"'ASIA'": "'{region}'", "'1994-01-01'": "'{date}'"},
    6: {"'1994-01-01'": "'{date}'", "0.06": "{discount}", "l_quantity < 24": "l_quantity < {quantity}"},
    7: {"'FRANCE'": "'{nation1}'", "'GERMANY'": "'{nation2}'"},
    8: {"'BRAZIL'": "'{nation}'", "'AMERICA'": "'{region}'", "'ECONOMY ANODIZED STEEL'": "'{type}'"},
    9: {"'%green%'": "'%{color}%'"},
    10: {"'1993-10-01'": "'{date}'"},
    11: {"'GERMANY'": "'{nation}'", "0.0001000000": "{fraction}"},
    12: {"'MAIL'": "'{mode1}'", "'SHIP'": "'{mode2}'", "'1994-01-01'": "'{date}'"},
    13: {"'%special%requests%'": "'%{word1}%{word2}%'"},
    14: {"'1995-09-01'": "'{date}'"},
    15: {"'1996-01-01'": "'{date}'"},
    16: {
        "'Brand#45'": "'{brand}'",
        "'MEDIUM POLISHED%'": "'{type}%'",
        "(49, 14, 23, 45, 19, 3, 36, 9)": "({sizes})",
    },
    17: {"'Brand#23'": "'{brand}'", "'MED BOX'": "'{container}'"},
    18: {"> 300": "> {quantity}"},
    19: {
        "'Brand#12'": "'{brand1}'",
        "'Brand#23'": "'{brand2}'",
        "'Brand#34'": "'{brand3}'",
        "l_quantity >= 1": "l_quantity >= {quantity1}",
        "l_quantity <= 1 + 10": "l_quantity <= {quantity1} + 10",
        "l_quantity >= 10": "l_quantity >= {quantity2}",
        "l_quantity <= 10 + 10": "l_quantity <= {quantity2} + 10",
        "l_quantity >= 20": "l_quantity >= {quantity3}",
        "l_quantity <= 20 + 10": "l_quantity <= {quantity3} + 10",
    },
    20: {"'forest%'": "'{color}%'", "'1994-01-01'": "'{date}'", "'CANADA'": "'{nation}'"},
    21: {"'SAUDI ARABIA'": "'{nation}'"},
    22: {"('13', '31', '23', '29', '30', '18', '17')": "({codes})"},
}


def _month(r: Random, first: int, last: int) -> str:
    """The first day of a month, counted from January 1993."""
    month = r.randint(first, last)
    return f"{1993 + month // 12}-{month % 12 + 1:02d}-01"


def _year(r: Random) -> str:
    return f"{r.randint(1993, 1997)}-01-01"


def _nation(r: Random) -> str:
    return r.choice(list(NATIONS))


def _numbered(name: str, values: list[str]) -> Values:
    return {f"{name}{n}": value for n, value in enumerate(values, 1)}


def _query_2(r: Random, sf: float) -> Values:
    return {"size": str(r.randint(1, 50)), "type": r.choice(TYPE_SYLLABLES[2]), "region": r.choice(REGIONS)}


def _query_3(r: Random, sf: float) -> Values:
    return {"segment": r.choice(SEGMENTS), "date": f"1995-03-{r.randint(1, 31):02d}"}


def _query_6(r: Random, sf: float) -> Values:
    return {"date": _year(r), "discount": f"0.0{r.randint(2, 9)}", "quantity": str(r.randint(24, 25))}


def _query_8(r: Random, sf: float) -> Values:
    nation = _nation(r)
    return {"nation": nation, "region": REGIONS[NATIONS[nation]], "type": r.choice(TYPES)}


def _query_16(r: Random, sf: float) -> Values:
    kind = f"{r.choice(TYPE_SYLLABLES[0])} {r.choice(TYPE_SYLLABLES[1])}"
    return {"brand": r.choice(BRANDS), "type": kind, "sizes": ", ".join(map(str, r.sample(range(1, 51), 8)))}


def _query_19(r: Random, sf: float) -> Values:
    quantities = [str(r.randint(low, high)) for low, high in ((1, 10), (10, 20), (20, 30))]
    return _numbered("brand", r.choices(BRANDS, k=3)) | _numbered("quantity", quantities)


DRAWS: dict[int, Callable[[Random, float], Values]] = {
    1: lambda r, sf: {"delta": str(r.randint(60, 120))},
    2: _query_2,
    3: _query_3,
    4: lambda r, sf: {"date": _month(r, 0, 57)},
    5: lambda r, sf: {"region": r.choice(REGIONS), "date": _year(r)},
    6: _query_6,
    7: lambda r, sf: _numbered("nation", r.sample(list(NATIONS), 2)),
    8: _query_8,
    9: lambda r, sf: {"color": r.choice(COLORS)},
    10: lambda r, sf: {"date": _month(r, 1, 24)},
    11: lambda r, sf: {"nation": _nation(r), "fraction": f"{0.0001 / sf:.10f}"},
    12: lambda r, sf: _numbered("mode", r.sample(MODES, 2)) | {"date": _year(r)},
    13: lambda r, sf: _numbered("word", [r.choice(words) for words in COMMENT_WORDS]),
    14: lambda r, sf: {"date": _month(r, 0, 59)},
    15: lambda r, sf: {"date": _month(r, 0, 57)},
    16: _query_16,
    17: lambda r, sf: {"brand": r.choice(BRANDS), "container": r.choice(CONTAINERS)},
    18: lambda r, sf: {"quantity": str(r.randint(312, 315))},
    19: _query_19,
    20: lambda r, sf: {"color": r.choice(COLORS), "date": _year(r), "nation": _nation(r)},
    21: lambda r, sf: {"nation": _nation(r)},
    22: lambda r, sf: {"codes": ", ".join(f"'{code}'" for code in r.sample(COUNTRY_CODES, 7))},
}


def sql(number: int, seed: int, sf: float, stream: int = 0) -> str:
    """The text of a query with parameters drawn for a seed, a stream and (query 11 alone) a scale factor."""
    return template(number).format(**draw(number, seed, sf, stream))


def draw(number: int, seed: int, sf: float, stream: int = 0) -> Values:
    """The values of a query's parameters by name.

    >>> draw(18, 1, 1.0) == draw(18, 1, 1.0), int(draw(18, 1, 1.0)["quantity"]) in range(312, 316)
    (True, True)
    """
    return DRAWS[number](Random(f"{seed}/{stream}/{number}"), sf)


def template(number: int) -> str:
    """The text of a query with a name in braces at each place of a parameter."""
    points = POINTS[number]
    pattern = "|".join(rf"(?<!\w){re.escape(old)}(?!\w)" for old in points)
    return re.sub(pattern, lambda found: points[found[0]], queries.sql(number))


def seed_text(seed: int, stream: int = 0) -> str:
    """The name of a folder for what belongs to a seed, and to a stream of it."""
    return f"seed-{seed}" if stream == 0 else f"seed-{seed}-stream-{stream}"
