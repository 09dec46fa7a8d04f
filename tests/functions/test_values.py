"""Operators, functions and casts at the edges of their types, against DuckDB: see `tests.support.values`.

A run takes a share of the cases; ``GQUERY_VALUES=all`` (``make values``) takes them all.
"""

from __future__ import annotations

import os
import random

import gquery
from tests.support.values import RAISES, Case, Checker, agree, cases, check_together

EVERYTHING = os.environ.get("GQUERY_VALUES") == "all"
SHARE = 1.0 if EVERYTHING else 0.01


def test_every_case_agrees_interpreted() -> None:
    r = random.Random(1)
    chosen = [case for case in cases() if r.random() < SHARE]
    checker = Checker(
        gquery.connect(device="python"), errors=10 if EVERYTHING else 1, constants=10 if EVERYTHING else 2
    )
    wrong = [line for case in chosen for line in checker.differences(case)]
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong[:50])


def test_a_sample_agrees_compiled() -> None:
    """On cpu, many cases a kernel."""
    groups: dict[tuple[object, ...], list[Case]] = {}
    for case in cases():
        groups.setdefault((case.types, case.given), []).append(case)
    r = random.Random(2)
    chosen = list(groups.values()) if EVERYTHING else r.sample(list(groups.values()), 5)
    connection = gquery.connect(device="cpu")
    connection.sql("SET interpret_limit = 0")
    wrong = []
    for group in chosen:
        few = group if EVERYTHING else r.sample(group, min(8, len(group)))
        for k in range(0, len(few), 14):
            wrong += check_together(connection, few[k : k + 14])
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong[:50])


def test_a_difference_is_found() -> None:
    assert not agree(0.0, -0.0, "DOUBLE") and not agree(1, True, "BOOLEAN") and not agree(None, RAISES, "INTEGER")
    assert not agree(1.0, 1.0 + 1e-10, "DOUBLE") and agree(float("nan"), float("nan"), "DOUBLE")
    checker = Checker(gquery.connect(device="python"))
    assert checker._run("SELECT ln(0) AS v", None, "DOUBLE") is RAISES
    assert checker._run("SELECT 1 AS v", None, "BIGINT") == "type INTEGER, DuckDB BIGINT"
    assert checker._run("SELECT a.b.c AS v", None, "BIGINT").startswith("refused")
