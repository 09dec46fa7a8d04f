"""The SQL that gquery runs, construct by construct: each with a statement that shows it.

The reference in the docs is made of this list, and a test runs every statement on every target beside DuckDB, so that what the
docs say is so. Functions and aggregates are declared where they are defined (`gquery.functions`). What is refused stands in
`gquery.sql.supported`.

Statements are over ``t(a INTEGER, b DOUBLE, s VARCHAR, day DATE, moment TIMESTAMP)`` and ``u(a, lo, hi)`` of INTEGERs.
"""

from __future__ import annotations

from gquery.runtime.records import dataclass


@dataclass(frozen=True)
class Construct:
    """A part of SQL: its name as readers look for it, and a statement; ``ordered``: its rows have an order."""

    name: str
    sql: str
    ordered: bool = False


SURFACE: dict[str, tuple[Construct, ...]] = {
    "Rows and columns": (
        Construct("SELECT list, aliases", "SELECT a, a + 1 AS next, upper(s) FROM t"),
        Construct("An alias in the entries behind it", "SELECT a * 2 AS x, x + 1 AS y FROM t"),
        Construct("`*`, EXCLUDE, REPLACE, RENAME",
                  "SELECT * EXCLUDE (day, moment) REPLACE (a + 1 AS a) RENAME (s AS word) FROM t"),
        Construct("COLUMNS", "SELECT min(COLUMNS('^(a|b)$')) FROM t"),
        Construct("COLUMNS of a list, `* LIKE`, `* GLOB`", "SELECT COLUMNS(['a', 's']) FROM t"),
        Construct("COLUMNS by a function of names", "SELECT COLUMNS(lambda c: c IN ('a', 's')) FROM t"),
        Construct("FROM first", "FROM t SELECT a, s WHERE a > 1"),
        Construct("WHERE", "SELECT a FROM t WHERE a > 1 AND s LIKE 'b%'"),
        Construct("DISTINCT", "SELECT DISTINCT s FROM t"),
        Construct("DISTINCT ON", "SELECT DISTINCT ON (s) s, a FROM t ORDER BY s, a DESC", ordered=True),
        Construct("ORDER BY, NULLS FIRST and LAST", "SELECT a, s FROM t ORDER BY a DESC NULLS LAST, s", ordered=True),
        Construct("ORDER BY ALL", "SELECT s, a FROM t ORDER BY ALL", ordered=True),
        Construct("LIMIT and OFFSET", "SELECT a FROM t ORDER BY a, s LIMIT 2 OFFSET 1", ordered=True),
        Construct("LIMIT by an expression or a subquery", "SELECT a FROM t ORDER BY a, s LIMIT (SELECT min(a) + 1 FROM t)",
                  ordered=True),
        Construct("LIMIT with a percentage", "SELECT a FROM t ORDER BY a, s LIMIT 50%", ordered=True),
        Construct("Samples", "SELECT count(*) FROM (SELECT * FROM t USING SAMPLE 3 ROWS) v"),
        Construct("PIVOT", "PIVOT t ON s USING sum(a) AS total, count(*) AS rows GROUP BY day"),
        Construct("PIVOT in FROM", "SELECT * FROM t PIVOT (sum(a) FOR s IN ('a', 'b' AS bees) GROUP BY day) v"),
        Construct("UNPIVOT", "UNPIVOT u ON lo, hi AS high INTO NAME bound VALUE n"),
        Construct("UNPIVOT in FROM", "SELECT * FROM u UNPIVOT INCLUDE NULLS ((n, m) FOR bound IN ((lo, a), (hi, a)))"),
        Construct("SUMMARIZE", "SELECT column_name, min, max, count FROM (SUMMARIZE t)"),
        Construct("DESCRIBE, SHOW", "SELECT column_name, column_type FROM (DESCRIBE t)"),
        Construct("pragma_table_info(), duckdb_tables(), duckdb_columns()", "SELECT name, type FROM pragma_table_info('t')"),
        Construct("duckdb_views(), duckdb_sequences()", "SELECT count(*) FROM duckdb_views() WHERE NOT internal"),
        Construct("duckdb_schemas()", "SELECT DISTINCT schema_name FROM duckdb_schemas() WHERE schema_name = 'main'"),
        Construct("getvariable(), behind SET VARIABLE", "SELECT a FROM t WHERE a > coalesce(getvariable('least'), 1)"),
        Construct("glob(), read_text(), read_blob()", "SELECT file FROM glob('nothing/*.csv')"),
        Construct("information_schema", "SELECT count(*) > 0 FROM information_schema.columns WHERE table_name = 't'"),
        Construct("VALUES", "SELECT * FROM (VALUES (1, 'one'), (2, 'two')) v(n, name)"),
        Construct("Ranges", "SELECT * FROM range(1, 10, 3)"),
        Construct("Ranges of values of a row", "SELECT t.a, r.k FROM t, range(t.a) r(k)"),
        Construct("json_each(), json_tree()", "SELECT a, r.key, r.value FROM t, json_each(json_object('n', a, 's', s)) r"),
        Construct("json_transform()", """SELECT json_transform('{"x": [1, 2]}', '{"x": ["INTEGER"]}')"""),
        Construct("rowid", "SELECT rowid, a FROM t WHERE rowid IN (SELECT min(rowid) FROM t GROUP BY s)"),
        Construct("Ranges of moments", "SELECT * FROM range(DATE '2024-01-01', DATE '2024-01-04', INTERVAL 12 HOUR)"),
    ),
    "Joins": (
        Construct("INNER, LEFT, RIGHT, FULL", "SELECT t.a, u.lo FROM t FULL JOIN u ON t.a = u.a AND u.lo > 0"),
        Construct("CROSS, and tables with commas", "SELECT t.a, u.a FROM t, u"),
        Construct("USING and NATURAL", "SELECT a, s, lo FROM t NATURAL LEFT JOIN u"),
        Construct("SEMI and ANTI", "SELECT a, s FROM t ANTI JOIN u USING (a)"),
        Construct("Inequalities and ranges", "SELECT t.a, u.a FROM t JOIN u ON t.a BETWEEN u.lo AND u.hi"),
        Construct("ASOF", "SELECT t.a, u.lo FROM t ASOF LEFT JOIN u ON t.a >= u.lo"),
        Construct("ASOF RIGHT and FULL", "SELECT t.b, u.lo FROM t ASOF FULL JOIN u ON t.a >= u.lo"),
        Construct("POSITIONAL", "SELECT t.a, u.lo FROM t POSITIONAL JOIN u"),
        Construct("LATERAL", "SELECT t.a, v.n FROM t, LATERAL (SELECT count(*) AS n FROM u WHERE u.lo <= t.a) v"),
    ),
    "Subqueries": (
        Construct("Scalar", "SELECT a FROM t WHERE b > (SELECT avg(b) FROM t)"),
        Construct("EXISTS", "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a)"),
        Construct("IN and NOT IN", "SELECT a FROM t WHERE a NOT IN (SELECT a FROM u WHERE a IS NOT NULL)"),
        Construct("ANY, ALL", "SELECT a FROM t WHERE a >= ALL (SELECT lo FROM u WHERE lo IS NOT NULL)"),
        Construct("Rows of values", "SELECT a FROM t WHERE (a, s) IN (SELECT a, 'b' FROM u)"),
        Construct("Correlated, in any place", "SELECT a, (SELECT max(hi) FROM u WHERE u.a = t.a) FROM t"),
        Construct("CTEs, AS MATERIALIZED", "WITH v AS MATERIALIZED (SELECT a + 1 AS n FROM t) SELECT n FROM v WHERE n > 1"),
        Construct("Recursive CTEs",
                  "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT * FROM r"),
    ),
    "Sets": (
        Construct("UNION, UNION ALL", "SELECT a FROM t UNION SELECT lo FROM u"),
        Construct("INTERSECT, EXCEPT", "SELECT a FROM t EXCEPT SELECT lo FROM u"),
        Construct("INTERSECT ALL, EXCEPT ALL", "SELECT a FROM t INTERSECT ALL SELECT lo FROM u"),
        Construct("UNION BY NAME", "SELECT a, s FROM t UNION ALL BY NAME SELECT lo, a FROM u"),
    ),
    "Groups": (
        Construct("GROUP BY, HAVING", "SELECT s, sum(a) FROM t GROUP BY s HAVING count(*) > 1"),
        Construct("GROUP BY ALL, by place, by alias", "SELECT s, a % 2 AS odd, count(*) FROM t GROUP BY ALL"),
        Construct("ROLLUP, CUBE, GROUPING SETS", "SELECT s, a, count(*), grouping(s, a) FROM t GROUP BY ROLLUP (s, a)"),
        Construct("FILTER", "SELECT count(*) FILTER (WHERE a > 1) FROM t"),
        Construct("DISTINCT in aggregates", "SELECT count(DISTINCT s), sum(DISTINCT a) FROM t"),
        Construct("ORDER BY in aggregates", "SELECT first(a ORDER BY s DESC, a), string_agg(s, ',' ORDER BY s) FROM t"),
        Construct("WITHIN GROUP", "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY b) FROM t"),
    ),
    "Windows": (
        Construct("PARTITION BY, ORDER BY", "SELECT a, rank() OVER (PARTITION BY s ORDER BY a) FROM t"),
        Construct("ROWS, RANGE, GROUPS",
                  "SELECT sum(a) OVER (ORDER BY a, s ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING), "
                  "count(*) OVER (ORDER BY a RANGE BETWEEN 1 PRECEDING AND CURRENT ROW), "
                  "max(a) OVER (ORDER BY a GROUPS 1 PRECEDING) FROM t"),
        Construct("EXCLUDE", "SELECT a, sum(a) OVER (ORDER BY a, s ROWS 2 PRECEDING EXCLUDE CURRENT ROW) FROM t"),
        Construct("IGNORE NULLS", "SELECT last_value(a IGNORE NULLS) OVER (ORDER BY day, s) FROM t"),
        Construct("WINDOW", "SELECT lag(a) OVER w, lead(a) OVER w FROM t WINDOW w AS (ORDER BY a, s)"),
        Construct("QUALIFY", "SELECT a, s FROM t QUALIFY row_number() OVER (PARTITION BY s ORDER BY a) = 1"),
        Construct("FILTER and DISTINCT", "SELECT count(DISTINCT a) FILTER (WHERE a > 1) OVER (PARTITION BY s) FROM t"),
        Construct("Over groups", "SELECT s, sum(a), rank() OVER (ORDER BY sum(a)) FROM t GROUP BY s"),
    ),
    "Lists": (
        Construct("Lists of values", "SELECT [a, a + 1], ['x', s] FROM t"),
        Construct("ARRAY", "SELECT ARRAY[a, 2], ARRAY(SELECT u.hi FROM u WHERE u.a = t.a ORDER BY u.lo DESC) FROM t"),
        Construct("Elements and slices", "SELECT string_split(s || ',z', ',')[1], [a, 2, 3][2:], [a][-1] FROM t"),
        Construct("Functions over lists", "SELECT list_sum([a, 2]), list_contains([1, 2], a), list_sort([3, a]) FROM t"),
        Construct("The n least or greatest", "SELECT min(a, 2), max(s, 3), arg_min(s, (a, s), 2) FROM t"),
        Construct("Aggregates into lists", "SELECT s, list(a ORDER BY a), len(list(b)) FROM t GROUP BY s"),
        Construct("Lists as keys", "SELECT [s] AS k, count(*) FROM t GROUP BY k ORDER BY k"),
        Construct("Casts", "SELECT [a]::DOUBLE[], [1, 2]::VARCHAR FROM t"),
        Construct("Lambda functions",
                  "SELECT list_transform([1, a], lambda x: x + a), list_filter([1, 2], (x, i) -> i > 1) FROM t"),
        Construct("List comprehensions", "SELECT [x + a FOR x IN [1, 2, a] IF x > 1] FROM t"),
        Construct("IN of a list", "SELECT a IN [1, a], s NOT IN string_split('a,b', ',') FROM t"),
        Construct("ANY and ALL of a list", "SELECT a FROM t WHERE a = ANY([a, 1]) OR a > ALL(range(a))"),
        Construct("UNNEST", "SELECT a, unnest([a, 2]), unnest(['x']) FROM t"),
        Construct("UNNEST in FROM, WITH ORDINALITY", "SELECT a, x, i FROM t, unnest([a, 2]) WITH ORDINALITY AS v(x, i)"),
    ),
    "Structs and maps": (
        Construct("Structs", "SELECT {'a': a, 'b': s}, struct_pack(x := a), (a, s), row(a) FROM t"),
        Construct("Fields", "SELECT r.x, r['y'], r.* FROM (SELECT {'x': a, 'y': s} AS r FROM t)"),
        Construct("Unnested structs", "SELECT unnest({'x': a, 'y': s}) FROM t"),
        Construct("Structs as keys", "SELECT {'x': s} AS r, count(*) FROM t GROUP BY r ORDER BY r"),
        Construct("Casts of structs", "SELECT {'x': a}::STRUCT(x DOUBLE, y VARCHAR), {'x': a}::VARCHAR FROM t"),
        Construct("Maps", "SELECT MAP {'x': a}['x'], map([1, 2], [a, 0])[1], map_keys(MAP {'x': a}) FROM t"),
        Construct("Histograms", "SELECT histogram(a), histogram(a, [1, 5]), len(approx_top_k(s, 1)) FROM t"),
    ),
    "Expressions": (
        Construct("CASE, COALESCE, NULLIF", "SELECT CASE WHEN a > 1 THEN 'many' ELSE coalesce(s, '?') END FROM t"),
        Construct("CAST, TRY_CAST, `::`", "SELECT a::VARCHAR, TRY_CAST(s AS INTEGER) FROM t"),
        Construct("IS DISTINCT FROM", "SELECT a FROM t WHERE a IS NOT DISTINCT FROM NULL"),
        Construct("Methods", "SELECT s.upper(), (a + 1).abs(), s.string_split('b').len() FROM t"),
        Construct("LIKE, ILIKE, SIMILAR TO", "SELECT s FROM t WHERE s ILIKE 'B%' OR s SIMILAR TO '[a-c]'"),
        Construct("COLLATE NOCASE, NOACCENT", "SELECT s FROM t WHERE s COLLATE NOCASE = 'B' ORDER BY s COLLATE NOACCENT"),
        Construct("Dates and intervals", "SELECT day + INTERVAL 1 MONTH, moment - INTERVAL '2 hours' FROM t"),
        Construct("Computed intervals", "SELECT day + to_days(a), moment - INTERVAL (a) HOUR, epoch(moment - day) FROM t"),
        Construct("Intervals as values", "SELECT moment - day AS x, max(age(moment, day)) FROM t GROUP BY x ORDER BY x"),
        Construct("EXTRACT", "SELECT extract(year FROM day), date_part('hour', moment) FROM t"),
    ),
}  # fmt: skip
