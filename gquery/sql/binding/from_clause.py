"""Binding of FROM: tables, views, CTEs, subqueries, table functions, files, and the joins between them."""

from __future__ import annotations

from functools import lru_cache

from sqlglot import exp

from gquery.columns.table import TableSource
from gquery.errors import BindError, CatalogError, FileError, NotSupportedError, did_you_mean
from gquery.expression.expr import TRUE, Column, Expr, Literal
from gquery.expression.traverse import conjunction, transform
from gquery.functions import call
from gquery.planner.logical.nodes import Apply, Filter, Join, JoinKind, Plan, Query, Values, whole_scan
from gquery.planner.logical.tree import column_ids, free_columns
from gquery.sql.binding.expr import ExprBinder
from gquery.sql.binding.files import ENDS, WHOLE, by_names, is_by_name, read, reader_arguments, reader_of, whole_files
from gquery.sql.binding.limits import ROWID, numbered, with_rowid
from gquery.sql.binding.shared import relation_use
from gquery.sql.binding.unnest import json_table, list_to_unnest, unnest_table
from gquery.sql.catalog import BoundRelation
from gquery.sql.check import check
from gquery.sql.ctes import Ctes, Queries
from gquery.sql.definitions import View
from gquery.sql.named import table_name
from gquery.sql.parse import Parsed, located, parse_one
from gquery.sql.schemas import INFORMATION
from gquery.sql.scope import Merged, Scope, ScopeRelation


