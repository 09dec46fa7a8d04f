"""Expressions with an untyped NULL as each argument: of every function, aggregate and window function that gquery declares, under
the signatures that DuckDB has for the name and in the place of each argument of the declared example; and of the operators."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import duckdb

from gquery.functions import AGGREGATES, EXAMPLES
from gquery.functions.aggregates import ALIASES
from gquery.functions.windows import WINDOWS
from tests.duckdb_overloads import public_names

COLUMNS = {
    "BOOLEAN": "b", "TINYINT": "i1", "SMALLINT": "i2", "INTEGER": "i", "BIGINT": "i8", "UTINYINT": "u1", "USMALLINT": "u2",
    "UINTEGER": "u4", "UBIGINT": "u8", "FLOAT": "r", "DOUBLE": "f", "DECIMAL": "d", "DATE": "dt", "TIMESTAMP": "ts",
    "TIMESTAMP WITH TIME ZONE": "tz", "TIME": "tm", "INTERVAL": "iv", "VARCHAR": "s", "JSON": "j", "UUID": "u", "BLOB": "bl",
    "ANY": "i", "T": "i", "K": "s", "V": "i", "T[]": "l", "ANY[]": "l", "BIGINT[]": "l", "VARCHAR[]": "ls", "DOUBLE[]": "lf",
    "FLOAT[]": "lr", "BOOLEAN[]": "lb", "STRUCT": "st", "MAP(K, V)": "mp", "STRUCT(K, V)[]": "lst", "K[]": "ls", "V[]": "l",
    "T[][]": "ll",
}  # fmt: skip
"""A column of each type that DuckDB's signatures name."""
TABLE = """CREATE TABLE t AS SELECT true AS b, 1::TINYINT AS i1, 1::SMALLINT AS i2, 1::INTEGER AS i, 1::BIGINT AS i8,
1::UTINYINT AS u1, 1::USMALLINT AS u2, 1::UINTEGER AS u4, 1::UBIGINT AS u8, 0.5::FLOAT AS r, 0.5::DOUBLE AS f,
0.5::DECIMAL(5, 2) AS d, DATE '2020-01-02' AS dt, TIMESTAMP '2020-01-02 03:04:05' AS ts,
TIMESTAMPTZ '2020-01-02 03:04:05+00' AS tz, TIME '03:04:05' AS tm,
INTERVAL 1 DAY AS iv, 'a' AS s, '{"a": 1}'::JSON AS j, '12345678-1234-1234-1234-123456789abc'::UUID AS u, 'ab'::BLOB AS bl,
[1, NULL] AS l, ['a'] AS ls, [0.5::DOUBLE] AS lf, [0.5::FLOAT] AS lr, [true] AS lb, {'a': 1} AS st, MAP {'a': 1} AS mp,
[{'k': 'a', 'v': 1}] AS lst, [[1]] AS ll"""


def split(text: str) -> list[str]:
    """Arguments, at the commas outside parentheses and quotes.

    >>> split("[1, 2], f(a, 'x, y')")
    ['[1, 2]', "f(a, 'x, y')"]
    """
    parts: list[str] = []
    depth, quoted, start = 0, False, 0
    for n, c in enumerate(text):
        if c == "'":
            quoted = not quoted
        elif not quoted:
            depth += (c in "([{") - (c in ")]}")
            if c == "," and not depth:
                parts.append(text[start:n].strip())
                start = n + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts


def calls_in(sql: str) -> Iterator[tuple[str, str, list[str], str]]:
    """The calls in an expression: what stands before it, the name, arguments, what stands behind."""
    for found in re.finditer(r"(\w+)\(", sql):
        depth, quoted, end = 0, False, None
        for n in range(found.end() - 1, len(sql)):
            c = sql[n]
            if c == "'":
                quoted = not quoted
            elif not quoted:
                depth += (c in "([{") - (c in ")]}")
                if not depth:
                    end = n
                    break
        if end is not None:
            yield sql[: found.start()], found[1], split(sql[found.end() : end]), sql[end + 1 :]


def with_nulls(args: Sequence[str]) -> Iterator[list[str]]:
    """The arguments with a NULL in the place of each, and in that of all."""
    for n in range(len(args)):
        yield [*args[:n], "NULL", *args[n + 1 :]]
    if len(args) > 1:
        yield ["NULL"] * len(args)


