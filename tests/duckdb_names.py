"""``python -m tests.duckdb_names``: which names of DuckDB's functions gquery has.

A name counts where DuckDB's `duckdb_functions()` has a signature of types that gquery computes with: no structs, maps, BLOBs,
JSON, UUIDs or times of day. What DuckDB has for itself (compression, Postgres' catalog, privileges, collations) is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import duckdb

from gquery.functions import is_aggregate
from gquery.functions.known import WINDOWS
from gquery.functions.registry import is_declared

_TYPES = frozenset((
    "BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "HUGEINT", "FLOAT",
    "DOUBLE", "DECIMAL", "DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "VARCHAR", "INTERVAL", "ANY", "T", '"NULL"',
))  # fmt: skip
_OWN = re.compile(
    r"__internal|icu_|pg_(?!size_pretty|typeof)|has_\w*_privilege|inet_|\w*_description|json|map_|enum_|struct_|\w*txid|current_\w*_id|"
    r"(parse_duckdb_log_message|in_search_path|stats|vector_type|write_log|remap_struct|replace_type|cast_to_type|get_block_size)$"
)
_OPERATORS = re.compile(r"\W")


def names() -> Iterator[str]:
    """The names that count."""
    rows = duckdb.sql(
        "SELECT function_name, parameter_types, return_type FROM duckdb_functions() "
        "WHERE function_type IN ('scalar', 'aggregate', 'macro') AND internal"
    ).fetchall()
    found = {name for name, types, result in rows if all(map(_is_known, (*types, result)))}
    yield from sorted(n for n in found if not _OWN.match(n) and not _OPERATORS.search(n))


def _is_known(type_: str | None) -> bool:
    return type_ is None or re.sub(r"\(.*\)|\[\]", "", type_) in _TYPES


def has(name: str) -> bool:
    """Whether gquery has a function, an aggregate or a window function of a name."""
    return is_declared(name.lower()) or is_aggregate(name) or name in WINDOWS - {"fill"}


def missing() -> list[str]:
    """The names that count and that gquery does not have."""
    return [name for name in names() if not has(name)]


def main() -> None:
    """Print the share and what is missing."""
    count, left = len(list(names())), missing()
    print(f"{count - len(left)} of {count} names; missing: {' '.join(left)}")


if __name__ == "__main__":
    main()