class FromBinder:
    """Binds one FROM clause: its plan, and the scope of its columns."""

    def __init__(self, query: Queries, parent: Scope | None, ctes: Ctes) -> None:
        self.query, self.parent, self.ctes = query, parent, ctes

    def bind(self, node: exp.Select) -> tuple[Plan, Scope]:
        """The FROM clause of a SELECT; one row without columns where it has none."""
        source = node.args.get("from_")
        if source is None:
            return Values((), ((),)), Scope(self.parent)
        result: tuple[Plan, Scope] | None = None  # what stands before the last comma
        group = self._item(source.this, self.parent)
        for join in node.args.get("joins") or ():
            if _is_comma(join):  # a comma binds less than JOIN: what follows joins to its right side alone
                result = group if result is None else self._combine(result, group, JoinKind.INNER, TRUE)
                group = self._item(join.this, result[1])
            else:
                group = self._join(group, join, self.parent if result is None else result[1])
        result = group if result is None else self._combine(result, group, JoinKind.INNER, TRUE)
        self._check_aliases(result[1], node)
        return result

    def _check_aliases(self, scope: Scope, node: exp.Expr) -> None:
        seen: set[tuple[str, str]] = set()
        for r in scope.relations:
            if r.alias and (r.schema, r.alias.lower()) in seen:
                raise located(
                    BindError(f"table {r.alias!r} is in the FROM clause twice; give one an alias"), self.query.sql, node
                )
            seen.add((r.schema, r.alias.lower()))

    # ---- relations ---------------------------------------------------------------------------------------------------

    def _item(self, node: exp.Expr, around: Scope | None) -> tuple[Plan, Scope]:
        """An entry of FROM and its joins. ``around``: what its subqueries may use, the tables on its left."""
        try:
            plan, scope = self._relation(node, around)
        except (BindError, CatalogError, FileError, NotSupportedError) as e:
            raise located(e, self.query.sql, node) from None
        plan = self.query.sampled(plan, node)
        for join in node.args.get("joins") or ():
            plan, scope = self._join((plan, scope), join, around)
        return plan, scope

    def _relation(self, node: exp.Expr, around: Scope | None) -> tuple[Plan, Scope]:
        alias, columns = _alias(node)
        entry, node = node, node.this if isinstance(node, exp.Lateral) else node  # in DuckDB every subquery is one
        match node:
            case exp.Subquery() if holds_join(node):
                if alias:  # DuckDB forgets it for some kinds of joins, and renames columns for others
                    raise NotSupportedError("not supported: an alias of a join in parentheses")
                return self._item(node.this, around)  # (a JOIN b)
            case exp.Subquery() | exp.Query():
                if node._meta is not None:
                    ExprBinder(self.query, around or Scope(), "the arguments of a macro").entered(node)
                return self._named(self.query.query(node, around, self.ctes), alias, columns)
            case exp.Values():
                return self._named(self.query.values(node, around), alias, columns)
            case exp.Table(this=exp.Values() as values):  # the first of a join in parentheses
                return self._named(self.query.values(values, around), alias, columns)
            # the latter: LATERAL range(3)
            case exp.Table(this=exp.Anonymous() as called) | (exp.Anonymous() as called):
                if called.name.lower() == "unnest":
                    return self._unnest(called, around, alias, columns, bool(entry.args.get("ordinality")))
                return self._table_function(called, around, alias, columns)
            case exp.Table():
                return self._table(node, alias, columns)
            case _:
                raise NotSupportedError(f"not supported: {node.key.upper()} in FROM")

    def _named(self, query: Query, alias: str, columns: tuple[str, ...], schema: str = "") -> tuple[Plan, Scope]:
        names = _renamed(query.names, columns, alias)
        return query.plan, Scope(self.parent, [ScopeRelation(alias, names, query.outputs, schema)])

    def _table(self, node: exp.Table, alias: str, columns: tuple[str, ...]) -> tuple[Plan, Scope]:
        name, db = node.name, node.db
        cte = self.ctes.entries.get(name.lower()) if not db else None
        if cte is not None:
            bound = self.query.cte(cte)
            names = _renamed(bound.names, cte.columns, name)
            return self._named(Query(bound.plan, bound.outputs, names), alias or name, columns)
        catalog = self.query.catalog
        if db and db.lower() == INFORMATION:
            from gquery.sql.binding.catalog import schema_table

            return self._named(schema_table(self.query, name), alias or name, columns)
        if db and not catalog.schemas.has(db):
            full = ".".join(p.name for p in node.parts)
            if full.lower().endswith(ENDS):
                return self._scan(self._file(full), alias or db, columns)
        given = catalog.given(name) if not db else None
        if given is not None:
            return self._bound(given, alias or name, columns)
        full = table_name(node)
        found = catalog.lookup(full)
        schema = catalog.schema_of(full) if found is not None and not alias else ""
        if isinstance(found, View):
            return self._view(found, alias or name, columns, schema)
        if found is not None:
            return self._scan(found, alias or name, columns, schema)
        if db:
            catalog.get(full)
        if name.lower().endswith(ENDS) or "/" in name or "*" in name:
            stem = name.replace("\\", "/").rsplit("/", 1)[-1].split(".")[0]
            return self._scan(self._file(name), alias or stem, columns)
        held = catalog.scan(name)
        if isinstance(held, BoundRelation):
            return self._bound(held, alias or name, columns)
        if held is not None:
            return self._scan(held, alias or name, columns)
        known = [*catalog.names(), *self.ctes.entries]
        raise CatalogError(f"table {name!r} does not exist.{did_you_mean(name, known)}")

    def _bound(self, given: BoundRelation, alias: str, columns: tuple[str, ...]) -> tuple[Plan, Scope]:
        """A relation: its plan with columns of its own, as a query may use it many times."""
        bound = given.bound_query()
        self.query.rests_on(bound.asked)
        query = relation_use(bound)
        return self._named(Query(query.plan, query.outputs, _renamed(query.names, columns, alias)), alias, ())

    def _file(self, path: str) -> TableSource:
        if self.query.catalog.open_file is None:
            raise CatalogError(f"file {path!r} cannot be read here")
        return self.query.catalog.open_file(path)

    def _scan(self, source: TableSource, alias: str, columns: tuple[str, ...], schema: str = "") -> tuple[Plan, Scope]:
        scan = whole_scan(source)
        made = scan.columns
        names = _renamed(source.schema.names, columns, alias)
        if self.query.names_rowid and source.schema.find(ROWID) is None:
            plan, rowid = with_rowid(scan)
            return plan, Scope(self.parent, [ScopeRelation(alias, (*names, ROWID), (*made, rowid), schema, 1)])
        return scan, Scope(self.parent, [ScopeRelation(alias, names, made, schema)])

    def _view(self, view: View, alias: str, columns: tuple[str, ...], schema: str = "") -> tuple[Plan, Scope]:
        tree = _parsed_view(view.sql).tree
        if self.query.catalog.macros():
            from gquery.sql.macros import expand_in

            expand_in(tree := tree.copy(), view.sql, self.query.catalog)
        query = self.query.view(view, tree)
        names = _renamed(query.names, view.columns, view.name)
        return self._named(Query(query.plan, query.outputs, names), alias, columns, schema)

    # ---- table functions ---------------------------------------------------------------------------------------------

    def _table_function(
        self, node: exp.Expr, around: Scope | None, alias: str, columns: tuple[str, ...]
    ) -> tuple[Plan, Scope]:
        kind = reader_of(node)
        if kind is not None:
            return self._read(node, kind, alias, columns)
        from gquery.sql.binding.catalog import FUNCTIONS, table_function  # with all columns of the schema's tables

        if (name := node.name.lower()) in FUNCTIONS:
            given = [ExprBinder(self.query, Scope(), "a table function").bind(a) for a in node.expressions]
            found = table_function(self.query, name, [a for a in given if isinstance(a, Literal)])
            return self._named(found, alias or name, columns)
        if name in WHOLE:
            source = whole_files(name, node, ExprBinder(self.query, Scope(), "a table function").bind, self.query.catalog)
            return self._scan(source, alias or name, columns)
        if name in ("json_each", "json_tree"):
            found = json_table(name, map(ExprBinder(self.query, Scope(around), "a table function").bind, node.expressions))
            return self._named(found, alias or name, columns)
        if name not in ("range", "generate_series"):
            raise NotSupportedError(f"not supported: table function {node.name}")
        is_lateral = around is not None and any(a.find(exp.Column) is not None for a in node.expressions)
        binder = ExprBinder(self.query, Scope(around) if is_lateral else Scope(), "a table function")
        bounds = [binder.bind(a) for a in node.expressions]
        if is_lateral:  # of rows of the tables on its left
            return self._unnested(call(name, *bounds), alias or name, columns, False, name)
        from gquery.sql.binding.range import range_plan

        plan, column = range_plan(name, bounds, lambda query: self.query.ask(query, node))
        names = _renamed((name,), columns, alias or name)
        # DuckDB: FROM range(3) t names the column as the table where no column names are given
        return plan, Scope(self.parent, [ScopeRelation(alias or name, names, (column,))])

    def _unnest(
        self, node: exp.Expr, around: Scope | None, alias: str, columns: tuple[str, ...], has_ordinal: bool
    ) -> tuple[Plan, Scope]:
        binder = ExprBinder(self.query, Scope(around), "the argument of unnest")
        found = list_to_unnest("unnest", [binder.bind(a) for a in node.expressions])
        return self._unnested(found, alias or "unnest", columns, has_ordinal)

    def _unnested(
        self, xs: Expr, alias: str, columns: tuple[str, ...], has_ordinal: bool, name: str = ""
    ) -> tuple[Plan, Scope]:
        plan = unnest_table(xs, has_ordinal)
        names = _renamed((name,) if name else tuple(c.name for c in plan.made), columns, alias)
        return plan, Scope(self.parent, [ScopeRelation(alias, names, plan.made)])

    def _read(self, node: exp.Expr, kind: str, alias: str, columns: tuple[str, ...]) -> tuple[Plan, Scope]:
        paths, options = reader_arguments(node, ExprBinder(self.query, Scope(), "a table function").bind)
        if is_by_name(options):
            return self._named(by_names(paths, kind, options, self.query.catalog), alias or f"read_{kind}", columns)
        return self._scan(read(paths, kind, options, self.query.catalog), alias or f"read_{kind}", columns)

    # ---- joins -------------------------------------------------------------------------------------------------------

    def _join(self, left: tuple[Plan, Scope], node: exp.Join, around: Scope | None) -> tuple[Plan, Scope]:
        right = self._item(node.this, Scope(around, left[1].relations, left[1].merged))
        side, kind, method = ((node.args.get(k) or "").upper() for k in ("side", "kind", "method"))
        join_kind = {"LEFT": JoinKind.LEFT, "RIGHT": JoinKind.LEFT, "FULL": JoinKind.FULL}.get(side, JoinKind.INNER)
        if kind in ("SEMI", "ANTI"):
            join_kind = JoinKind.SEMI if kind == "SEMI" else JoinKind.ANTI
        both = Scope(self.parent, left[1].relations + right[1].relations, left[1].merged + right[1].merged)
        names = [n.name for n in node.args.get("using") or ()]
        if method == "NATURAL":
            right_names = {n.lower() for n, _ in right[1].star()}
            names = [n for n, _ in left[1].star() if n.lower() in right_names]
            if not names:
                raise located(BindError("NATURAL JOIN of tables without a common column name"), self.query.sql, node)
        try:
            pairs = [(n, self._using(n, left[1], "left"), self._using(n, right[1], "right")) for n in names]
            last = pairs[-1:] if method == "ASOF" else []  # USING of an ASOF join: its last column is compared
            terms = tuple(call("eq", a, b) for _, a, b in pairs[: len(pairs) - len(last)])
            terms += tuple(call("ge", a, b) for _, a, b in last)
        except BindError as e:
            raise located(e, self.query.sql, node) from None
        on = node.args.get("on")
        condition = ExprBinder(self.query, both, "ON").condition(on) if on is not None else conjunction(terms)
        if join_kind not in (JoinKind.INNER, JoinKind.LEFT) or side == "RIGHT" or method == "ASOF":
            self._check_apart(left[0], right[0], node)
        if method == "POSITIONAL":
            plan, scope = self._positional(left, right, node)
        elif method == "ASOF":
            try:
                plan, scope = self._asof(left, right, join_kind, condition, side)
            except BindError as e:
                raise located(e, self.query.sql, node) from None
        elif side == "RIGHT" and join_kind is JoinKind.LEFT:
            plan, scope = self._combine(left, right, JoinKind.LEFT, condition, swapped=True)
        else:
            plan, scope = self._combine(left, right, join_kind, condition)
        if join_kind not in (JoinKind.SEMI, JoinKind.ANTI):
            for name, a, b in pairs:
                _merge(scope, (right if side == "RIGHT" else left)[1].spelling(name), a, b, join_kind, side == "RIGHT")
        return plan, scope

    def _positional(self, left: tuple[Plan, Scope], right: tuple[Plan, Scope], node: exp.Join) -> tuple[Plan, Scope]:
        """The rows of both sides side by side, by their numbers."""
        self._check_apart(left[0], right[0], node)
        (a, first), (b, second) = numbered(left[0]), numbered(right[0])
        return self._combine((a, left[1]), (b, right[1]), JoinKind.FULL, call("eq", first, second))

    def _asof(
        self, left: tuple[Plan, Scope], right: tuple[Plan, Scope], kind: JoinKind, condition: Expr, side: str
    ) -> tuple[Plan, Scope]:
        from gquery.sql.binding.asof import asof_join, right_asof_join

        if side == "RIGHT":
            plan = right_asof_join(left[0], right[0], condition)
        else:
            plan = asof_join(left[0], right[0], kind, condition)
        if kind in (JoinKind.SEMI, JoinKind.ANTI):
            return plan, left[1]
        a = _filled(left[1]) if side in ("RIGHT", "FULL") else left[1]
        b = right[1] if side == "RIGHT" else _filled(right[1])
        return plan, Scope(self.parent, a.relations + b.relations, a.merged + b.merged)

    def _check_apart(self, left: Plan, right: Plan, node: exp.Join) -> None:
        if free_columns(right) & column_ids(left):
            error = BindError(
                "the right side of a join uses columns of the left one: it has to be an INNER or LEFT join"
            )
            raise located(error, self.query.sql, node.this)

    def _using(self, name: str, scope: Scope, which: str) -> Expr:
        found = scope.find(name, None)
        if found is None:
            names = [n for r in scope.relations for n in r.names]
            raise BindError(f"USING: the {which} side of the join has no column {name!r}.{did_you_mean(name, names)}")
        return found

    def _combine(
        self,
        left: tuple[Plan, Scope],
        right: tuple[Plan, Scope],
        kind: JoinKind,
        condition: Expr,
        swapped: bool = False,
    ) -> tuple[Plan, Scope]:
        """A join and its scope, with columns nullable where the kind fills in NULLs. ``swapped``: RIGHT as LEFT."""
        (plan_a, a), (plan_b, b) = left, right
        if kind in (JoinKind.SEMI, JoinKind.ANTI):
            return Join(plan_a, plan_b, kind, condition), a
        if swapped or kind is JoinKind.FULL:
            a = _filled(a)
        if kind is JoinKind.FULL or (kind is JoinKind.LEFT and not swapped):
            b = _filled(b)
        plan: Plan
        if free_columns(plan_b) & column_ids(plan_a):  # a lateral join
            plan = _lateral(plan_a, plan_b, kind, condition)
        else:
            plan = Join(plan_b, plan_a, kind, condition) if swapped else Join(plan_a, plan_b, kind, condition)
        return plan, Scope(self.parent, a.relations + b.relations, a.merged + b.merged)


