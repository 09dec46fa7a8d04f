"""The types that users see: `make check` runs mypy over this file as over a user's program. Its run finds the names."""

from __future__ import annotations

import subprocess
import sys

import gquery
from tests.support.paths import ROOT


def total(relation: gquery.Relation) -> int:
    rows: list[tuple[object, ...]] = relation.fetchall()
    return len(rows)


def answer(db: gquery.Connection, text: str) -> gquery.Relation | None:
    try:
        return db.sql(text).filter(gquery.col("a") > 1)
    except gquery.CatalogError as error:
        print(error)
        return None
    except (gquery.BindError, gquery.ParseError, gquery.ConversionError, gquery.OutOfRangeError):
        return None


def test_a_program_with_types() -> None:
    db: gquery.Connection = gquery.connect(device="python")
    relation = answer(db, "SELECT 2 AS a")
    assert relation is not None
    assert total(relation) == 1
    assert answer(db, "SELECT a FROM nothing") is None
    cursor: gquery.Cursor = db.cursor()
    assert cursor.execute("SELECT 1").fetchall() == [(1,)]


def test_public_names() -> None:
    assert set(gquery.__all__) <= set(dir(gquery))
    assert all(getattr(gquery, name) is not None for name in gquery.__all__)
    assert {"Relation", "Expression", "CatalogError", "OutOfMemoryError", "Cursor"} <= set(gquery.__all__)
    script = "import gquery, sys; dir(gquery); print('gquery.api.relation' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    assert run.stdout.strip() == "False", "looking at the names loads no part of the engine"


def test_the_package_says_that_it_is_typed() -> None:
    assert (ROOT / "gquery" / "py.typed").exists()
