"""The tables that Ibis' tests of backends read, of the same columns and sizes as its own, whose rows are not in its wheel."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pyarrow as pa
from ibis.backends.conftest import TEST_TABLES
from ibis.backends.tests import data as of_tests

ROWS_A_DAY, FIRST, DAYS = 10, datetime.datetime(2009, 1, 1), 730


def tables() -> dict[str, pa.Table]:
    """All tables by name. ``functional_alltypes`` follows the rule that Impala's has; others are random, with words that tests
    name among their values."""
    random = np.random.default_rng(7)
    made = {
        "functional_alltypes": functional_alltypes(),
        "diamonds": _diamonds(random, 53_940),
        "batting": _batting(random, 101_332),
        "awards_players": _awards(random, 6_078),
        "astronauts": _astronauts(random, 1_277),
    }
    found = {name: pa.Table.from_pandas(f, preserve_index=False) for name, f in made.items()}
    found = {name: t.cast(TEST_TABLES[name].to_pyarrow()) for name, t in found.items()}
    return {**found, "win": pa.Table.from_pandas(of_tests.win, preserve_index=False), "topk": of_tests.topk}


def functional_alltypes() -> pd.DataFrame:
    n = np.arange(ROWS_A_DAY * DAYS)
    digit, day = n % ROWS_A_DAY, n // ROWS_A_DAY
    moments = [FIRST + datetime.timedelta(days=int(d), minutes=int(i), milliseconds=int(i * (i - 1) * 50))
               for d, i in zip(day, digit, strict=True)]  # fmt: skip
    return pd.DataFrame(
        {
            "id": n,
            "bool_col": digit % 2 == 0,
            "tinyint_col": digit,
            "smallint_col": digit,
            "int_col": digit,
            "bigint_col": digit * 10,
            "float_col": (digit * 1.1).astype(np.float32),
            "double_col": digit * 10.1,
            "date_string_col": [m.strftime("%m/%d/%y") for m in moments],
            "string_col": digit.astype(str),
            "timestamp_col": pd.Series(moments).astype("datetime64[us]"),
            "year": [m.year for m in moments],
            "month": [m.month for m in moments],
        }
    )


def _diamonds(random: np.random.Generator, rows: int) -> pd.DataFrame:
    words = {
        "cut": ["Fair", "Good", "Very Good", "Premium", "Ideal"],
        "color": list("DEFGHIJ"),
        "clarity": ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"],
    }
    numbers = {c: np.round(random.uniform(0.2, 60, rows), 2) for c in ("carat", "depth", "table", "x", "y", "z")}
    texts = {c: random.choice(w, rows) for c, w in words.items()}
    return pd.DataFrame({**numbers, **texts, "price": random.integers(326, 18_824, rows)})[
        list(TEST_TABLES["diamonds"])
    ]


def _players(random: np.random.Generator, rows: int) -> np.ndarray:
    names = np.array([f"player{n:05d}" for n in range(5_000)])
    return np.asarray(random.choice(names, rows))


def _batting(random: np.random.Generator, rows: int) -> pd.DataFrame:
    made: dict[str, object] = {c: random.integers(0, 160, rows) for c in TEST_TABLES["batting"]}
    made |= {
        "playerID": _players(random, rows),
        "yearID": random.integers(1871, 2016, rows),
        "stint": random.integers(1, 4, rows),
        "teamID": random.choice(["BOS", "NYA", "CHN", "SLN"], rows),
        "lgID": random.choice(["AL", "NL", "NA"], rows),
    }
    frame = pd.DataFrame(made)
    for c in ("RBI", "SB", "CS", "SO", "IBB", "HBP", "SH", "SF", "GIDP"):
        frame[c] = frame[c].where(random.uniform(0, 1, rows) > 0.1).astype("Int64")
    return frame


def _awards(random: np.random.Generator, rows: int) -> pd.DataFrame:
    tie = pd.Series(["Y"] * rows).where(random.uniform(0, 1, rows) < 0.05, None)
    return pd.DataFrame(
        {
            "playerID": _players(random, rows),
            "awardID": random.choice(["Triple Crown", "Gold Glove", "Most Valuable Player"], rows),
            "yearID": random.integers(1877, 2016, rows),
            "lgID": random.choice(["AL", "NL", "ML"], rows),
            "tie": tie,
            "notes": pd.Series(random.choice(["P", "C", "OF"], rows)).where(random.uniform(0, 1, rows) < 0.5, None),
        }
    )


def _astronauts(random: np.random.Generator, rows: int) -> pd.DataFrame:
    made: dict[str, object] = {}
    for name, dtype in TEST_TABLES["astronauts"].items():
        if dtype.is_string():
            made[name] = random.choice([f"{name} {n}" for n in range(20)], rows)
        elif dtype.is_floating():
            made[name] = np.round(random.uniform(0, 1_000, rows), 2)
        else:
            made[name] = random.integers(1, 40, rows)
    return pd.DataFrame({**made, "id": np.arange(rows)})
