"""Tables that exist as statistics alone, so that plans can be tested without data.

`tpch` holds the TPC-H tables as they are at scale factor 1; `small` holds tables with and without NULLs and keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache

from gquery.columns.numbered import NumberedRows, NumberedTable
from gquery.columns.table import ColumnStatistics, Table
from gquery.expression.types import (
    BIGINT,
    DATE,
    DOUBLE,
    INTEGER,
    VARCHAR,
    Bounds,
    DType,
    Field,
    Schema,
    decimal,
)
from gquery.planner.logical.nodes import Query
from gquery.sql.bind import bind_query
from gquery.sql.catalog import Catalog


@dataclass(eq=False)
class Described:
    """A table source without data."""

    name: str
    schema: Schema
    rows: int
    known: tuple[ColumnStatistics, ...]
    version: int = 0
    loaded: list[int] = field(default_factory=list)
    of_numbers: NumberedTable = field(default_factory=NumberedTable)

    def numbered(self) -> NumberedRows:
        return self.of_numbers.of(self)

    def statistics(self, field: int) -> ColumnStatistics:
        return self.known[field]

    def has_nulls(self, field: int) -> bool:
        return self.statistics(field).null_count != 0

    def is_unique(self, field: int) -> bool:
        return self.statistics(field).is_unique

    def load(self, fields: Sequence[int]) -> Table:
        raise AssertionError("planning reads no data")


MONEY = decimal(15, 2)
# name: type, distinct values, low, high (physical); ! marks a unique column, ? a nullable one
_TPCH = {
    "lineitem": (6_001_215, """
        l_orderkey BIGINT 1500000 1 6000000, l_partkey BIGINT 200000 1 200000, l_suppkey BIGINT 10000 1 10000,
        l_linenumber INTEGER 7 1 7, l_quantity MONEY 50 100 5000, l_extendedprice MONEY 1000000 90100 10494950,
        l_discount MONEY 11 0 10, l_tax MONEY 9 0 8, l_returnflag VARCHAR 3, l_linestatus VARCHAR 2,
        l_shipdate DATE 2526 8036 10561, l_commitdate DATE 2466 8065 10530, l_receiptdate DATE 2555 8038 10591,
        l_shipinstruct VARCHAR 4, l_shipmode VARCHAR 7, l_comment VARCHAR 4500000"""),
    "orders": (1_500_000, """
        o_orderkey! BIGINT 1500000 1 6000000, o_custkey BIGINT 100000 1 149999, o_orderstatus VARCHAR 3,
        o_totalprice MONEY 1400000 85771 55528516, o_orderdate DATE 2406 8035 10440, o_orderpriority VARCHAR 5,
        o_clerk VARCHAR 1000, o_shippriority INTEGER 1 0 0, o_comment VARCHAR 1480000"""),
    "customer": (150_000, """
        c_custkey! BIGINT 150000 1 150000, c_name VARCHAR 150000, c_address VARCHAR 150000,
        c_nationkey INTEGER 25 0 24, c_phone VARCHAR 150000, c_acctbal MONEY 140000 -99999 999999,
        c_mktsegment VARCHAR 5, c_comment VARCHAR 150000"""),
    "part": (200_000, """
        p_partkey! BIGINT 200000 1 200000, p_name VARCHAR 199990, p_mfgr VARCHAR 5, p_brand VARCHAR 25,
        p_type VARCHAR 150, p_size INTEGER 50 1 50, p_container VARCHAR 40, p_retailprice MONEY 20000 90100 209899,
        p_comment VARCHAR 130000"""),
    "partsupp": (800_000, """
        ps_partkey BIGINT 200000 1 200000, ps_suppkey BIGINT 10000 1 10000, ps_availqty INTEGER 9999 1 9999,
        ps_supplycost MONEY 99900 100 100000, ps_comment VARCHAR 800000"""),
    "supplier": (10_000, """
        s_suppkey! BIGINT 10000 1 10000, s_name VARCHAR 10000, s_address VARCHAR 10000, s_nationkey INTEGER 25 0 24,
        s_phone VARCHAR 10000, s_acctbal MONEY 9950 -99822 999972, s_comment VARCHAR 10000"""),
    "nation": (25, """
        n_nationkey! INTEGER 25 0 24, n_name VARCHAR 25, n_regionkey INTEGER 5 0 4, n_comment VARCHAR 25"""),
    "region": (5, "r_regionkey! INTEGER 5 0 4, r_name VARCHAR 5, r_comment VARCHAR 5"),
}  # fmt: skip
_SMALL = {
    "a": (1_000_000, """
        id! BIGINT 1000000 1 1000000, k BIGINT 1000 1 1000, x INTEGER 100 0 99, d DATE 900 9000 9899, s VARCHAR 50"""),
    "b": (1_000, "k! BIGINT 1000 1 1000, y INTEGER 100 0 99, z DOUBLE 900, t VARCHAR 20"),
    "n": (5_000, "k? BIGINT 1000 1 1000, v? INTEGER 100 0 99, w? VARCHAR 20"),
}  # fmt: skip
_TYPES = {"BIGINT": BIGINT, "INTEGER": INTEGER, "DATE": DATE, "VARCHAR": VARCHAR, "DOUBLE": DOUBLE, "MONEY": MONEY}


def _source(name: str, rows: int, text: str) -> Described:
    fields: list[Field] = []
    known: list[ColumnStatistics] = []
    for column in text.split(","):
        label, kind, distinct, *bounds = column.split()
        dtype: DType = _TYPES[kind]
        nullable = label.endswith("?")
        fields.append(Field(label.rstrip("!?"), dtype, nullable))
        known.append(
            ColumnStatistics(
                Bounds(int(bounds[0]), int(bounds[1])) if bounds else None,
                rows // 20 if nullable else 0,
                int(distinct),
                label.endswith("!"),
                label.endswith("!"),
            )
        )
    return Described(name, Schema(tuple(fields)), rows, tuple(known))


@cache
def catalog() -> Catalog:
    """All tables of this module."""
    out = Catalog()
    for name, (rows, text) in (_TPCH | _SMALL).items():
        out.register(name, _source(name, rows, text))
    return out


@lru_cache(512)
def bound(sql: str) -> Query:
    """The query as the binder makes it. Tests that switch off one rule after the other ask for the same ones."""
    return bind_query(sql, catalog())