def _lateral(left: Plan, right: Plan, kind: JoinKind, condition: Expr) -> Plan:
    """Each left row beside the right plan's rows for it."""
    if kind is not JoinKind.INNER:
        return Apply(left, right, kind, condition)
    applied = Apply(left, right, kind, TRUE)
    return applied if condition == TRUE else Filter(applied, condition)


def _filled(scope: Scope) -> Scope:
    """The scope of a side that an outer join may fill with NULLs."""
    relations = [r.nullable() for r in scope.relations]
    merged = [Merged(m.name, transform(m.expr, _nullable), m.hides) for m in scope.merged]
    return Scope(scope.parent, relations, merged)


def _nullable(e: Expr) -> Expr:
    return Column(e.id, e.name, e.dtype, True) if isinstance(e, Column) else e


def _merge(scope: Scope, name: str, a: Expr, b: Expr, kind: JoinKind, right_wins: bool) -> None:
    """One column for both sides of USING: the side that is always there, or whichever there is."""
    hides = frozenset(c.id for e in (a, b) for c in _columns(e))
    for m in list(scope.merged):
        if m.name.lower() == name.lower():
            hides |= m.hides
            scope.merged.remove(m)
    if kind is JoinKind.FULL:
        merged = call("coalesce", transform(a, _nullable), transform(b, _nullable))
    else:
        merged = b if right_wins else a
    scope.merged.append(Merged(name, merged, hides))


