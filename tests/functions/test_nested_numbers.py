"""Numbers within lists and structs are cast as columns of them are, to the last digit."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

import gquery
from tests.support.values import DECIMALS, EDGES, FLOATS, INTEGERS, column

TYPES = ("BOOLEAN", *INTEGERS, *DECIMALS, *FLOATS)


def _more(dtype: str, r: random.Random) -> list[str]:
    """Random numbers of a type, of any size, and halves."""
    if dtype == "BIGINT":
        return [str(r.randint(-(2**63), 2**63 - 1) >> r.randint(0, 60)) for _ in range(50)]
    if dtype == "DOUBLE":
        some = [repr(r.uniform(-10, 10) * 10.0 ** r.randint(-5, 20)) for _ in range(50)]
        return [*some, *(str(n + 0.5) for n in range(-4, 4)), "-128.4", "127.5", "255.5", "-0.4", "2147483647.5"]
    if dtype == "DECIMAL(38,10)":
        return [f"{r.randint(-(10 ** r.randint(1, 27)), 10**27)}.{r.randint(0, 10**10 - 1):010}" for _ in range(50)]
    return []


@pytest.mark.parametrize("source", TYPES)
def test_elements_are_cast_as_columns_are(source: str) -> None:
    array = column(source, (*EDGES[source], *_more(source, random.Random(source))))
    connection = gquery.connect(device="python")
    connection.register("t", pa.table({"i": range(len(array)), "a": array}))
    others = [t for t in TYPES if t != source]
    listed = ", ".join(
        f"TRY_CAST(a AS {t}), TRY_CAST([a] AS {t}[])[1], TRY_CAST({{'f': a}} AS STRUCT(f {t})).f" for t in others
    )
    columns = connection.sql(f"SELECT {listed} FROM t ORDER BY i").arrow().columns
    for n, target in enumerate(others):
        plain, in_list, in_struct = (list(map(repr, c.to_pylist())) for c in columns[3 * n : 3 * n + 3])
        assert plain == in_list == in_struct, target
        if bad := [k for k, v in enumerate(plain) if v == "None" and array[k].is_valid]:
            connection.register("one", pa.table({"a": array[bad[0] : bad[0] + 1]}))
            with pytest.raises(gquery.ConversionError):
                connection.sql(f"SELECT CAST([a] AS {target}[]) FROM one").arrow()


def test_sums_of_numbers_that_no_double_holds() -> None:
    connection = gquery.connect(device="python")
    sql = "SELECT list_sum([-9223372036854775807 - 1, 1]), list_avg([-9223372036854775807 - 1]), list_median(['inf'::DOUBLE])"
    assert connection.sql(sql).fetchall() == [(-(2**63) + 1, -(2.0**63), float("inf"))]
