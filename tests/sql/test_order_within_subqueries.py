"""Lists, joined texts and first values take the rows of a sorted subquery in its order, also one that is computed for each row
of the query around it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.support.harness import assert_same

TABLES = {
    "t": pa.table({"k": [n * 7 % 10 for n in range(40)], "v": [n * 17 % 41 for n in range(40)]}),
    "o": pa.table({"a": [0, 3, 5, 9, 3, None], "b": [1, 2, 3, 4, 5, 6]}),
}


@pytest.mark.parametrize("on", ["t.k < o.a", "t.k = o.a", "t.k + o.b > 7", "t.k BETWEEN o.a - 2 AND o.a"])
@pytest.mark.parametrize(
    ("call", "order"),
    [
        ("list(v)", "v"),
        ("list(v)", "k DESC, v LIMIT 4"),
        ("list(v + o.b)", "v DESC"),
        ("string_agg(v, ',')", "v LIMIT 5 OFFSET 1"),
        ("first(v)", "v DESC"),
        ("last(v)", "v"),
    ],
)
def test_the_order_of_a_correlated_subquery(on: str, call: str, order: str) -> None:
    inner = f"(SELECT * FROM t WHERE {on} ORDER BY {order})"
    assert_same(f"SELECT b, (SELECT {call} FROM {inner}) AS c FROM o", TABLES, targets=["python"])


def test_the_order_of_a_lateral_subquery() -> None:
    inner = "(SELECT v FROM t WHERE t.k >= o.a ORDER BY v DESC LIMIT 4)"
    assert_same(f"SELECT b, l FROM o, LATERAL (SELECT list(v) AS l FROM {inner})", TABLES)
