"""What EXPLAIN shows of pipelines and code, as it lies under ``golden``: a change of either is seen in review.

Every file holds one query for both compiled targets. ``GQUERY_UPDATE_GOLDEN=1 pytest tests/planner/test_golden_programs.py``
writes them anew.
"""

from __future__ import annotations

import os

import pytest

from gquery.expression.expr import new_column
from gquery.expression.types import BIGINT
from tests.support import programs
from tests.support.harness import assert_same
from tests.support.paths import GOLDEN

TARGETS: tuple[programs.Target, ...] = ("cpu", "cuda")


def _text(name: str, level: str) -> str:
    parts = [f"-- {programs.text(name).strip()}".replace("\n", "\n-- ").replace("-- \n", "--\n")]
    parts += [f"-- {target}\n{programs.shown(name, target, level)}" for target in TARGETS]
    return "\n".join(line.rstrip() for line in "\n\n".join(parts).splitlines()) + "\n"


@pytest.mark.parametrize("level", ["pipelines", "code"])
@pytest.mark.parametrize("name", programs.names())
def test_golden(name: str, level: str) -> None:
    path = GOLDEN / level / f"{name}.txt"
    got = _text(name, level)
    if os.environ.get("GQUERY_UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(got)
    assert got == path.read_text(), "GQUERY_UPDATE_GOLDEN=1 writes it anew"


@pytest.mark.parametrize("level", ["pipelines", "code"])
def test_every_file_has_its_query(level: str) -> None:
    assert sorted(p.stem for p in (GOLDEN / level).glob("*.txt")) == sorted(programs.names())


@pytest.mark.parametrize("name", programs.names())
def test_text_does_not_depend_on_ids(name: str) -> None:
    """Ids are counted through the process: what was planned before must not show."""
    first = programs.shown(name, "cuda", "code")
    for n in range(37):
        new_column(f"another {n}", BIGINT)
    assert programs.shown(name, "cuda", "code") == first


@pytest.mark.parametrize("name", programs.SMALL)
def test_what_is_shown_is_right(name: str) -> None:
    assert_same(programs.text(name), programs.tables())
