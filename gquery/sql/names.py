"""The name of a result column that has no alias: the expression as DuckDB prints it."""

from __future__ import annotations

from sqlglot import exp

_BINARY: dict[type[exp.Expr], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.IntDiv: "//", exp.Mod: "%", exp.EQ: "=", exp.NEQ: "!=",
    exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=", exp.And: "AND", exp.Or: "OR", exp.DPipe: "||",
    exp.Pow: "**",
    exp.Like: "~~", exp.ILike: "~~*", exp.BitwiseAnd: "&", exp.BitwiseOr: "|",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM", exp.NullSafeNEQ: "IS DISTINCT FROM",
}  # fmt: skip


def column_name(node: exp.Expr) -> str:
    """``sum(x)``, ``(a + 1)``, ``count_star()``: how DuckDB names the column of an expression."""
    match node:
        case exp.Alias():
            return str(node.alias)
        case exp.Column() | exp.Identifier():
            return node.name
        case exp.Paren():
            return column_name(node.this)
        case exp.Literal():
            return f"'{node.name}'" if node.is_string else node.name
        case exp.Null():
            return "NULL"
        case exp.Boolean():
            return f"CAST('{'t' if node.this else 'f'}' AS BOOLEAN)"
        case exp.Neg():
            inner = column_name(node.this)
            return f"-{inner}" if isinstance(node.this, exp.Literal) else f"-({inner})"
        case exp.Not():
            return _negation(node.this)
        case exp.Is():
            null = isinstance(node.expression, exp.Null)
            return f"({column_name(node.this)} IS {'NULL' if null else node.expression.sql('duckdb')})"
        case exp.Between():
            low, high = column_name(node.args["low"]), column_name(node.args["high"])
            return f"({column_name(node.this)} BETWEEN {low} AND {high})"
        case exp.In() if node.expressions:
            return f"({column_name(node.this)} IN ({', '.join(map(column_name, node.expressions))}))"
        case exp.Case():
            return _case(node)
        case exp.If():
            otherwise = node.args.get("false")
            tail = column_name(otherwise) if otherwise is not None else "NULL"
            return f"CASE  WHEN ({column_name(node.this)}) THEN ({column_name(node.args['true'])}) ELSE {tail} END"
        case exp.TryCast() | exp.Cast():
            word = "TRY_CAST" if isinstance(node, exp.TryCast) else "CAST"
            return f"{word}({column_name(node.this)} AS {_type_name(node.to)})"
        case exp.Count() if node.this is None or isinstance(node.this, exp.Star):
            return "count_star()"
        case exp.IgnoreNulls():
            return column_name(node.this)
        case exp.Filter():
            return f"{column_name(node.this)} FILTER (WHERE {column_name(node.expression.this)})"
        case exp.Distinct():
            return "DISTINCT " + ", ".join(map(column_name, node.expressions))
        case exp.Extract():
            return f"main.date_part('{node.name.lower()}', {column_name(node.expression)})"
        case exp.Coalesce():
            return f"COALESCE({', '.join(map(column_name, [node.this, *node.expressions]))})"
        case exp.Subquery() | exp.Query() | exp.Exists() | exp.Interval():
            return node.sql("duckdb", normalize_functions="lower")
        case exp.Anonymous():
            return f"{node.name.lower()}({', '.join(map(column_name, node.expressions))})"
    if type(node) in _BINARY and isinstance(node, exp.Binary | exp.Pow):
        symbol = ("!" if node.args.get("negate") else "") + _BINARY[type(node)]
        return f"({column_name(node.this)} {symbol} {column_name(node.expression)})"
    if isinstance(node, exp.Func):
        from gquery.sql.calls import function_call

        name, args = function_call(node)
        return f"{name}({', '.join(map(column_name, args))})"
    return node.sql("duckdb")


def _negation(node: exp.Expr) -> str:
    inner = column_name(node)
    match node:
        case exp.Is(expression=exp.Null()):
            return f"({column_name(node.this)} IS NOT NULL)"
        case exp.In() if node.expressions:
            return inner.replace(" IN (", " NOT IN (", 1)
        case _:
            return f"(NOT {inner})"


def _case(node: exp.Case) -> str:
    text = "CASE "
    for branch in node.args["ifs"]:
        test = column_name(branch.this)
        if node.this is not None:
            test = f"({column_name(node.this)} = {test})"
        text += f" WHEN ({test}) THEN ({column_name(branch.args['true'])})"
    default = node.args.get("default")
    return f"{text} ELSE {column_name(default) if default is not None else 'NULL'} END"


def _type_name(node: exp.DataType) -> str:
    from gquery.errors import Error
    from gquery.sql.types import sql_type

    try:
        return str(sql_type(node))
    except Error:
        return node.sql("duckdb")
