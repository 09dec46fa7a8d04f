"""What is asked: a question in SQL, which gquery and DuckDB run as it stands, and in Polars' expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Frames = Mapping[str, Any]  # of Polars, by name
Exprs = Callable[[Any], Any]  # expressions of Polars, from its module
SERIES_WINDOW = 1_000  # rows of the window that the benchmark takes as its usual one, of 1e6 and more


@dataclass(frozen=True)
class Question:
    """``polars`` gives a LazyFrame of the same rows; ``reads`` are its tables."""

    name: str
    sql: str
    reads: tuple[str, ...]
    polars: Callable[[Frames], Any]


def questions() -> list[Question]:
    """All questions in their order."""
    return [*_groups(), *_joins(), *_windows()]


def _groups() -> Iterator[Question]:
    def ask(number: int, keys: str, values: str, exprs: Exprs) -> Question:
        names = keys.split(", ")
        sql = f"SELECT {keys}, {values} FROM groups GROUP BY {keys}"
        return Question(
            f"group/{number}", sql, ("groups",), lambda f: f["groups"].group_by(names).agg(exprs(_polars()))
        )

    yield ask(1, "id1", "sum(v1) AS v1", lambda p: p.col("v1").sum())
    yield ask(2, "id1, id2", "sum(v1) AS v1", lambda p: p.col("v1").sum())
    yield ask(3, "id3", "sum(v1) AS v1, avg(v3) AS v3", lambda p: [p.col("v1").sum(), p.col("v3").mean()])
    yield ask(4, "id4", "avg(v1) AS v1, avg(v2) AS v2, avg(v3) AS v3", lambda p: p.col("v1", "v2", "v3").mean())
    yield ask(5, "id6", "sum(v1) AS v1, sum(v2) AS v2, sum(v3) AS v3", lambda p: p.col("v1", "v2", "v3").sum())
    yield ask(6, "id4, id5", "median(v3) AS median_v3, stddev(v3) AS sd_v3",
              lambda p: [p.col("v3").median().alias("median_v3"), p.col("v3").std().alias("sd_v3")])  # fmt: skip
    yield ask(7, "id3", "max(v1) - min(v2) AS range_v1_v2",
              lambda p: (p.col("v1").max() - p.col("v2").min()).alias("range_v1_v2"))  # fmt: skip
    yield Question(
        "group/8",
        "SELECT id6, v3 AS largest2_v3 FROM (SELECT id6, v3, row_number() OVER (PARTITION BY id6 ORDER BY v3 DESC) AS n "
        "FROM groups WHERE v3 IS NOT NULL) s WHERE n <= 2",
        ("groups",),
        lambda f: f["groups"].group_by("id6").agg(_polars().col("v3").top_k(2)).explode("v3"),
    )
    yield ask(9, "id2, id4", "pow(corr(v1, v2), 2) AS r2", lambda p: (p.corr("v1", "v2") ** 2).alias("r2"))
    yield ask(10, "id1, id2, id3, id4, id5, id6", "sum(v3) AS v3, count(*) AS count",
              lambda p: [p.col("v3").sum(), p.len().alias("count")])  # fmt: skip


def _joins() -> Iterator[Question]:
    """The columns of x, and from the right side another id and its value."""

    def ask(number: int, right: str, key: str, label: str, kind: str = "") -> Question:
        sql = f"SELECT x.*, {right}.{label} AS {right}_{label}, {right}.v2 FROM x {kind} JOIN {right} ON x.{key} = {right}.{key}"

        def run(f: Frames) -> Any:
            wanted = f[right].select(key, _polars().col(label).alias(f"{right}_{label}"), "v2")
            return f["x"].join(wanted, on=key, how="left" if kind else "inner")

        return Question(f"join/{number}", sql, ("x", right), run)

    yield ask(1, "small", "id1", "id4")
    yield ask(2, "medium", "id2", "id5")
    yield ask(3, "medium", "id2", "id5", "LEFT")
    yield ask(4, "medium", "id5", "id2")
    yield ask(5, "big", "id3", "id6")


def _windows() -> Iterator[Question]:
    def ask(number: int, values: str, exprs: Exprs) -> Question:
        sql = f"SELECT id1, {values} FROM series"
        return Question(f"window/{number}", sql, ("series",), lambda f: f["series"].select("id1", *exprs(_polars())))

    def rows(width: int) -> str:
        return f"OVER (ORDER BY id1 ROWS BETWEEN {width - 1} PRECEDING AND CURRENT ROW)"

    def mean(name: str, width: int, of: str = "v1") -> Exprs:
        return lambda p: [p.col(of).rolling_mean(width, min_samples=1).alias(name)]

    w = SERIES_WINDOW
    near, far = rows(w - 50), rows(w + 50)
    yield ask(1, f"avg(v1) {rows(w)} AS mean", mean("mean", w))
    yield ask(2, f"avg(v1) {rows(w // 10)} AS mean", mean("mean", w // 10))
    yield ask(3, f"avg(v1) {rows(w * 10)} AS mean", mean("mean", w * 10))
    yield ask(4, f"min(v1) {rows(w)} AS least", lambda p: [p.col("v1").rolling_min(w, min_samples=1).alias("least")])
    yield ask(5, f"median(v1) {rows(w)} AS mid", lambda p: [p.col("v1").rolling_median(w, min_samples=1).alias("mid")])
    four = [mean(n, w + d, v) for n, v, d in (("a", "v1", -50), ("b", "v1", 50), ("c", "v2", -50), ("d", "v2", 50))]
    yield ask(6, f"avg(v1) {near} AS a, avg(v1) {far} AS b, avg(v2) {near} AS c, avg(v2) {far} AS d",
              lambda p: [x for e in four for x in e(p)])  # fmt: skip
    yield ask(7, f"avg(v1) OVER (ORDER BY id2 RANGE BETWEEN {w * 50} PRECEDING AND CURRENT ROW) AS mean",
              lambda p: [p.col("v1").rolling_mean_by("id2", f"{w * 50 + 1}i").alias("mean")])  # fmt: skip
    yield ask(8, "rank() OVER (ORDER BY v1) AS place", lambda p: [p.col("v1").rank("min").cast(p.Int64).alias("place")])
    yield ask(9, "lag(v1) OVER (ORDER BY id1) AS before, lead(v1) OVER (ORDER BY id1) AS behind",
              lambda p: [p.col("v1").shift(1).alias("before"), p.col("v1").shift(-1).alias("behind")])  # fmt: skip
    yield ask(10, "sum(v1) OVER (PARTITION BY id1 % 1000 ORDER BY id2) AS running",
              lambda p: [p.col("v1").cum_sum().over(p.col("id1") % 1000).alias("running")])  # fmt: skip


def _polars() -> Any:
    """The library, which only its own questions want."""
    import polars

    return polars
