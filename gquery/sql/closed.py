"""The parts of sqlglot's tree that the binder reads: a class of nodes, or an argument of one, that is not here is refused.

So a clause that a newer sqlglot understands, and the binder does not, is an error and no other query.
"""

from __future__ import annotations

from sqlglot import exp

from gquery.errors import NotSupportedError, point_at
from gquery.sql.parse import position

_SIDES = frozenset(("this", "expression"))
_ONE = frozenset(("this",))
_LIST = frozenset(("expressions",))
_ORDERED = frozenset(("order", "limit", "offset"))
_READ: dict[type[exp.Expr], frozenset[str]] = {
    # queries
    exp.Select: _ORDERED | {"with_", "expressions", "distinct", "from_", "joins", "where", "group", "having"} | {
        "windows", "qualify", "sample"
    },
    exp.Union: _ORDERED | _SIDES | {"with_", "distinct", "by_name"},
    exp.Intersect: _ORDERED | _SIDES | {"with_", "distinct"},
    exp.Except: _ORDERED | _SIDES | {"with_", "distinct"},
    exp.TableSample: frozenset(("method", "size", "percent", "seed")),
    exp.Subquery: _ORDERED | {"with_", "this", "alias", "joins", "sample"},
    exp.Values: _ORDERED | {"expressions", "alias", "joins"},
    exp.With: frozenset(("expressions", "recursive")),
    exp.CTE: frozenset(("this", "alias", "materialized")),
    exp.From: _ONE,
    exp.Table: frozenset(("this", "alias", "db", "catalog", "joins", "sample", "ordinality")),
    exp.TableAlias: frozenset(("this", "columns")),
    exp.Join: frozenset(("this", "side", "kind", "method", "on", "using")),
    exp.Lateral: frozenset(("this", "alias", "ordinality")),
    exp.Where: _ONE,
    exp.Group: frozenset(("expressions", "all")),
    **dict.fromkeys((exp.GroupingSets, exp.Rollup, exp.Cube), _LIST),
    exp.Having: _ONE,
    exp.Qualify: _ONE,
    exp.Window: frozenset(("this", "partition_by", "order", "spec", "alias", "over")),
    exp.WindowSpec: frozenset(("kind", "start", "start_side", "end", "end_side", "exclude")),
    exp.IgnoreNulls: _ONE,
    exp.RespectNulls: _ONE,
    exp.Order: frozenset(("this", "expressions")),
    exp.Ordered: frozenset(("this", "desc", "nulls_first")),
    exp.Limit: frozenset(("expression", "limit_options")),
    exp.Fetch: frozenset(("count", "direction", "limit_options")),
    exp.LimitOptions: frozenset(("rows", "percent")),
    exp.Offset: frozenset(("expression",)),
    exp.Columns: frozenset(("this", "unpack")),
    exp.Distinct: _LIST | {"on"},
    exp.Star: frozenset(("except_", "replace", "rename", "ilike")),
    exp.Collate: _SIDES,
    exp.Alias: frozenset(("this", "alias")),
    # expressions
    exp.Column: frozenset(("this", "table", "db", "catalog")),
    exp.Identifier: frozenset(("this", "quoted")),
    exp.Literal: frozenset(("this", "is_string")),
    exp.Boolean: _ONE,
    exp.Null: frozenset(),
    exp.Var: _ONE,
    exp.Placeholder: _ONE,
    exp.Parameter: _ONE,
    exp.Paren: _ONE,
    exp.Tuple: _LIST,
    exp.Array: _LIST,
    exp.Comprehension: _SIDES | {"iterator", "condition"},
    exp.Struct: _LIST,
    exp.ToMap: _ONE,
    exp.Dot: _SIDES,
    exp.ColumnDef: frozenset(("this", "kind")),  # a field of the type of a struct
    exp.Anonymous: frozenset(("this", "expressions")),
    exp.Filter: _SIDES,
    exp.Lambda: frozenset(("this", "expressions", "colon")),
    exp.WithinGroup: _SIDES,
    exp.Cast: frozenset(("this", "to")),
    exp.TryCast: frozenset(("this", "to", "safe")),
    exp.DataType: frozenset(("this", "expressions", "kind", "nested")),
    exp.DataTypeParam: _ONE,
    exp.Interval: frozenset(("this", "unit")),
    exp.AtTimeZone: frozenset(("this", "zone")),
    exp.Case: frozenset(("this", "ifs", "default")),
    exp.If: frozenset(("this", "true")),
    exp.Is: _SIDES | {"negate"},
    exp.In: frozenset(("this", "expressions", "query", "field")),
    exp.Between: frozenset(("this", "low", "high")),
    exp.Like: _SIDES | {"negate"},
    exp.ILike: _SIDES | {"negate"},
    exp.Add: _SIDES | {"joins"},  # Python's +, which joins texts
    exp.DPipe: _SIDES | {"safe"},
    exp.Bracket: frozenset(("this", "expressions", "offset")),
    exp.Slice: _SIDES | {"step"},
    exp.Extract: _SIDES,
    exp.Substring: frozenset(("this", "start", "length")),
    exp.Trim: _SIDES | {"position"},
    exp.StrPosition: frozenset(("this", "substr")),
    exp.RegexpLike: _SIDES,  # the operator ~
    exp.SimilarTo: _SIDES,
    **dict.fromkeys((exp.Not, exp.Neg, exp.BitwiseNot, exp.Exists, exp.Any, exp.All), _ONE),
    **dict.fromkeys(
        (
            exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Pow, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT,
            exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.And, exp.Or, exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor,
            exp.BitwiseLeftShift, exp.BitwiseRightShift, exp.Glob, exp.StartsWith,
            exp.Escape, exp.PropertyEQ, exp.Kwarg,
        ),
        _SIDES,
    ),
    # statements
    exp.Create: frozenset(("this", "kind", "expression", "replace", "exists", "properties")),
    exp.Properties: _LIST,
    exp.TemporaryProperty: frozenset(),  # all tables are of the connection alone
    exp.WithDataProperty: frozenset(("no",)),
    exp.Schema: frozenset(("this", "expressions")),
    exp.Drop: frozenset(("this", "tables", "kind", "exists", "cascade", "restrict")),  # nothing depends on a table
    exp.Set: _LIST,
    exp.SetItem: _ONE,
}  # fmt: skip


def check_read(nodes: list[exp.Expr], sql: str) -> None:
    """Raises NotSupportedError at the first node that the binder would not read, or not all of."""
    for node in nodes:
        read = _READ.get(type(node))
        if read is None or not read.issuperset(node.args):
            unread = None if read is None else next((k for k, v in node.args.items() if v and k not in read), None)
            if read is None or unread is not None:
                raise _refused(node, unread, sql)


def _refused(node: exp.Expr, unread: str | None, sql: str) -> NotSupportedError:
    """The error names the text: of the argument where it has a place, else of the node."""
    value = node.args.get(unread) if unread is not None else None
    part = value[0] if isinstance(value, list) else value
    part = part if isinstance(part, exp.Expr) and position(part) is not None else node
    start = position(part)
    if start is None:
        return NotSupportedError(f"not supported: {part.sql('duckdb')}")
    end = max(n.meta["end"] for n in part.walk() if "end" in n.meta) + 1
    typed = " ".join(sql[start:end].split())
    return NotSupportedError(f"not supported: {typed[:80]}\n{point_at(sql, start)}")
