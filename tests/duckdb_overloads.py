"""``python -m tests.duckdb_overloads``: writes `gquery.functions.overloads`, the signatures of DuckDB's strict functions.

DuckDB lists signatures, but not whether NULL gives NULL. So each is asked, with a NULL of the parameter's type in each place,
and with an untyped one: of a strict function each answer is NULL of one type. A name with a strict signature is kept with all of
them, as all take part in what a call means.
"""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import wrap

import duckdb

import gquery.functions.overloads as written
from gquery.functions.registry import LIST_RESOLVERS, OPERATORS, RESOLVERS, declare_all, scalar_names
from gquery.functions.untyped_nulls import SYMBOLS

FILE = Path(written.__file__)
MARK = 'OVERLOADS = """\n'
WIDTH = 130
OTHERS = """
like ilike: VARCHAR,VARCHAR>BOOLEAN; VARCHAR,VARCHAR,VARCHAR>BOOLEAN
days_in_month: DATE>BIGINT
fdiv fmod: DOUBLE,DOUBLE>DOUBLE
round_even roundbankers: DOUBLE,INTEGER>DOUBLE
list_any_value list_avg list_bool_and list_bool_or list_count list_first list_histogram list_last list_max: ANY[]>"NULL"
list_median list_min list_mode list_product list_reverse list_stddev_pop list_stddev_samp list_string_agg list_sum: ANY[]>"NULL"
list_var_pop list_var_samp array_pop_back array_pop_front array_reverse: ANY[]>"NULL"
array_slice list_slice: "NULL",DOUBLE,DOUBLE>"NULL"; ANY,ANY,ANY>; "NULL",DOUBLE,DOUBLE,DOUBLE>"NULL"; ANY,ANY,ANY,ANY>
array_resize list_resize: "NULL",DOUBLE>"NULL"; ANY,ANY>; "NULL",DOUBLE,ANY>"NULL"; ANY,ANY,ANY>
element_at map_extract: "NULL",ANY>"NULL"[]; ANY,ANY>
map_extract_value: "NULL",ANY>"NULL"; ANY,ANY>
map_contains_value: "NULL",ANY>BOOLEAN; ANY,ANY>
map_contains_entry: "NULL",ANY,ANY>BOOLEAN; ANY,ANY,ANY>
array_cat array_concat list_cat list_concat: ..."NULL">"NULL"; ...ANY>
map_concat: "NULL","NULL"..."NULL">"NULL"; ...ANY>
array_intersect list_intersect: "NULL","NULL">"NULL"[]; ANY,ANY>
aggregate array_aggr array_aggregate list_aggr list_aggregate: "NULL",ANY...ANY>"NULL"; ANY,ANY...ANY>
array_to_string: "NULL",VARCHAR>VARCHAR; ANY,ANY>
"""
"""Macros, and functions that are strict in their first argument alone, or where all arguments are NULL."""
_A_TIME, _A_DAY, _A_LIST = ("'10:00:00'", ""), ("'2020-01-01'", ""), ("[1, NULL]", "INTEGER[]")
_VALUES = {
    "ANY": ("1", "INTEGER"), "T": ("1", "INTEGER"), "K": ("'a'", "VARCHAR"), "V": ("1", "INTEGER"), "T[]": _A_LIST,
    "ANY[]": _A_LIST, "V[]": _A_LIST, "K[]": ("['a']", "VARCHAR[]"), "T[][]": ("[[1]]", "INTEGER[][]"), "BIGINT[]": ("[1]", ""),
    "VARCHAR[]": ("['a']", ""), "DOUBLE[]": ("[0.5]", ""), "FLOAT[]": ("[0.5]", ""), "BOOLEAN[]": ("[true]", ""),
    "MAP(K, V)": ("MAP {'a': 1}", "MAP(VARCHAR, INTEGER)"), "STRUCT": ("{'a': 1}", "STRUCT(a INTEGER)"),
    "STRUCT(K, V)[]": ("[('a', 1)]", "STRUCT(k VARCHAR, v INTEGER)[]"), "DECIMAL": ("1.5", "DECIMAL(5, 2)"),
    "VARCHAR": ("'sum'", ""), "JSON": ("'[1]'", ""),
    "BLOB": ("'a'", ""), "BOOLEAN": ("true", ""), "INTERVAL": ("'1 day'", ""), "BIT": ("'1'", ""),
    "UUID": ("'12345678-1234-1234-1234-123456789abc'", ""),
    **dict.fromkeys(("DATE", "TIMESTAMP", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE"), _A_DAY),
    **dict.fromkeys(("TIME", "TIME_NS", "TIME WITH TIME ZONE"), _A_TIME),
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT",
                     "UHUGEINT", "BIGNUM", "FLOAT", "DOUBLE"), ("1", "")),
}  # fmt: skip
"""By the type of a parameter a value, and the type to ask for where that of the parameter is none of values."""
_OPEN = re.compile(r"ANY|\b[TKV]\b|DECIMAL|STRUCT|MAP|LIST")