def _columns(e: Expr) -> list[Column]:
    from gquery.expression.traverse import walk

    return [x for x in walk(e) if isinstance(x, Column)]


def _is_comma(join: exp.Join) -> bool:
    return not any(join.args.get(k) for k in ("side", "kind", "method", "on", "using"))


def _alias(node: exp.Expr) -> tuple[str, tuple[str, ...]]:
    alias = node.args.get("alias")
    if alias is None:
        return "", ()
    return alias.name, tuple(c.name for c in alias.args.get("columns") or ())


@lru_cache(maxsize=256)
def _parsed_view(sql: str) -> Parsed:
    """A view's text, parsed: binding does not change the tree, and a query may use the view many times."""
    parsed = parse_one(sql)
    check(parsed)
    return parsed


def _renamed(names: tuple[str, ...], given: tuple[str, ...], table: str) -> tuple[str, ...]:
    if len(given) > len(names):
        raise BindError(f"table {table!r} has {len(names)} columns, and {len(given)} names are given")
    return given + names[len(given) :]


def holds_join(node: exp.Subquery) -> bool:
    """Whether parentheses are around tables of FROM, and not around a query."""
    return isinstance(node.this, exp.Table) or bool(
        node.this.args.get("joins") and not isinstance(node.this, exp.Select)
    )
