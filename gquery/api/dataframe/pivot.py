"""`Relation.pivot` and `unpivot`, under Polars' names: both are SQL's PIVOT and UNPIVOT of the relation.

The columns that a pivot makes are those of the data as they are when it is called: a query looks for them at once. Its rows, as
those of every relation, are made when they are asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, get_args

from gquery.errors import DataError, InterfaceError

if TYPE_CHECKING:
    from gquery.api.dataframe.verbs import Verbs
    from gquery.api.relation import Relation

PivotAggregate = Literal["min", "max", "first", "last", "sum", "mean", "median", "len"]
_AGGREGATES = {"mean": "avg", "len": "count(*)"}


def pivot(
    relation: Verbs,
    on: Sequence[str],
    columns: tuple[Sequence[str] | None, Sequence[str] | None],
    aggregate: PivotAggregate | None,
    sort_columns: bool,
    separator: str,
) -> Relation:
    """What `Rows.pivot` gives; ``columns`` are those of its index and its values."""
    if aggregate is not None and aggregate not in get_args(PivotAggregate):
        known = ", ".join(get_args(PivotAggregate))
        raise InterfaceError(f"aggregate_function is one of {known}, not {aggregate!r}")
    index, values = _rest(relation, on, columns)
    if aggregate is None:
        _check_single(relation, [*index, *on])
    found = _values(relation, on, sort_columns)
    if not found:
        return relation.sql(f"SELECT DISTINCT {_listed(index)} FROM self")
    choices = ", ".join(f"({_constants(row)}) AS c{n}" for n, row in enumerate(found))
    function = _AGGREGATES.get(aggregate or "first", aggregate or "first")
    calls = [function if "(" in function else f"{function}({_quoted(v)})" for v in values]
    using = ", ".join(f"{call} AS a{n}" for n, call in enumerate(calls))
    named = [
        f"c{n}_a{m} AS {_quoted(name if len(values) == 1 else f'{v}{separator}{name}')}"
        for m, v in enumerate(values)
        for n, name in enumerate(_names(relation, on, found))
    ]
    pivoted = f"PIVOT self ON ({_listed(on)}) IN ({choices}) USING {using} GROUP BY {_listed(index)}"
    return relation.sql(f"SELECT {', '.join([*map(_quoted, index), *named])} FROM ({pivoted})")


def unpivot(relation: Verbs, on: Sequence[str] | None, index: Sequence[str], variable: str, value: str) -> Relation:
    """What `Rows.unpivot` gives."""
    query = relation.bound_query()
    used = {n.lower() for n in index}
    given = [n for n in query.names if n.lower() not in used] if on is None else list(on)
    names = [n.lower() for n in (*index, variable, value)]
    if len(set(names)) < len(names):
        raise InterfaceError(f"unpivot makes two columns of one name: {', '.join((*index, variable, value))}")
    if not given:
        raise InterfaceError("unpivot needs a column")
    types = {n.lower(): c.dtype for n, c in zip(query.names, query.outputs, strict=True)}
    texts = {types[n.lower()].is_string for n in given}
    cast = "::VARCHAR" if len(texts) > 1 else ""  # texts and others become texts, as in Polars
    kept = "".join(f"v.{_quoted(n)} AS i{k}, " for k, n in enumerate(index))
    source = f"SELECT {kept}{', '.join(f'v.{_quoted(n)}{cast} AS e{k}' for k, n in enumerate(given))} FROM self v"
    labels = ", ".join(f"e{k} AS {_quoted(n)}" for k, n in enumerate(given))
    outputs = ", ".join(
        [*(f"i{k} AS {_quoted(n)}" for k, n in enumerate(index)), f"n AS {_quoted(variable)}", f"x AS {_quoted(value)}"]
    )
    return relation.sql(f"SELECT {outputs} FROM ({source}) UNPIVOT INCLUDE NULLS (x FOR n IN ({labels}))")


def _rest(
    relation: Verbs, on: Sequence[str], columns: tuple[Sequence[str] | None, Sequence[str] | None]
) -> tuple[list[str], list[str]]:
    """Index and values: one that is not given is all that the others are not."""
    index, values = columns
    if index is None and values is None:
        raise InterfaceError("pivot needs index or values")
    used = {n.lower() for n in (*on, *(index or ()), *(values or ()))}
    rest = [n for n in relation.bound_query().names if n.lower() not in used]
    made = (rest if index is None else list(index), rest if values is None else list(values))
    if not all(made):
        raise InterfaceError("pivot needs a column of each: on, index and values")
    return made


def _check_single(relation: Verbs, keys: Sequence[str]) -> None:
    """DataError where a cell would have several values: without an aggregate there is none to take."""
    counted = f"SELECT count(*) AS n FROM self GROUP BY {_listed(keys)}"
    most = relation.sql(f"SELECT max(n) FROM ({counted})").fetchall()[0][0]
    if most is not None and most > 1:
        raise DataError(f"pivot: {most} values for one cell; aggregate_function says which is taken")


def _values(relation: Verbs, on: Sequence[str], sort_columns: bool) -> list[tuple[str | None, ...]]:
    """The values of what is pivoted on, as texts, in the order in which they first come, or their own."""
    texts = ", ".join(f"{_quoted(n)}::VARCHAR" for n in on)
    order = ", ".join(f"{_quoted(n)} NULLS FIRST" for n in on) if sort_columns else "min(gquery_row)"
    rows = f"SELECT {_listed(on)}, row_number() OVER () AS gquery_row FROM self"
    return relation.sql(f"SELECT {texts} FROM ({rows}) GROUP BY {_listed(on)} ORDER BY {order}").fetchall()


def _names(relation: Verbs, on: Sequence[str], found: Sequence[Sequence[str | None]]) -> list[str]:
    """The names of the columns: a value's text; of several ``{"a",1}``."""
    query = relation.bound_query()
    types = {n.lower(): c.dtype for n, c in zip(query.names, query.outputs, strict=True)}
    quotes = ['"' if len(on) > 1 and types[n.lower()].is_string else "" for n in on]
    rows = [["null" if t is None else f"{q}{t}{q}" for t, q in zip(row, quotes, strict=True)] for row in found]
    return [row[0] if len(row) == 1 else f"{{{','.join(row)}}}" for row in rows]


def _constants(row: Sequence[str | None]) -> str:
    return ", ".join("NULL" if t is None else "'" + t.replace("'", "''") + "'" for t in row)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(_quoted, names))