def signatures(names: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """Arguments of every type that DuckDB has a signature for."""
    asked = set(names)
    rows = duckdb.sql("SELECT function_name, parameter_types, varargs FROM duckdb_functions() WHERE internal").fetchall()
    for name, types, varargs in rows:
        if name not in asked:
            continue
        for more in range(3 if varargs else 1):
            all_types = [*types, *[varargs] * more]
            known = [COLUMNS.get(re.sub(r"\(\d.*\)", "", t or "ANY")) for t in all_types]
            args = [a for a in known if a is not None]
            if len(args) == len(all_types):
                yield name, args
                if "ANY" in all_types:
                    for other in ("s", "l", "d"):
                        yield name, [other if t == "ANY" else a for t, a in zip(all_types, args, strict=True)]


def scalars() -> Iterator[str]:
    """Calls of scalar functions."""
    names = public_names()
    for name in names:
        for count in range(1, 6):
            yield f"{name}({', '.join(['NULL'] * count)})"
    for name, args in signatures(names):
        for a in with_nulls(args):
            yield f"{name}({', '.join(a)})"
    for _, sql, _ in EXAMPLES:
        for before, name, args, behind in calls_in(sql):
            for a in with_nulls(args):
                yield f"{before}{name}({', '.join(a)}){behind}"


def aggregates() -> Iterator[str]:
    """Calls of aggregates, of whole tables and over windows."""
    names = sorted({n for n in (*AGGREGATES, *ALIASES) if not n.startswith("_")})
    calls = [f"{name}({', '.join(['NULL'] * count)})" for name in names for count in range(1, 4)]
    calls += [f"{name}({', '.join(a)})" for name, args in signatures(names) for a in with_nulls(args)]
    for f in AGGREGATES.values():
        for before, name, args, behind in calls_in(re.sub(r"\bx\b", "i", f.example[0])):
            calls += [f"{before}{name}({', '.join(a)}){behind}" for a in with_nulls(args)]
    yield from calls
    for name in names:
        for over in (" OVER ()", " OVER (ORDER BY i)", " OVER (ORDER BY i ROWS 1 PRECEDING)", " FILTER (WHERE b)"):
            yield f"{name}(NULL){over}"
        yield f"{name}(DISTINCT NULL)"
        yield f"{name}(i) FILTER (WHERE NULL)"
        yield f"{name}(CASE WHEN b THEN NULL END)"


def windows() -> Iterator[str]:
    """Calls of functions that are only called over a window."""
    for f in WINDOWS.values():
        for count in range(1, 4):
            yield f"{f.name}({', '.join(['NULL'] * count)}) OVER (ORDER BY i)"
        for args in (["i"], ["s"], ["i", "1"], ["i", "1", "0"], ["s", "1", "'x'"]):
            for a in with_nulls(args):
                yield f"{f.name}({', '.join(a)}) OVER (ORDER BY i)"
    yield from ("count(*) OVER (PARTITION BY NULL ORDER BY NULL)", "rank() OVER (ORDER BY NULL)",
                "percentile_cont(NULL) WITHIN GROUP (ORDER BY i)", "quantile_cont(i, [0.5, NULL])", "quantile_cont(NULL, [0.5])",
                "lag(NULL IGNORE NULLS) OVER (ORDER BY i)")  # fmt: skip


_OPERATORS = (
    "+", "-", "*", "/", "//", "%", "**", "^", "||", "&", "|", "<<", ">>", "=", "<>", "<", "<=", ">", ">=", "~", "^@", "->", "->>",
    "LIKE", "ILIKE", "NOT LIKE", "GLOB", "SIMILAR TO", "IS DISTINCT FROM", "IS NOT DISTINCT FROM", "AND", "OR", "AT TIME ZONE",
)  # fmt: skip
_UNARY = ("-$", "+$", "~$", "NOT $", "@$", "$ IS NULL", "$ IS NOT NULL", "$ IS TRUE", "$ IS NOT FALSE")


def operators() -> Iterator[str]:
    """Operators between NULL and columns and constants of all types."""
    for o in _OPERATORS:
        yield f"NULL {o} NULL"
        constants = ("1", "1.5", "'a'", "[1]", "DATE '2020-01-01'", "NULL::INTEGER", "NULL::VARCHAR")
        for c in (*sorted(set(COLUMNS.values())), *constants):
            yield f"NULL {o} {c}"
            yield f"{c} {o} NULL"
    yield from (u.replace("$", "NULL") for u in _UNARY)


_OF_A_COLUMN = """
CASE WHEN b THEN NULL ELSE $ END; CASE WHEN NULL THEN $ END; CASE NULL WHEN $ THEN 1 ELSE 2 END;
CASE $ WHEN NULL THEN 1 ELSE 2 END;
coalesce(NULL, $); NULL IN ($); $ IN (NULL); $ IN (NULL, $); $ NOT IN (NULL); NULL BETWEEN $ AND $; $ BETWEEN NULL AND $;
$ BETWEEN $ AND NULL; $ BETWEEN NULL AND NULL; $[NULL]; (NULL)[$]; $[NULL:1]; $[1:NULL]; $[NULL:NULL]; (NULL)[$:$]; [NULL, $];
[$, NULL]; {'x': NULL, 'y': $}; MAP {NULL: $}; MAP {$: NULL}; (NULL, $) = ($, NULL); row(NULL, $);
NULL = ANY([$]); $ = ANY([NULL]); $ = ANY(NULL); $ <> ALL(NULL); $ < ANY(NULL); NULL = ALL([$]);
(SELECT NULL) = $; $ IN (SELECT NULL); NULL IN (SELECT $);
(SELECT $ WHERE NULL)
"""
_CASTS = """
NULL::@; TRY_CAST(NULL AS @); (NULL + NULL)::@; (NULL || 'a')::@; (CASE WHEN b THEN NULL END)::@
"""
_TYPES = """
BOOLEAN; INTEGER; UTINYINT; DECIMAL(5, 2); DOUBLE; FLOAT; DATE; TIMESTAMP; TIMESTAMPTZ; TIME; INTERVAL; VARCHAR; JSON; UUID; BLOB;
INTEGER[]; STRUCT(a INTEGER); MAP(VARCHAR, INTEGER); INTEGER[][]
"""
_FORMS = """
[NULL]; [NULL, NULL]; {'a': NULL}; MAP {NULL: NULL}; MAP {'a': NULL}; row(NULL); row(NULL, NULL); (NULL, NULL);
(NULL)[1]; (NULL)['a'];
(NULL)[1:2]; (NULL)[:]; (NULL)[NULL]; (NULL).a; [[NULL]]; [NULL][1]; [NULL][NULL]; {'a': NULL}.a; {'a': NULL}['a'];
MAP {'a': NULL}['a']; st[NULL]; mp[NULL]; EXTRACT(year FROM NULL); POSITION(NULL IN s); POSITION(s IN NULL);
SUBSTRING(NULL FROM 1 FOR 2); SUBSTRING(s FROM NULL); SUBSTRING(s FROM 1 FOR NULL); TRIM(NULL); TRIM(BOTH NULL FROM s);
TRIM(LEADING 'a' FROM NULL); INTERVAL (NULL) DAY; NULL COLLATE NOCASE; [x + 1 FOR x IN NULL]; [x FOR x IN l IF NULL];
[NULL FOR x IN l]; list_transform(NULL, lambda x: x + 1); list_transform(l, lambda x: NULL); list_filter(NULL, lambda x: x > 1);
list_filter(l, lambda x: NULL); list_transform([NULL], lambda x: x); list_filter([NULL], lambda x: x IS NULL);
list_transform([NULL], lambda x: x + 1); list_transform([NULL], lambda x: upper(x)); CASE WHEN NULL THEN NULL END;
CASE NULL WHEN NULL THEN 1 ELSE 2 END; CASE WHEN b THEN NULL ELSE NULL END; NULL IN (NULL); NULL NOT IN (NULL);
NULL BETWEEN NULL AND NULL; NULL LIKE 'a' ESCAPE '!'; 'a' LIKE NULL ESCAPE '!'; 'a' LIKE 'a' ESCAPE NULL; (SELECT NULL);
(SELECT NULL) + 1; (SELECT NULL) || 'a'; upper((SELECT NULL)); EXISTS (SELECT NULL); (NULL, 1) = (NULL, 1); (NULL, 1) IN ((1, 1));
NULL IN ((SELECT 1)); ARRAY[NULL]; ARRAY(SELECT NULL); NULL AND TRUE; NULL AND FALSE; NULL OR TRUE; NULL OR FALSE;
upper(CASE WHEN b THEN NULL END); list_sort(CASE WHEN b THEN NULL END); (CASE WHEN b THEN NULL END) + 1;
upper(coalesce(NULL, NULL));
list_sort([]); list_sort([NULL]); list_sum([NULL]); list_concat([NULL], [1]); unnest([NULL]); list_sort(nullif(NULL, 1));
coalesce(NULL || 'a', 1); coalesce(NULL + 1.5, 'a'); upper(min(NULL)); list_sort(list(NULL)); 1 + max(NULL)
"""


def _listed(text: str) -> list[str]:
    return [f.strip() for f in text.split(";")]


def forms() -> Iterator[str]:
    """Casts, CASE, IN, subscripts and what else has a grammar of its own."""
    for form in _listed(_OF_A_COLUMN):
        yield from (form.replace("$", c) for c in sorted(set(COLUMNS.values())))
    for form in _listed(_CASTS):
        yield from (form.replace("@", t) for t in _listed(_TYPES))
    yield from _listed(_FORMS)


_BOUNDS = ("NULL", "NULL, NULL", "NULL, 3", "1, NULL", "NULL, NULL, NULL", "NULL, 3, 1", "1, NULL, 1", "1, 3, NULL",
           "DATE '2020-01-01', NULL, INTERVAL 1 DAY", "NULL, DATE '2020-01-01', INTERVAL 1 DAY",
           "DATE '2020-01-01', DATE '2020-01-03', NULL")  # fmt: skip
_SOURCES = (
    "read_csv", "read_parquet", "read_json", "read_text", "read_blob", "glob", "json_each", "json_tree", "parquet_schema",
    "pragma_table_info",
)  # fmt: skip
_STATEMENTS = """
SELECT unnest(NULL); SELECT i, unnest(NULL) FROM t; SELECT unnest([NULL]); SELECT unnest([NULL, NULL]);
SELECT unnest(NULL::INTEGER[]); SELECT unnest(CASE WHEN b THEN NULL END) FROM t; SELECT upper(unnest([NULL]));
SELECT generate_subscripts(NULL, 1); SELECT generate_subscripts([1], NULL); SELECT * FROM json_each('[1]', NULL);
SELECT * FROM json_each(NULL, '$'); SELECT * FROM (VALUES (NULL)); SELECT * FROM (VALUES (NULL), (1));
SELECT * FROM (VALUES (NULL), ('a')); SELECT * FROM (VALUES (NULL, NULL), ('a', DATE '2020-01-01')); SELECT i FROM t LIMIT NULL;
SELECT i FROM t OFFSET NULL; SELECT i FROM t LIMIT NULL OFFSET NULL; SELECT i FROM t LIMIT NULL%; SELECT i FROM t ORDER BY NULL;
SELECT count(*) FROM t GROUP BY NULL; SELECT NULL, count(*) FROM t GROUP BY NULL; SELECT NULL AS n, count(*) FROM t GROUP BY n;
SELECT NULL AS n, count(*) FROM t GROUP BY ALL; SELECT i FROM t WHERE NULL; SELECT count(*) FROM t HAVING NULL;
SELECT i FROM t QUALIFY NULL; SELECT t.i FROM t JOIN t u ON NULL; SELECT u.i FROM t LEFT JOIN t u ON NULL;
SELECT t.i FROM t JOIN t u ON t.i = NULL; SELECT DISTINCT NULL; SELECT DISTINCT NULL, i FROM t; SELECT NULL UNION SELECT NULL;
SELECT NULL UNION ALL BY NAME SELECT 1; SELECT NULL AS x, count(*) FROM t GROUP BY ROLLUP (x);
WITH RECURSIVE r(n) AS (SELECT NULL UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT * FROM r;
WITH RECURSIVE r(n, m) AS (SELECT 1, NULL UNION ALL SELECT n + 1, NULL FROM r WHERE n < 3) SELECT * FROM r;
SELECT min(NULL) FROM t WHERE FALSE; SELECT i, min(NULL) FROM t GROUP BY i; SELECT count(*) FROM t HAVING min(NULL) IS NULL;
SELECT i FROM t ORDER BY min(NULL) OVER (); DESCRIBE SELECT NULL AS x; SUMMARIZE SELECT NULL AS x;
UNPIVOT (SELECT 1 AS a, NULL AS b) ON a, b; PIVOT (SELECT NULL AS k, 1 AS v) ON k USING sum(v)
"""
_OVER_COLUMNS = ("x + 1", "upper(x)", "list_sort(x)", "x || 'a'", "x[1]", "sum(x)", "unnest(x)", "x.a", "typeof(x)", "x = 1",
                 "list(x)", "min(x) || 'a'", "lag(x) OVER ()", "coalesce(x, 'a')", "DATE '2020-01-01' + x")  # fmt: skip
_WITH_A_COLUMN = (
    "(SELECT NULL AS x)", "(VALUES (NULL)) v(x)", "(SELECT NULL AS x UNION ALL SELECT NULL)", "(SELECT unnest([NULL]) AS x)",
    "(SELECT min(NULL) AS x)", "(SELECT NULL AS x FROM t GROUP BY ALL)", "(SELECT NULL || 'a' AS x)",
)  # fmt: skip


def statements() -> Iterator[str]:
    """Table functions, clauses and set operations, and columns of no type."""
    yield from (f"SELECT * FROM {f}({a})" for f in ("range", "generate_series") for a in _BOUNDS)
    yield from (f"SELECT * FROM {f}(NULL)" for f in _SOURCES)
    yield from _listed(_STATEMENTS)
    for o in ("UNION", "UNION ALL", "EXCEPT", "INTERSECT"):
        for c in sorted(set(COLUMNS.values())):
            shown = "CAST(tz AS VARCHAR)" if c == "tz" else c
            yield f"SELECT NULL {o} SELECT {shown} FROM t"
            yield f"SELECT {shown} FROM t {o} SELECT NULL"
    yield from (f"SELECT {e} FROM {source}" for source in _WITH_A_COLUMN for e in _OVER_COLUMNS)
