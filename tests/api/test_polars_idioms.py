"""Idioms of Polars: the same code runs on a Polars frame and on a relation, and gives the same columns and rows.

Those whose rows have no order are compared as bags. What gquery has under another name, or with another meaning, stands at the
end, each with its reason.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import gquery
from gquery.api.relation import Relation

pl = pytest.importorskip("polars")

TABLE = pa.table(
    {
        "k": ["x", "y", "x", None, "y", "x"],
        "a": [3, 1, None, 2, 1, 5],
        "b": [1.5, -2.0, 0.25, None, 4.0, 4.0],
        "s": ["Tea", " jam ", "tea-12", None, "", "bread"],
        "t": [True, False, True, None, False, True],
        "d": [
            datetime.date(2020, 1, 31),
            datetime.date(2021, 12, 1),
            None,
            *[datetime.date(2024, 2, n) for n in (5, 29, 1)],
        ],
        "z": [datetime.datetime(2020, 1, n, 3 * n, 2 * n, n) for n in range(1, 7)],
    }
)
OTHER = pa.table({"k": ["x", "y", "q"], "w": [10, 20, 30]})


def _day(p: Any) -> Any:
    """The day as a wide integer: Polars has it in 8 bits, and differences too."""
    return p.col("z").dt.day().cast(p.Int64 if p is pl else "BIGINT")


Idiom = Callable[[Any, Any, Any], Any]  # frame, other frame, the library

ORDERED: dict[str, Idiom] = {
    "select": lambda f, o, p: f.select("a", "b"),
    "list len": lambda f, o, p: f.select(p.col("s").str.split("-").list.len().cast(p.Int64 if p is pl else "BIGINT")),
    "list get": lambda f, o, p: f.select(p.col("s").str.split("-").list.get(0)),
    "list join": lambda f, o, p: f.select(p.col("s").str.split("-").list.join("+")),
    "list contains": lambda f, o, p: f.select(p.col("s").str.split("-").list.contains("tea")),
    "implode": lambda f, o, p: f.select(p.col("a").implode()),
    "list sum": lambda f, o, p: f.select(p.col("a").implode().list.sum()),
    "list sort": lambda f, o, p: f.select(p.col("a").implode().list.sort(descending=True, nulls_last=True)),
    "list slice": lambda f, o, p: f.select(p.col("a").implode().list.slice(1, 2)),
    "explode": lambda f, o, p: f.with_columns(p.col("s").str.split("-").alias("w")).explode("w").select("k", "w"),
    "select list": lambda f, o, p: f.select(["a", "b"]),
    "select expr": lambda f, o, p: f.select(p.col("a") + 1),
    "select alias": lambda f, o, p: f.select((p.col("a") * 2).alias("twice")),
    "select named": lambda f, o, p: f.select("k", twice=p.col("a") * 2),
    "lit": lambda f, o, p: f.select("k", p.lit(1).alias("one")),
    "with_columns": lambda f, o, p: f.with_columns((p.col("a") + p.col("b")).alias("c")),
    "with_columns named": lambda f, o, p: f.with_columns(c=p.col("a") * p.col("b"), a=p.col("a") + 1),
    "filter": lambda f, o, p: f.filter(p.col("a") > 1),
    "filter several": lambda f, o, p: f.filter(p.col("a") > 1, p.col("b") > 1),
    "filter and": lambda f, o, p: f.filter((p.col("a") > 1) & (p.col("k") == "x")),
    "filter or": lambda f, o, p: f.filter((p.col("a") > 3) | (p.col("k") == "y")),
    "filter not": lambda f, o, p: f.filter(~(p.col("k") == "x")),
    "is_in": lambda f, o, p: f.filter(p.col("a").is_in([1, 2])),
    "is_in of nothing": lambda f, o, p: f.select(a=p.col("a").is_in([]), n=~p.col("a").is_in([])),
    "is_in with None": lambda f, o, p: f.select(
        a=p.col("a").is_in([1, None]), n=~p.col("a").is_in([1, None]), o=p.col("a").is_in([None])),
    "is_between": lambda f, o, p: f.filter(p.col("a").is_between(1, 3)),
    "is_null": lambda f, o, p: f.filter(p.col("a").is_null()),
    "is_not_null": lambda f, o, p: f.filter(p.col("a").is_not_null()),
    "eq_missing": lambda f, o, p: f.select(p.col("a").eq_missing(p.lit(None)).alias("e")),
    "comparisons by name": lambda f, o, p: f.select(
        p.col("a").eq(1).alias("eq"), p.col("a").ne(1).alias("ne"), p.col("a").lt(2).alias("lt"),
        p.col("a").le(2).alias("le"), p.col("a").gt(2).alias("gt"), p.col("a").ge(2).alias("ge")),
    "not_": lambda f, o, p: f.select(p.col("t").not_().alias("n")),
    "arithmetic": lambda f, o, p: f.select(x=p.col("a") / 2, y=p.col("a") // 2, z=p.col("a") % 2, w=-p.col("a")),
    "abs": lambda f, o, p: f.select(p.col("b").abs()),
    "sqrt": lambda f, o, p: f.select(p.col("a").sqrt()),
    "exp": lambda f, o, p: f.select(p.col("a").exp()),
    "floor and ceil": lambda f, o, p: f.select(x=p.col("b").floor(), y=p.col("b").ceil()),
    "round": lambda f, o, p: f.select((p.col("b") * 1.234).round(1).alias("r")),
    "clip": lambda f, o, p: f.select(p.col("a").clip(2, 4)),
    "fill_null": lambda f, o, p: f.select(p.col("a").fill_null(0)),
    "fill_nan": lambda f, o, p: f.select((p.col("b") - p.col("b")).fill_nan(7.0).alias("c")),
    "is_nan": lambda f, o, p: f.select(p.col("b").is_nan(), f=p.col("b").is_finite(), i=p.col("b").is_infinite()),
    "when": lambda f, o, p: f.select(c=p.when(p.col("a") > 2).then(p.lit("big")).otherwise(p.lit("small"))),
    "when when": lambda f, o, p: f.select(
        c=p.when(p.col("a") > 2).then(1).when(p.col("a") > 1).then(2).otherwise(3)),
    "when without otherwise": lambda f, o, p: f.select(c=p.when(p.col("a") > 2).then(p.col("b"))),
    "rename": lambda f, o, p: f.rename({"a": "x"}),
    "drop": lambda f, o, p: f.drop("a", "b"),
    "drop_nulls": lambda f, o, p: f.drop_nulls(),
    "drop_nulls subset": lambda f, o, p: f.drop_nulls("a"),
    "fill_null of a frame": lambda f, o, p: f.select("k", "a", "b", "d").fill_null(0),
    "head": lambda f, o, p: f.head(2),
    "limit": lambda f, o, p: f.limit(3),
    "slice": lambda f, o, p: f.slice(1, 3),
    "slice to the end": lambda f, o, p: f.slice(4),
    "sort": lambda f, o, p: f.drop_nulls("a").sort("a", "b"),
    "sort list": lambda f, o, p: f.drop_nulls("a").sort(["k", "b"], nulls_last=True),
    "sort descending": lambda f, o, p: f.drop_nulls().sort("b", "z", descending=True),
    "sort directions": lambda f, o, p: f.drop_nulls().sort("k", "a", descending=[True, False]),
    "sort nulls_last": lambda f, o, p: f.sort("a", "z", nulls_last=True),
    "sort nulls first": lambda f, o, p: f.sort("a", "z", nulls_last=False),
    "sort nulls_last for each": lambda f, o, p: f.sort("k", "b", "z", nulls_last=[True, False, True]),
    "sort nulls_last and directions": lambda f, o, p: f.sort("a", "b", descending=[True, False], nulls_last=[False, True]),
    "sort expr": lambda f, o, p: f.sort(p.col("a") + p.col("z").dt.day(), nulls_last=True),
    "pipe": lambda f, o, p: f.pipe(lambda g, n: g.head(n), 2),
    "concat": lambda f, o, p: p.concat([f, f]),
    "concat relaxed": lambda f, o, p: p.concat([f.select("a"), f.select(p.col("b").alias("a"))], how="vertical_relaxed"),
    "concat diagonal_relaxed": lambda f, o, p: p.concat(
        [f.select("k", "a"), f.select(p.col("b").alias("a"), p.col("t"))], how="diagonal_relaxed"),
    "concat diagonal": lambda f, o, p: p.concat([f.select("k", "a"), o.select("k", "w")], how="diagonal"),
    "str case": lambda f, o, p: f.select(u=p.col("s").str.to_uppercase(), l=p.col("s").str.to_lowercase()),
    "str len": lambda f, o, p: f.select(c=p.col("s").str.len_chars(), b=p.col("s").str.len_bytes()),
    "str contains": lambda f, o, p: f.select(p.col("s").str.contains("e.-|a")),
    "str contains literal": lambda f, o, p: f.select(p.col("s").str.contains("a-", literal=True)),
    "str starts_with": lambda f, o, p: f.select(b=p.col("s").str.starts_with("t"), e=p.col("s").str.ends_with("d")),
    "str slice": lambda f, o, p: f.select(x=p.col("s").str.slice(1, 2), y=p.col("s").str.slice(2)),
    "str head": lambda f, o, p: f.select(x=p.col("s").str.head(2), y=p.col("s").str.tail(2)),
    "str strip": lambda f, o, p: f.select(
        x=p.col("s").str.strip_chars(), y=p.col("s").str.strip_chars_start(), z=p.col("s").str.strip_chars_end()),
    "str strip some": lambda f, o, p: f.select(p.col("s").str.strip_chars("Ta")),
    "str replace": lambda f, o, p: f.select(x=p.col("s").str.replace("e", "E"), y=p.col("s").str.replace("a.", "-")),
    "str replace_all": lambda f, o, p: f.select(x=p.col("s").str.replace_all("[ae]", "_")),
    "str replace literal": lambda f, o, p: f.select(x=p.col("s").str.replace("-", "\\0$1", literal=True)),
    "str replace_all literal": lambda f, o, p: f.select(x=p.col("s").str.replace_all(".", "_", literal=True)),
    "str extract": lambda f, o, p: f.select(p.col("s").str.extract(r"(\d+)", 1)),
    "str pad": lambda f, o, p: f.select(x=p.col("s").str.pad_start(6, "*"), y=p.col("s").str.pad_end(6)),
    "str reverse": lambda f, o, p: f.select(p.col("s").str.reverse()),
    "str to_integer": lambda f, o, p: f.select(p.col("s").str.slice(4, 2).str.to_integer(strict=False)),
    "dt parts": lambda f, o, p: f.select(
        y=p.col("d").dt.year(), q=p.col("d").dt.quarter(), m=p.col("d").dt.month(), w=p.col("d").dt.week(),
        d=p.col("d").dt.day(), o=p.col("d").dt.ordinal_day(), n=p.col("d").dt.weekday()),
    "dt time": lambda f, o, p: f.select(h=p.col("z").dt.hour(), m=p.col("z").dt.minute(), s=p.col("z").dt.second()),
    "dt difference": lambda f, o, p: f.select(x=p.col("z") - p.col("d"), y=p.col("d") - p.col("z")),
    "dt total": lambda f, o, p: f.select(
        d=(p.col("d") - p.col("z")).dt.total_days(), h=(p.col("z") - p.col("d")).dt.total_hours(),
        m=(p.col("z") - p.col("d")).dt.total_minutes(), s=(p.col("z") - p.col("d")).dt.total_seconds(),
        ms=(p.col("z") - p.col("d")).dt.total_milliseconds(), us=(p.col("z") - p.col("d")).dt.total_microseconds()),
    "dt date": lambda f, o, p: f.select(p.col("z").dt.date()),
    "dt truncate": lambda f, o, p: f.select(x=p.col("z").dt.truncate("1h"), y=p.col("z").dt.truncate("1d")),
    "dt month_end": lambda f, o, p: f.select(p.col("d").dt.month_end()),
    "dt strftime": lambda f, o, p: f.select(p.col("d").dt.strftime("%Y/%m/%d")),
    "shift": lambda f, o, p: f.select("a", before=p.col("a").shift(1), behind=p.col("a").shift(-1)),
    "shift fill_value": lambda f, o, p: f.select(p.col("a").shift(2, fill_value=0)),
    "diff": lambda f, o, p: f.select(x=_day(p).diff()),
    "cum_sum": lambda f, o, p: f.select(x=p.col("a").cum_sum(), n=p.col("a").cum_count().cast(p.Int64 if p is pl else "BIGINT")),
    "cum_min": lambda f, o, p: f.select(x=p.col("b").cum_min(), y=p.col("b").cum_max()),
    "rank": lambda f, o, p: f.select(p.col("b").rank()),
    "rank methods": lambda f, o, p: f.select(
        x=p.col("b").rank("min"), y=p.col("b").rank("max"), z=p.col("b").rank("dense"), o=p.col("b").rank("ordinal")),
    "rank descending": lambda f, o, p: f.select(x=p.col("b").rank("min", descending=True)),
    "rolling_mean": lambda f, o, p: f.select(x=_day(p).rolling_mean(3)),
    "rolling_sum": lambda f, o, p: f.select(p.col("a").rolling_sum(3, min_samples=1)),
    "rolling_min": lambda f, o, p: f.select(
        x=p.col("b").rolling_min(2, min_samples=1), y=p.col("b").rolling_max(2, min_samples=1)),
    "over": lambda f, o, p: f.select("k", "a", total=p.col("a").sum().over("k"), n=p.col("a").count().over("k")),
    "over share": lambda f, o, p: f.select(share=p.col("a") / p.col("a").sum().over("k")),
    "over expression": lambda f, o, p: f.select(x=(p.col("a") - p.col("a").mean()).over("k")),
    "over several": lambda f, o, p: f.select(x=p.col("b").max().over("k", "t")),
    "over with order": lambda f, o, p: f.select(x=p.col("b").first().over("k", order_by="z")),
    "shift over": lambda f, o, p: f.select(x=p.col("a").shift(1).over("k")),
    "rank over": lambda f, o, p: f.select(x=p.col("b").rank("min").over("k")),
    "cum_sum over": lambda f, o, p: f.select(x=p.col("a").cum_sum().over("k")),
    "forward_fill": lambda f, o, p: f.select(p.col("a").forward_fill()),
    "with_row_index": lambda f, o, p: f.select("k", "a").with_row_index("n", offset=3),
    "tail": lambda f, o, p: f.tail(2),
    "unique keep first": lambda f, o, p: f.unique("k", keep="first", **({"maintain_order": True} if p is pl else {})),
    "unique keep last": lambda f, o, p: f.unique("k", keep="last", **({"maintain_order": True} if p is pl else {})),
    "unique keep none": lambda f, o, p: f.unique("k", keep="none", **({"maintain_order": True} if p is pl else {})),
    "aggregate beside rows": lambda f, o, p: f.select("k", m=p.col("a").max(), r=p.col("a") - p.col("a").mean()),
    "with_columns aggregate": lambda f, o, p: f.with_columns(total=p.col("a").sum(), share=p.col("a") / p.col("a").sum()),
    "filter by an aggregate": lambda f, o, p: f.filter(p.col("a") > p.col("a").mean()),
    "filter by a window": lambda f, o, p: f.filter(p.col("b") == p.col("b").max().over("k")),
    "filter by equality": lambda f, o, p: f.filter(k="x", t=True),
    "filter by rank": lambda f, o, p: f.filter(p.col("b").rank("dense").over("k") <= 1, p.col("a").is_not_null()),
    "text + text": lambda f, o, p: f.select((p.col("k") + "-" + p.col("s")).alias("c"), d=p.lit("<") + p.col("k")),
    "several columns": lambda f, o, p: f.select(p.col("a", "b") * 2),
    "columns by pattern": lambda f, o, p: f.select(p.col("^[ab]$").max()),
    "with several columns": lambda f, o, p: f.with_columns(p.col("a", "b").fill_null(0)),
    "all": lambda f, o, p: f.select(p.all().is_null()),
    "all but": lambda f, o, p: f.select(p.all().exclude("z", "d", "s")),
    "exclude": lambda f, o, p: f.select(p.exclude("z")),
    "name suffix": lambda f, o, p: f.with_columns(p.col("a", "b").cum_sum().name.suffix("_sum")),
    "name prefix": lambda f, o, p: f.select((p.col("a") + 1).name.prefix("x_"), (p.col("b") + 1).name.keep()),
    "name map": lambda f, o, p: f.select(p.col("a").abs().name.map(lambda n: n + n), p.col("b").name.to_uppercase()),
    "filter all not null": lambda f, o, p: f.filter(p.all_horizontal(p.all().is_not_null())),
    "max_horizontal": lambda f, o, p: f.select(x=p.max_horizontal("a", "b"), y=p.min_horizontal("a", "b", 2)),
    "sum_horizontal": lambda f, o, p: f.select(x=p.sum_horizontal("a", "b"), y=p.mean_horizontal(p.col("a", "b"))),
    "any_horizontal": lambda f, o, p: f.select(
        x=p.any_horizontal("t", p.col("a") > 2), y=p.all_horizontal("t", p.col("a") > 2)),
    "concat_str": lambda f, o, p: f.select(
        x=p.concat_str("k", "s", separator="/"), y=p.concat_str(["k", "s"], separator="/", ignore_nulls=True)),
    "coalesce": lambda f, o, p: f.select(x=p.coalesce("a", p.col("b"), 0)),
    "operators by name": lambda f, o, p: f.select(
        x=p.col("a").sub(1).mul(2).truediv(4).neg(), y=p.col("t").and_(p.col("a") > 1), z=p.col("t").or_(p.col("a") > 1)),
    "ne_missing": lambda f, o, p: f.select(x=p.col("a").ne_missing(1), y=p.col("b").is_not_nan()),
    "replace": lambda f, o, p: f.select(x=p.col("k").replace({"x": "z", "y": "q"}), y=p.col("a").replace({1: 10})),
    "replace_strict": lambda f, o, p: f.select(x=p.col("k").replace_strict({"x": 1, "y": 2}, default=0)),
    "is_duplicated": lambda f, o, p: f.select(
        x=p.col("a").is_duplicated(), y=p.col("k").is_unique(), z=p.col("a").is_first_distinct(),
        w=p.col("a").is_last_distinct()),
    "backward_fill": lambda f, o, p: f.select(x=p.col("a").backward_fill(), y=p.col("k").fill_null(strategy="backward")),
    "fill_null strategies": lambda f, o, p: f.select(
        x=p.col("a").fill_null(strategy="forward"), y=p.col("b").fill_null(strategy="max"),
        z=p.col("b").fill_null(strategy="mean"), w=p.col("a").fill_null(strategy="zero")),
    "pct_change": lambda f, o, p: f.select(x=p.col("z").dt.day().cast(p.Int64 if p is pl else "BIGINT").pct_change()),
    "log1p": lambda f, o, p: f.select(x=p.col("a").log1p()),
    "rolling_std": lambda f, o, p: f.select(
        x=_day(p).rolling_std(3), y=_day(p).rolling_var(3), z=_day(p).rolling_median(3)),
    "dt keeps dates": lambda f, o, p: f.select(
        x=p.col("d").dt.month_start(), y=p.col("d").dt.truncate("1w"), z=p.col("d").dt.offset_by("1mo"),
        w=p.col("z").dt.month_end(), m=p.col("z").dt.month_start()),
    "dt truncate several": lambda f, o, p: f.select(x=p.col("z").dt.truncate("15m"), y=p.col("z").dt.truncate("2d")),
    "reverse": lambda f, o, p: f.reverse(),
    "gather_every": lambda f, o, p: f.gather_every(2, 1),
    "slice by brackets": lambda f, o, p: f[1:4],
    "columns by brackets": lambda f, o, p: f[["k", "a"]],
    "cast": lambda f, o, p: f.select("a", "b").cast({"a": p.Float64 if p is pl else "DOUBLE"}),
    "drop not strict": lambda f, o, p: f.drop("a", "nope", strict=False),
    "unique in order": lambda f, o, p: f.select("k", "t").unique(maintain_order=True),
    "group_by in order": lambda f, o, p: f.group_by("k", maintain_order=True).agg(p.col("a").sum().fill_null(0).alias("s")),
}  # fmt: skip
UNORDERED: dict[str, Idiom] = {
    "explode of groups": lambda f, o, p: f.group_by("k").agg(p.col("a"), p.col("s")).explode("a", "s"),
    "lists of groups": lambda f, o, p: f.group_by("k").agg(p.col("a").alias("of")).select("k", p.col("of").list.len() * 1),
    "group_by agg": lambda f, o, p: f.group_by("k").agg(p.col("a").sum()),
    "group_by several": lambda f, o, p: f.group_by("k", "t").agg(p.col("a").sum(), n=p.len() if p is pl else gquery.fn.count()),
    "group_by expr": lambda f, o, p: f.group_by((p.col("b") > 1).alias("g")).agg(p.col("a").max()),
    "group_by mean": lambda f, o, p: f.group_by("k").agg(p.col("a").mean(), p.col("b").min(), s=p.col("s").max()),
    "group_by len": lambda f, o, p: f.group_by("k").len(),
    "group_by sum of all": lambda f, o, p: f.drop_nulls().select("k", "a", "b").group_by("k").sum(),
    "group_by mean of all": lambda f, o, p: f.select("k", "a", "b").group_by("k").mean(),
    "group_by min of all": lambda f, o, p: f.select("k", "a", "b").group_by("k").min(),
    "group_by max of all": lambda f, o, p: f.select("k", "a", "b").group_by("k").max(),
    "group_by n_unique": lambda f, o, p: f.group_by("k").n_unique(),
    "group_by first": lambda f, o, p: f.group_by("k").first(),
    "group_by median": lambda f, o, p: f.select("k", "a", "b").group_by("k").median(),
    "agg filter": lambda f, o, p: f.group_by("k").agg(p.col("a").filter(p.col("b") > 1).count().alias("n")),
    "n_unique": lambda f, o, p: f.select(p.col("a").n_unique()),
    "null_count": lambda f, o, p: f.select(p.col("a").null_count()),
    "count": lambda f, o, p: f.select(p.col("a").count(), n=p.col("a").len()),
    "std and var": lambda f, o, p: f.select(
        a=p.col("a").std(), b=p.col("a").var(), c=p.col("a").std(ddof=0), d=p.col("a").var(ddof=0)),
    "median": lambda f, o, p: f.select(p.col("b").median()),
    "quantile": lambda f, o, p: f.select(p.col("b").quantile(0.3, interpolation="linear")),
    "any and all": lambda f, o, p: f.select(x=p.col("t").any(), y=p.col("t").all()),
    "product": lambda f, o, p: f.select(p.col("b").product()),
    "unique": lambda f, o, p: f.select("k", "t").unique(),
    "top_k": lambda f, o, p: f.select("a").top_k(2, by="a"),
    "bottom_k": lambda f, o, p: f.select("a").bottom_k(2, by="a"),
    "join": lambda f, o, p: f.join(o, on="k"),
    "join left": lambda f, o, p: f.join(o, on="k", how="left"),
    "join semi": lambda f, o, p: f.join(o, on="k", how="semi"),
    "join anti": lambda f, o, p: f.join(o, on="k", how="anti"),
    "join cross": lambda f, o, p: f.join(o, how="cross"),
    "join left_on": lambda f, o, p: f.select("k", "a").join(o.rename({"k": "q"}), left_on="k", right_on="q", how="semi"),
    "corr": lambda f, o, p: f.select(r=p.corr("a", "b") if p is pl else p.col("a").corr(p.col("b"))),
    "len": lambda f, o, p: f.select(p.len()),
    "agg of all": lambda f, o, p: f.drop("s", "t", "d", "z").group_by("k").agg(p.all().max()),
    "agg of several": lambda f, o, p: f.group_by("k").agg(p.col("a", "b").mean().name.suffix("_mean"), p.len()),
    "sum by name": lambda f, o, p: f.select(p.sum("a", "b")),
    "max by name": lambda f, o, p: f.select(p.max("a"), p.min("b"), c=p.count("t")),
    "aggregate of an aggregate": lambda f, o, p: f.group_by("t").agg(x=(p.col("a") - p.col("a").mean()).abs().max()),
    "filter in an aggregate": lambda f, o, p: f.group_by("t").agg(x=p.col("a").filter(p.col("a") > p.col("a").mean()).count()),
    "group_by head": lambda f, o, p: f.select("k", "a").group_by("k").head(1),
    "group_by tail": lambda f, o, p: f.select("k", "a").group_by("k").tail(2),
    "having": lambda f, o, p: f.group_by("k").having(p.len() > 1).agg(p.col("b").max()),
    "frame sum": lambda f, o, p: f.select("a", "b", "t").sum(),
    "frame mean": lambda f, o, p: f.select("a", "b", "t", "s").mean(),
    "frame min": lambda f, o, p: f.select("a", "b", "s", "d").min(),
    "frame max": lambda f, o, p: f.select("a", "b", "s", "d").max(),
    "frame median": lambda f, o, p: f.select("a", "b").median(),
    "frame std": lambda f, o, p: f.select("a", "b", "s").std(),
    "frame var": lambda f, o, p: f.select("a", "b").var(ddof=0),
    "frame count": lambda f, o, p: f.count(),
    "frame null_count": lambda f, o, p: f.null_count(),
    "has_nulls": lambda f, o, p: f.select(p.col("a").has_nulls().alias("h")),
}  # fmt: skip


@pytest.fixture(scope="module")
def frames() -> Iterator[tuple[Relation, Relation]]:
    with gquery.connect(device="python") as db:
        yield db.from_data(TABLE), db.from_data(OTHER)


@pytest.mark.parametrize("name", ORDERED)
def test_ordered(name: str, frames: tuple[Relation, Relation]) -> None:
    ours, theirs = _both(ORDERED[name], frames)
    _compare(ours, theirs)


@pytest.mark.parametrize("name", UNORDERED)
def test_unordered(name: str, frames: tuple[Relation, Relation]) -> None:
    ours, theirs = _both(UNORDERED[name], frames)
    _compare(sorted(ours, key=repr), sorted(theirs, key=repr))


def test_there_are_a_hundred() -> None:
    assert len(ORDERED) + len(UNORDERED) >= 100


def _both(idiom: Idiom, frames: tuple[Relation, Relation]) -> tuple[list[Any], list[Any]]:
    theirs = idiom(pl.from_arrow(TABLE), pl.from_arrow(OTHER), pl)
    ours = idiom(*frames, gquery)
    assert len(ours.columns) == len(theirs.columns)
    # a column without a name of its own has SQL's: sum(a), where Polars calls it a
    assert [c for c in ours.columns if "(" not in c and "CASE" not in c] == [
        c for c, own in zip(theirs.columns, ours.columns, strict=True) if "(" not in own and "CASE" not in own
    ]
    return [_plain(r) for r in ours.fetchall()], [_plain(r) for r in theirs.rows()]


def _plain(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Values that compare across libraries: their numbers are of different types."""
    return tuple(float(v) if isinstance(v, int | float | Decimal) and not isinstance(v, bool) else v for v in row)


def _compare(ours: list[Any], theirs: list[Any]) -> None:
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert all(_is_same(x, y) for x, y in zip(a, b, strict=True)), f"{ours}\n{theirs}"


def _is_same(x: Any, y: Any) -> bool:
    if isinstance(x, float) and isinstance(y, float):
        return math.isclose(x, y, rel_tol=1e-9) or (math.isnan(x) and math.isnan(y))
    return bool(x == y)
