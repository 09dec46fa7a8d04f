"""The box of text: what stands where, and what is left out."""

from __future__ import annotations

import datetime
from decimal import Decimal

from gquery.expression.types import BIGINT, BOOLEAN, DATE, DOUBLE, INTEGER, VARCHAR, decimal
from gquery.result.display import Box, display_width, render, render_html


def test_types_and_null() -> None:
    text = render(
        ["i", "price", "x", "day", "ok", "s"],
        [INTEGER, decimal(15, 2), DOUBLE, DATE, BOOLEAN, VARCHAR],
        [(1, Decimal("1.50"), 0.1, datetime.date(1960, 2, 29), True, "x"), (None,) * 6],
    )
    assert text == "\n".join(
        [
            "┌─────────┬───────────────┬────────┬────────────┬─────────┬─────────┐",
            "│    i    │     price     │   x    │    day     │   ok    │    s    │",
            "│ integer │ decimal(15,2) │ double │    date    │ boolean │ varchar │",
            "├─────────┼───────────────┼────────┼────────────┼─────────┼─────────┤",
            "│       1 │          1.50 │    0.1 │ 1960-02-29 │ true    │ x       │",
            "│    NULL │          NULL │   NULL │ NULL       │ NULL    │ NULL    │",
            "├─────────┴───────────────┴────────┴────────────┴─────────┴─────────┤",
            "│ 2 rows                                                            │",
            "└───────────────────────────────────────────────────────────────────┘",
        ]
    )


def test_the_middle_of_many_rows_is_left_out() -> None:
    lines = render(["n"], [BIGINT], [(i,) for i in range(100)], box=Box(max_rows=4)).splitlines()
    assert [x.strip("│ ") for x in lines[4:-3]] == ["0", "1", "·", "·", "·", "98", "99"]
    assert lines[-2].strip("│ ") == "100 rows (4 shown)"
    first_and_last = [(0,), (1,), (998,), (999,)]
    lines = render(["n"], [BIGINT], first_and_last, total=1000, box=Box(max_rows=4)).splitlines()
    assert [x.strip("│ ") for x in lines[4:-3]] == ["0", "1", "·", "·", "·", "998", "999"]
    assert "1,000 rows (4 shown)" in lines[-2]


def test_rows_that_nobody_counted() -> None:
    assert "? rows (>3 rows, 3 shown)" in render(["n"], [BIGINT], [(1,), (2,), (3,)], total=-1)


def test_the_middle_of_many_columns_is_left_out() -> None:
    text = render([f"column{i}" for i in range(50)], [INTEGER] * 50, [tuple(range(50))], box=Box(width=70))
    assert max(display_width(x) for x in text.splitlines()) <= 70
    assert "column0" in text
    assert "column49" in text
    assert "column20" not in text
    assert "50 columns" in text


def test_every_line_is_as_wide_as_the_others() -> None:
    rows = [("日本", 1.0), ("e\u0301", float("nan")), ("a\nb\x1b[31m\t", -1e300), ("long " * 100, None), ("", 0.0)]
    for width in (20, 80, 200):
        lines = render(["text", "x"], [VARCHAR, DOUBLE], rows, box=Box(width=width)).splitlines()
        assert len({display_width(x) for x in lines}) == 1
        assert not any("\x1b" in x or "\t" in x for x in lines)


def test_no_rows() -> None:
    assert "0 rows" in render(["a"], [INTEGER], [])
    assert "1 row " in render(["a"], [INTEGER], [(1,)])


def test_html_is_escaped() -> None:
    text = render_html(["<a>"], [VARCHAR], [("<script>",), (None,)], 2)
    assert "<script>" not in text
    assert "&lt;script&gt;" in text
    assert "NULL" in text
