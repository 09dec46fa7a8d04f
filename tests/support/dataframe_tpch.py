"""The 22 TPC-H queries in the DataFrame API, each a function of a connection that has the tables."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Decimal

import gquery
from gquery import Connection, col, fn, lit, when
from gquery.api.dataframe.expression import Expression
from gquery.api.relation import Relation

QUERIES: dict[int, Callable[[Connection], Relation]] = {}


def query(f: Callable[[Connection], Relation]) -> Callable[[Connection], Relation]:
    QUERIES[int(f.__name__[1:])] = f
    return f


def revenue() -> Expression:
    return col("l_extendedprice") * (1 - col("l_discount"))


def within(name: str, start: date, end: date) -> Expression:
    return (col(name) >= start) & (col(name) < end)


@query
def q1(con: Connection) -> Relation:
    return (
        con.table("lineitem")
        .filter(col("l_shipdate") <= date(1998, 9, 2))
        .group_by("l_returnflag", "l_linestatus")
        .agg(
            sum_qty=col("l_quantity").sum(),
            sum_base_price=col("l_extendedprice").sum(),
            sum_disc_price=revenue().sum(),
            sum_charge=(revenue() * (1 + col("l_tax"))).sum(),
            avg_qty=col("l_quantity").avg(),
            avg_price=col("l_extendedprice").avg(),
            avg_disc=col("l_discount").avg(),
            count_order=fn.count(),
        )
        .sort("l_returnflag", "l_linestatus")
    )


@query
def q2(con: Connection) -> Relation:
    offers = (
        con.table("partsupp")
        .join(con.table("supplier"), left_on="ps_suppkey", right_on="s_suppkey")
        .join(con.table("nation"), left_on="s_nationkey", right_on="n_nationkey")
        .join(con.table("region").filter(col("r_name") == "EUROPE"), left_on="n_regionkey", right_on="r_regionkey")
    )
    least = offers.group_by(partkey="ps_partkey").agg(least=col("ps_supplycost").min())
    return (
        con.table("part")
        .filter(col("p_size") == 15, col("p_type").like("%BRASS"))
        .join(offers, left_on="p_partkey", right_on="ps_partkey")
        .join(least, left_on=["p_partkey", "ps_supplycost"], right_on=["partkey", "least"])
        .select("s_acctbal", "s_name", "n_name", "p_partkey", "p_mfgr", "s_address", "s_phone", "s_comment")
        .sort(col("s_acctbal").desc(), "n_name", "s_name", "p_partkey")
        .limit(100)
    )


@query
def q3(con: Connection) -> Relation:
    return (
        con.table("customer")
        .filter(col("c_mktsegment") == "BUILDING")
        .join(con.table("orders"), left_on="c_custkey", right_on="o_custkey")
        .join(con.table("lineitem"), left_on="o_orderkey", right_on="l_orderkey")
        .filter(col("o_orderdate") < date(1995, 3, 15), col("l_shipdate") > date(1995, 3, 15))
        .group_by("l_orderkey", "o_orderdate", "o_shippriority")
        .agg(revenue=revenue().sum())
        .select("l_orderkey", "revenue", "o_orderdate", "o_shippriority")
        .sort("revenue", "o_orderdate", descending=[True, False])
        .limit(10)
    )


@query
def q4(con: Connection) -> Relation:
    late = con.table("lineitem").filter(col("l_commitdate") < col("l_receiptdate"))
    return (
        con.table("orders")
        .filter(within("o_orderdate", date(1993, 7, 1), date(1993, 10, 1)))
        .join(late, left_on="o_orderkey", right_on="l_orderkey", how="semi")
        .group_by("o_orderpriority")
        .agg(order_count=fn.count())
        .sort("o_orderpriority")
    )


@query
def q5(con: Connection) -> Relation:
    return (
        con.table("customer")
        .join(con.table("orders"), left_on="c_custkey", right_on="o_custkey")
        .join(con.table("lineitem"), left_on="o_orderkey", right_on="l_orderkey")
        .join(con.table("supplier"), left_on=["l_suppkey", "c_nationkey"], right_on=["s_suppkey", "s_nationkey"])
        .join(con.table("nation"), left_on="s_nationkey", right_on="n_nationkey")
        .join(con.table("region"), left_on="n_regionkey", right_on="r_regionkey")
        .filter(col("r_name") == "ASIA", within("o_orderdate", date(1994, 1, 1), date(1995, 1, 1)))
        .group_by("n_name")
        .agg(revenue=revenue().sum())
        .sort("revenue desc")
    )


@query
def q6(con: Connection) -> Relation:
    return (
        con.table("lineitem")
        .filter(
            within("l_shipdate", date(1994, 1, 1), date(1995, 1, 1)),
            col("l_discount").between(Decimal("0.05"), Decimal("0.07")),
            col("l_quantity") < 24,
        )
        .agg(revenue=(col("l_extendedprice") * col("l_discount")).sum())
    )


@query
def q7(con: Connection) -> Relation:
    nation = con.table("nation").select("n_nationkey", "n_name").filter(col("n_name").is_in(["FRANCE", "GERMANY"]))
    return (
        con.table("supplier")
        .join(nation.rename(n_nationkey="n1", n_name="supp_nation"), left_on="s_nationkey", right_on="n1")
        .join(con.table("lineitem"), left_on="s_suppkey", right_on="l_suppkey")
        .join(con.table("orders"), left_on="l_orderkey", right_on="o_orderkey")
        .join(con.table("customer"), left_on="o_custkey", right_on="c_custkey")
        .join(nation.rename(n_nationkey="n2", n_name="cust_nation"), left_on="c_nationkey", right_on="n2")
        .filter(
            col("supp_nation") != col("cust_nation"), col("l_shipdate").between(date(1995, 1, 1), date(1996, 12, 31))
        )
        .group_by("supp_nation", "cust_nation", l_year=col("l_shipdate").year())
        .agg(revenue=revenue().sum())
        .sort("supp_nation", "cust_nation", "l_year")
    )


@query
def q8(con: Connection) -> Relation:
    american = con.table("nation").join(con.table("region"), left_on="n_regionkey", right_on="r_regionkey")
    return (
        con.table("part")
        .filter(col("p_type") == "ECONOMY ANODIZED STEEL")
        .join(con.table("lineitem"), left_on="p_partkey", right_on="l_partkey")
        .join(con.table("supplier"), left_on="l_suppkey", right_on="s_suppkey")
        .join(con.table("orders"), left_on="l_orderkey", right_on="o_orderkey")
        .filter(col("o_orderdate").between(date(1995, 1, 1), date(1996, 12, 31)))
        .join(con.table("customer"), left_on="o_custkey", right_on="c_custkey")
        .join(
            american.filter(col("r_name") == "AMERICA").select(n1="n_nationkey"), left_on="c_nationkey", right_on="n1"
        )
        .join(con.table("nation").select(n2="n_nationkey", nation="n_name"), left_on="s_nationkey", right_on="n2")
        .select("nation", o_year=col("o_orderdate").year(), volume=revenue())
        .group_by("o_year")
        .agg(mkt_share=when(col("nation") == "BRAZIL").then(col("volume")).otherwise(0).sum() / col("volume").sum())
        .sort("o_year")
    )


@query
def q9(con: Connection) -> Relation:
    amount = revenue() - col("ps_supplycost") * col("l_quantity")
    return (
        con.table("part")
        .filter(col("p_name").like("%green%"))
        .join(con.table("lineitem"), left_on="p_partkey", right_on="l_partkey")
        .join(con.table("supplier"), left_on="l_suppkey", right_on="s_suppkey")
        .join(con.table("partsupp"), left_on=["l_suppkey", "p_partkey"], right_on=["ps_suppkey", "ps_partkey"])
        .join(con.table("orders"), left_on="l_orderkey", right_on="o_orderkey")
        .join(con.table("nation"), left_on="s_nationkey", right_on="n_nationkey")
        .group_by(nation="n_name", o_year=col("o_orderdate").year())
        .agg(sum_profit=amount.sum())
        .sort("nation", col("o_year").desc())
    )


@query
def q10(con: Connection) -> Relation:
    return (
        con.table("customer")
        .join(con.table("orders"), left_on="c_custkey", right_on="o_custkey")
        .join(con.table("lineitem"), left_on="o_orderkey", right_on="l_orderkey")
        .filter(within("o_orderdate", date(1993, 10, 1), date(1994, 1, 1)), col("l_returnflag") == "R")
        .join(con.table("nation"), left_on="c_nationkey", right_on="n_nationkey")
        .group_by("c_custkey", "c_name", "c_acctbal", "c_phone", "n_name", "c_address", "c_comment")
        .agg(revenue=revenue().sum())
        .select("c_custkey", "c_name", "revenue", "c_acctbal", "n_name", "c_address", "c_phone", "c_comment")
        .sort(col("revenue").desc())
        .limit(20)
    )


@query
def q11(con: Connection) -> Relation:
    german = (
        con.table("partsupp")
        .join(con.table("supplier"), left_on="ps_suppkey", right_on="s_suppkey")
        .join(con.table("nation").filter(col("n_name") == "GERMANY"), left_on="s_nationkey", right_on="n_nationkey")
        .with_columns(worth=col("ps_supplycost") * col("ps_availqty"))
    )
    total = german.agg(col("worth").sum() * Decimal("0.0001000000"))
    return (
        german.group_by("ps_partkey")
        .agg(value=col("worth").sum())
        .filter(col("value") > lit(total))
        .sort("value", descending=True)
    )


@query
def q12(con: Connection) -> Relation:
    urgent = col("o_orderpriority").is_in(["1-URGENT", "2-HIGH"])
    return (
        con.table("orders")
        .join(con.table("lineitem"), left_on="o_orderkey", right_on="l_orderkey")
        .filter(
            col("l_shipmode").is_in(["MAIL", "SHIP"]),
            col("l_commitdate") < col("l_receiptdate"),
            col("l_shipdate") < col("l_commitdate"),
            within("l_receiptdate", date(1994, 1, 1), date(1995, 1, 1)),
        )
        .group_by("l_shipmode")
        .agg(
            high_line_count=when(urgent).then(1).otherwise(0).sum(),
            low_line_count=when(~urgent).then(1).otherwise(0).sum(),
        )
        .sort("l_shipmode")
    )


@query
def q13(con: Connection) -> Relation:
    orders = con.table("orders").filter(~col("o_comment").like("%special%requests%"))
    return (
        con.table("customer")
        .join(orders, left_on="c_custkey", right_on="o_custkey", how="left")
        .group_by("c_custkey")
        .agg(c_count=col("o_orderkey").count())
        .group_by("c_count")
        .agg(custdist=fn.count())
        .sort("custdist", "c_count", descending=True)
    )


@query
def q14(con: Connection) -> Relation:
    promoted = when(col("p_type").like("PROMO%")).then(revenue()).otherwise(0)
    return (
        con.table("lineitem")
        .filter(within("l_shipdate", date(1995, 9, 1), date(1995, 10, 1)))
        .join(con.table("part"), left_on="l_partkey", right_on="p_partkey")
        .agg(promo_revenue=Decimal("100.00") * promoted.sum() / revenue().sum())
    )


@query
def q15(con: Connection) -> Relation:
    earned = (
        con.table("lineitem")
        .filter(within("l_shipdate", date(1996, 1, 1), date(1996, 4, 1)))
        .group_by(supplier_no="l_suppkey")
        .agg(total_revenue=revenue().sum())
    )
    return (
        con.table("supplier")
        .join(earned, left_on="s_suppkey", right_on="supplier_no")
        .filter(col("total_revenue") == lit(earned.agg(col("total_revenue").max())))
        .select("s_suppkey", "s_name", "s_address", "s_phone", "total_revenue")
        .sort("s_suppkey")
    )


@query
def q16(con: Connection) -> Relation:
    complained = con.table("supplier").filter(col("s_comment").like("%Customer%Complaints%")).select("s_suppkey")
    return (
        con.table("partsupp")
        .join(con.table("part"), left_on="ps_partkey", right_on="p_partkey")
        .filter(
            col("p_brand") != "Brand#45",
            ~col("p_type").like("MEDIUM POLISHED%"),
            col("p_size").is_in([49, 14, 23, 45, 19, 3, 36, 9]),
            ~col("ps_suppkey").is_in(complained),
        )
        .group_by("p_brand", "p_type", "p_size")
        .agg(supplier_cnt=col("ps_suppkey").count(distinct=True))
        .sort(col("supplier_cnt").desc(), "p_brand", "p_type", "p_size")
    )


@query
def q17(con: Connection) -> Relation:
    lineitem = con.table("lineitem")
    usual = lineitem.group_by(partkey="l_partkey").agg(usual=Decimal("0.2") * col("l_quantity").avg())
    return (
        con.table("part")
        .filter(col("p_brand") == "Brand#23", col("p_container") == "MED BOX")
        .join(lineitem, left_on="p_partkey", right_on="l_partkey")
        .join(usual, left_on="p_partkey", right_on="partkey")
        .filter(col("l_quantity") < col("usual"))
        .agg(avg_yearly=col("l_extendedprice").sum() / Decimal("7.0"))
    )


@query
def q18(con: Connection) -> Relation:
    lineitem = con.table("lineitem")
    large = lineitem.group_by("l_orderkey").agg(quantity=col("l_quantity").sum()).filter("quantity > 300")
    return (
        con.table("customer")
        .join(con.table("orders"), left_on="c_custkey", right_on="o_custkey")
        .filter(col("o_orderkey").is_in(large.select("l_orderkey")))
        .join(lineitem, left_on="o_orderkey", right_on="l_orderkey")
        .group_by("c_name", "c_custkey", "o_orderkey", "o_orderdate", "o_totalprice")
        .agg(col("l_quantity").sum())
        .sort(col("o_totalprice").desc(), "o_orderdate")
        .limit(100)
    )


@query
def q19(con: Connection) -> Relation:
    def kind(brand: str, containers: list[str], least: int, size: int) -> Expression:
        return (
            (col("p_brand") == brand)
            & col("p_container").is_in(containers)
            & col("l_quantity").between(least, least + 10)
            & col("p_size").between(1, size)
        )

    return (
        con.table("lineitem")
        .join(con.table("part"), on=col("p_partkey") == col("l_partkey"))
        .filter(col("l_shipmode").is_in(["AIR", "AIR REG"]), col("l_shipinstruct") == "DELIVER IN PERSON")
        .filter(
            kind("Brand#12", ["SM CASE", "SM BOX", "SM PACK", "SM PKG"], 1, 5)
            | kind("Brand#23", ["MED BAG", "MED BOX", "MED PKG", "MED PACK"], 10, 10)
            | kind("Brand#34", ["LG CASE", "LG BOX", "LG PACK", "LG PKG"], 20, 15)
        )
        .agg(revenue=revenue().sum())
    )


@query
def q20(con: Connection) -> Relation:
    shipped = (
        con.table("lineitem")
        .filter(within("l_shipdate", date(1994, 1, 1), date(1995, 1, 1)))
        .group_by("l_partkey", "l_suppkey")
        .agg(half=Decimal("0.5") * col("l_quantity").sum())
    )
    forest = con.table("part").filter("p_name LIKE 'forest%'").select("p_partkey")
    suppliers = (
        con.table("partsupp")
        .filter(col("ps_partkey").is_in(forest))
        .join(shipped, left_on=["ps_partkey", "ps_suppkey"], right_on=["l_partkey", "l_suppkey"])
        .filter("ps_availqty > half")
        .select("ps_suppkey")
    )
    return (
        con.table("supplier")
        .filter(col("s_suppkey").is_in(suppliers))
        .join(con.table("nation"), left_on="s_nationkey", right_on="n_nationkey")
        .filter(col("n_name") == "CANADA")
        .select("s_name", "s_address")
        .sort("s_name")
    )


@query
def q21(con: Connection) -> Relation:
    lineitem = con.table("lineitem")
    late = lineitem.filter(col("l_receiptdate") > col("l_commitdate"))
    another = (col("l_orderkey", of="self") == col("l_orderkey", of="other")) & (
        col("l_suppkey", of="self") != col("l_suppkey", of="other")
    )
    return (
        late.join(lineitem, on=another, how="semi")
        .join(late, on=another, how="anti")
        .join(con.table("supplier"), left_on="l_suppkey", right_on="s_suppkey")
        .join(con.table("orders").filter("o_orderstatus = 'F'"), left_on="l_orderkey", right_on="o_orderkey")
        .join(con.table("nation").filter("n_name = 'SAUDI ARABIA'"), left_on="s_nationkey", right_on="n_nationkey")
        .group_by("s_name")
        .agg(numwait=fn.count())
        .sort("numwait DESC, s_name")
        .limit(100)
    )


@query
def q22(con: Connection) -> Relation:
    codes = ["13", "31", "23", "29", "30", "18", "17"]
    customer = (
        con.table("customer")
        .with_columns(cntrycode=col("c_phone").substring(1, 2))
        .filter(gquery.col("cntrycode").is_in(codes))
    )
    average = customer.filter(col("c_acctbal") > Decimal("0.00")).agg(col("c_acctbal").avg())
    return (
        customer.filter(col("c_acctbal") > lit(average))
        .join(con.table("orders"), left_on="c_custkey", right_on="o_custkey", how="anti")
        .group_by("cntrycode")
        .agg(numcust=fn.count(), totacctbal=col("c_acctbal").sum())
        .sort("cntrycode")
    )