def public_names() -> list[str]:
    """The names of functions that a user may write, operators left out."""
    declare_all()
    names = {*RESOLVERS, *LIST_RESOLVERS, *scalar_names()} - {*OPERATORS, *SYMBOLS}
    return sorted(n for n in names if re.match(r"[a-z]", n))


def table() -> str:
    """A line for each list of signatures, with all names that have it."""
    asked = {*public_names(), *SYMBOLS.values()}
    rows = duckdb.sql(
        "SELECT function_name, parameter_types, coalesce(varargs, ''), return_type FROM duckdb_functions() "
        "WHERE internal AND function_type = 'scalar'"
    ).fetchall()
    by_name: dict[str, set[str]] = {}
    strict: set[str] = set()
    for name, types, more, result in rows:
        if name in asked and (types or more):
            said = _strict(name, list(types), more, result)
            strict |= {name} if said else set()
            signature = f"{','.join(types)}{'...' * bool(more)}{more}>{said}"
            by_name.setdefault(name, set()).add(signature.replace(" WITH TIME ZONE", "TZ").replace(", ", ","))
    lines: dict[str, list[str]] = {}
    for name in sorted(strict):
        lines.setdefault("; ".join(sorted(by_name[name])), []).append(name)
    return "".join(f"{' '.join(names)}: {signatures}\n" for signatures, names in lines.items()) + OTHERS.lstrip()


def _strict(name: str, types: list[str], more: str, result: str) -> str:
    """What a call is with NULL in any one place, typed or untyped; "" where that is not one type. Of the types that may follow
    two are asked for, or none where DuckDB refuses these."""
    for asked in ([*types, *[more] * 2], types) if more else (types,):
        if any(t not in _VALUES for t in asked) or not asked:
            return ""
        for untyped in (False, True):
            found = {_of_null(name, asked, n, untyped) for n in range(len(asked))}
            if len(found) == 1 and (said := found.pop()) and (untyped or said == _declared(result)):
                return said
        if None not in found:
            return ""
    return ""


def _declared(result: str) -> str:
    return '"NULL"' if _OPEN.search(result) else result


def _of_null(name: str, types: list[str], place: int, untyped: bool) -> str | None:
    """The type of a call that is NULL for a NULL in one place; "" where it is something else, None where it is refused."""
    args = [f"{_VALUES[t][0]}::{_VALUES[t][1] or t}" for t in types]
    args[place] = "NULL" if untyped else f"NULL::{_VALUES[types[place]][1] or types[place]}"
    call = _call(name, args)
    try:
        value, said = duckdb.sql(f"SELECT {call}, typeof({call})").fetchall()[0]
    except duckdb.Error:
        return None
    return str(said) if value is None else ""


def _call(name: str, args: list[str]) -> str:
    if re.match(r"\w", name):
        return f"{name}({', '.join(args)})"
    return f"({args[0]}) {name} ({args[1]})" if len(args) == 2 else f"{name}({args[0]})"


def text() -> str:
    """The module as it should be."""
    lines = [
        part
        for line in table().splitlines()
        for part in wrap(line, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    ]
    return f'{FILE.read_text().partition(MARK)[0]}{MARK}{chr(10).join(lines)}\n"""\n'


if __name__ == "__main__":
    FILE.write_text(text())
