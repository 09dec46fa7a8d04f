"""Which constructs of SQL a random query has, told from its text: for the table that says how often each has run.

A pattern is of the text that the grammar writes, with its capitals and blanks. What is named here has to come up: a test
looks for every construct in the first few thousand seeds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_JOINS = {
    "join": r" JOIN ",
    "LEFT JOIN": r" LEFT JOIN ",
    "RIGHT JOIN": r" RIGHT JOIN ",
    "FULL JOIN": r" FULL JOIN ",
    "CROSS JOIN": r" CROSS JOIN ",
    "SEMI JOIN": r" SEMI JOIN ",
    "ANTI JOIN": r" ANTI JOIN ",
    "NATURAL JOIN": r" NATURAL ",
    "JOIN USING": r" USING \(k\)",
    "ASOF JOIN": r" ASOF JOIN",
    "ASOF LEFT JOIN": r" ASOF LEFT JOIN",
    "ASOF RIGHT JOIN": r" ASOF RIGHT JOIN",
    "ASOF FULL JOIN": r" ASOF FULL JOIN",
    "PIVOT": r"\bPIVOT\b",
    "UNPIVOT": r"\bUNPIVOT\b",
    "POSITIONAL JOIN": r" POSITIONAL JOIN",
    "LATERAL": r" LATERAL \(",
    "LATERAL with LIMIT": r" LATERAL \((?:(?! LATERAL ).)*ORDER BY ALL(?: DESC)? LIMIT",
    "join by a range": r" (?:ON|WHERE) x\d+\.\w+ BETWEEN x\d+\.\w+ AND x\d+",
    "join by an inequality": r" ON x\d+\.\w+ (?:<|<=|>|>=|<>) x\d+",
    "join by IS NOT DISTINCT FROM": r" ON x\d+\.\w+ IS NOT DISTINCT FROM x\d+",
}
_ROWS = {
    "DISTINCT": r"SELECT DISTINCT (?!ON)",
    "DISTINCT ON": r"SELECT DISTINCT ON ",
    "ORDER BY ALL": r"ORDER BY ALL",
    "LIMIT": r" LIMIT \d",
    "LIMIT by an expression": r" LIMIT (?:\d+ \+|least)",
    "LIMIT with a percentage": r" LIMIT \d+%",
    "OFFSET": r" OFFSET \d",
    "VALUES": r"\(VALUES ",
    "VALUES of a set operation": r"\) (UNION ALL|UNION|EXCEPT|INTERSECT) VALUES \(",
    "join in parentheses": r"FROM \(\(SELECT [^()]* FROM [^()]*\) AS x [A-Z ]*JOIN ",
    "range and generate_series": r"FROM (?:range|generate_series)\(",
    "star with EXCLUDE, REPLACE, RENAME": r"\* EXCLUDE ",
    "COLUMNS": r"COLUMNS\(",
    "FROM first": r"\(FROM ",
    "sample": r"USING SAMPLE|TABLESAMPLE",
    "CTE": r"^WITH ",
    "CTE AS MATERIALIZED": r"AS MATERIALIZED",
    "CTE AS NOT MATERIALIZED": r"AS NOT MATERIALIZED",
    "recursion with UNION": r"\(c0, c1\) AS \(.* UNION SELECT .* AS x",
    "recursion with UNION ALL": r"\(c0, c1\) AS \(.* UNION ALL SELECT .* AS x",
}
_SETS = {
    f"{name}{all_}": rf" {name}{all_} (?!ALL|BY)SELECT"
    for name in ("UNION", "INTERSECT", "EXCEPT")
    for all_ in ("", " ALL")
} | {"UNION BY NAME": r" UNION BY NAME ", "UNION ALL BY NAME": r" UNION ALL BY NAME "}
_GROUPS = {
    "GROUP BY": r" GROUP BY \d",
    "GROUP BY ALL": r" GROUP BY ALL",
    "ROLLUP": r"ROLLUP \(",
    "CUBE": r"CUBE \(",
    "GROUPING SETS": r"GROUPING SETS \(",
    "GROUPING()": r"grouping(?:_id)?\(",
    "HAVING": r" HAVING ",
    "FILTER": r"\) FILTER \(WHERE",
    "DISTINCT in an aggregate": r"\w\(DISTINCT ",
    "ORDER BY in an aggregate": r"\b(?:first|last|any_value|mode|string_agg|arg_\w+)\([^()]*ORDER BY",
    "WITHIN GROUP": r"WITHIN GROUP",
}
_AGGREGATES = (
    "count", "sum", "avg", "min", "max", "any_value", "first", "last", "count_if", "bool_and", "bool_or", "arg_min", "arg_max",
    "arg_min_null", "arg_max_null", "median", "quantile_cont", "quantile_disc", "mode", "mad", "string_agg", "entropy",
    "bit_and", "bit_or", "bit_xor", "product", "fsum", "favg", "stddev", "stddev_pop", "variance", "var_pop", "sem", "skewness",
    "kurtosis", "kurtosis_pop", "geomean", "covar_samp", "covar_pop", "corr", "regr_count", "regr_avgx", "regr_avgy",
    "regr_sxx", "regr_sxy", "regr_syy", "regr_slope", "regr_intercept", "regr_r2", "percentile_cont", "percentile_disc",
)  # fmt: skip
_WINDOWS = {
    "window": r" OVER ",
    "PARTITION BY": r"PARTITION BY",
    "WINDOW clause": r" WINDOW w AS ",
    "QUALIFY": r" QUALIFY ",
    "ROWS": r" ROWS BETWEEN",
    "RANGE": r" RANGE BETWEEN",
    "RANGE by an interval": r" RANGE BETWEEN [^()]*INTERVAL",
    "RANGE by a fraction": r" RANGE BETWEEN [^()]*\d\.\d",
    "GROUPS": r" GROUPS BETWEEN",
    "frame by an expression": r" ROWS BETWEEN [^()]*1 \+ 1",
    "EXCLUDE CURRENT ROW": r"EXCLUDE CURRENT ROW",
    "EXCLUDE GROUP": r"EXCLUDE GROUP",
    "EXCLUDE TIES": r"EXCLUDE TIES",
    "EXCLUDE NO OTHERS": r"EXCLUDE NO OTHERS",
    "IGNORE NULLS": r"IGNORE NULLS",
    "RESPECT NULLS": r"RESPECT NULLS",
    "FILTER in a window": r"FILTER \(WHERE (?:(?! OVER ).)*\) OVER ",
    "window over groups": r"OVER \((?:PARTITION BY [^()]*)?ORDER BY (?:count|min|max|sum|avg)\(|\(count\(\*\)\) OVER",
    **{
        f"{name}()": rf"\b{name}\("
        for name in (
            "row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead", "first_value", "last_value",
            "nth_value",
        )
    },
}  # fmt: skip
_VALUE = r"(?:[^()]|\((?:[^()]|\([^()]*\))*\))*"  # what stands between two parentheses, two deep
_SUBQUERIES = {
    "scalar subquery": r"\(SELECT \w+\(",
    "subquery with ORDER BY and LIMIT": r" LIMIT 1(?: OFFSET \d)?\)",
    "EXISTS": r"EXISTS \(SELECT",
    "EXISTS of groups": r"EXISTS \(SELECT .* GROUP BY .* HAVING",
    "IN of a subquery": r"\w IN \(SELECT",
    "NOT IN of a subquery": r" NOT IN \(SELECT",
    "IN of rows with a subquery": rf"\({_VALUE},{_VALUE}\) (?:NOT )?IN \(SELECT",
    "ANY": r" ANY \(SELECT",
    "ALL": r" ALL \(SELECT",
    "row in rows": rf"\({_VALUE},{_VALUE}\) (?:NOT )?IN \(\(",
    "row compared": r", [^()]*\)+ (?:=|<>|<|<=|>|>=|IS (?:NOT )?DISTINCT FROM) \((?:[^()]|\([^()]*\))*, ",
}
_EXPRESSIONS = {
    "CASE": r"CASE WHEN",
    "CAST": r"(?<!TRY_)CAST\(",
    "TRY_CAST": r"TRY_CAST\(",
    "coalesce": r"coalesce\(",
    "a macro": r"either\(",
    "time of day": r"\bclk\b|TIME '",
    "time and an interval": r"(?:clk\)?|TIME '[^']*') [+-] INTERVAL",
    "moment": r"\bmoment\b|TIMESTAMPTZ '",
    "AT TIME ZONE": r" AT TIME ZONE '",
    "date_trunc of a moment": r"date_trunc\('\w+', [^()']*(?:moment|TIMESTAMPTZ)",
    "blob": r"\braw\b|::BLOB",
    "bytes joined": r"(?:raw|::BLOB) \|\| ",
    "encode, unhex, from_base64": r"encode\(|unhex\(|from_base64\(",
    "octet_length": r"octet_length\(",
    "nullif": r"nullif\(",
    "greatest, least": r"greatest\(|least\(",
    "LIKE": r" LIKE '",
    "ILIKE": r" ILIKE '",
    "BETWEEN": r"\) ?BETWEEN|\w BETWEEN ",
    "IS DISTINCT FROM": r"IS DISTINCT FROM",
    "IS NOT DISTINCT FROM": r"IS NOT DISTINCT FROM",
    "interval": r"INTERVAL \d",
    "computed interval": r"to_days|to_months|INTERVAL \(",
    "time_bucket": r"time_bucket",
    "date_trunc": r"date_trunc",
    "last_day": r"last_day\(",
    "extract": r"extract\(",
    "regexp_replace": r"regexp_replace",
    "levenshtein": r"levenshtein",
    "split_part, translate, hex": r"split_part|translate\(|hex\(",
}
_LISTS = {
    "list value": r"CAST\(\[",
    "list() in an order": r"\blist\([^()]* ORDER BY",
    "list() over a window": r"\blist\([^()]*\) OVER ",
    "unnest in SELECT": r"SELECT [^()]*unnest\(",
    "unnest in FROM": r", unnest\(",
    "lambda": r", lambda e: ",
    "lambda of an element and its place": r", lambda e, i: ",
    "list comprehension": r" FOR e IN ",
    "slice": r"\)\[-?\d:-?\d\]",
    "element of a list": r"\)\[(?:-?\d|x\.k|y\.k)\]",
    "lists compared": r"xs (?:=|<>|<|<=|>|>=|IS (?:NOT )?DISTINCT FROM) ",
    "list_concat": r"list_concat\(",
    "list_sort": r"list_sort\(",
    "list_contains": r"list_contains\(",
    "lists of lists": r"SELECT .*\[[a-zC(][^\]]*\.xs\] AS c",
    "list_has_any, list_has_all": r"list_has_a",
    "array_to_string": r"array_to_string",
}
_NESTED = {
    "struct value": r"\{'a': CAST",
    "struct_pack": r"struct_pack\(",
    "field of a struct": r"\b[xy]\.s[tu]\.[ab]\b",
    "field in brackets": r"\)\['[ab]'\]",
    "structs compared": r"\.s[tu] (?:=|<>|<|<=|>|>=|IS (?:NOT )?DISTINCT FROM) [xy]\.",
    "structs as keys of a join": r" ON x\.(?:st|deep) (?:=|IS NOT DISTINCT FROM) y\.",
    "struct of a list and a struct": r"\{'l': \[",
    "struct_insert": r"struct_insert\(",
    "map value": r"MAP \{",
    "map of lists": r"\bmap\(\[",
    "untyped NULL as an argument": r"[(,] ?NULL[,)]|\(NULL [-+*/|]|[-+*/|] NULL\)",
    "value of a map": r"mp\)?\[(?:\d+|NULL|'[^']*')\]",
    "map_entries, map_keys, map_values": r"map_(?:entries|keys|values)\(",
    "maps as keys of a join": r" ON x\.mp = y\.mp",
    "struct or map in a window": r"(?:_value|lag|lead)\(x\.(?:st|mp|deep)",
    "rank by a struct": r"rank\(\) OVER \([^()]*ORDER BY (?:\[?x\.(?:st|su|deep|mp)|CASE|coalesce|nullif|\{)",
}
_CHANGES = {
    "CREATE TABLE AS": r"^CREATE OR REPLACE TABLE z AS",
    "CREATE VIEW": r"^CREATE OR REPLACE VIEW",
    "INSERT of values": r"^INSERT INTO z \([^()]*\) VALUES",
    "INSERT of a query": r"^INSERT INTO z SELECT",
    "INSERT BY NAME": r"^INSERT INTO z BY NAME",
    "UPDATE": r"^UPDATE z SET",
    "DELETE": r"^DELETE FROM z WHERE",
    "RETURNING of INSERT": r"^INSERT .* RETURNING ",
    "RETURNING of UPDATE": r"^UPDATE .* RETURNING ",
    "RETURNING of DELETE": r"^DELETE .* RETURNING ",
    "RETURNING of MERGE": r"^MERGE .* RETURNING ",
    "ON CONFLICT DO NOTHING": r" ON CONFLICT DO NOTHING",
    "ON CONFLICT DO UPDATE": r" ON CONFLICT \(i64, i32\) DO UPDATE",
    "MERGE": r"^MERGE INTO",
    "WHEN MATCHED": r" WHEN MATCHED ",
    "WHEN NOT MATCHED": r" WHEN NOT MATCHED (?!BY SOURCE)",
    "WHEN NOT MATCHED BY SOURCE": r" WHEN NOT MATCHED BY SOURCE ",
    "macro of a value": r"^CREATE OR REPLACE MACRO m\d\([^)]*\) AS (?!TABLE)",
    "macro with a default": r"^CREATE OR REPLACE MACRO m\d\([^)]*:=",
    "macro of a table": r"^CREATE OR REPLACE MACRO m\d\([^)]*\) AS TABLE",
    "macro within a macro": r"^CREATE OR REPLACE MACRO .* m\d\(",
    "OVER behind a macro": r"\bm\d\([^()]*\) OVER ",
    "macro with names of arguments": r"\bm\d\([^()]*, a1 := ",
    "TRUNCATE": r"^TRUNCATE",
    "ALTER TABLE": r"^ALTER TABLE z",
    "transaction": r"^BEGIN",
    "PREPARE": r"^PREPARE",
    "EXECUTE": r"^EXECUTE",
}
CONSTRUCTS: dict[str, re.Pattern[str]] = {
    name: re.compile(pattern, re.DOTALL)
    for group in (
        _JOINS,
        _ROWS,
        _SETS,
        _GROUPS,
        {f"{name}(...)": rf"\b{name}\(" for name in _AGGREGATES},
        _WINDOWS,
        _SUBQUERIES,
        _EXPRESSIONS,
        _LISTS,
        _NESTED,
        _CHANGES,
    )
    for name, pattern in group.items()
}


def constructs_of(*texts: str) -> Iterator[str]:
    """The constructs that stand in any of some texts."""
    for name, pattern in CONSTRUCTS.items():
        if any(pattern.search(text) is not None for text in texts):
            yield name
