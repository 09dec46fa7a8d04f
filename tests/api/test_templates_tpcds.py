"""TPC-DS with random constants: rows are those of a plan of their own, whether a template serves a text or not.

``GQUERY_TEMPLATES=20`` takes 40 texts a query in place of six. The constants are those of all 99 queries, and odd ones.
"""

from __future__ import annotations

import os
from functools import cache
from random import Random

import pytest

import gquery
from benchmarks.rules import workloads
from tests.support.templates import Pool, constants, hits, varied

pytestmark = pytest.mark.slow

TEXTS = int(os.environ.get("GQUERY_TEMPLATES", "3"))
SCALE = 0.01
QUERIES = 99


@cache
def connections() -> tuple[dict[str, str], Pool, tuple[gquery.Connection, gquery.Connection]]:
    """The queries by number, their constants, and two connections over the same tables."""
    pytest.importorskip("duckdb_extension_tpcds")
    made = [workloads.tpcds(SCALE) for _ in range(2)]
    texts = dict(made[0].texts)
    return texts, constants(texts.values()), (made[0].connect(), made[1].connect())


@pytest.mark.parametrize("number", range(1, QUERIES + 1))
def test_tpcds(number: int) -> None:
    texts, pool, (served, alone) = connections()
    sql, random = texts[str(number)], Random(number)
    others = [varied(sql, random, share, pool) for _ in range(TEXTS) for share in (0.1, 0.5)]
    hits(served, alone, [sql, *others, sql])
