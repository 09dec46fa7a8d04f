"""Binding of one SELECT.

The plan of a SELECT is, from the bottom: FROM, Filter (WHERE), Aggregate, Filter (HAVING), Window, Filter (QUALIFY), Unnest,
Project (the SELECT list), Aggregate (DISTINCT), Sort, Limit; Sort stands below Project where a key is not in the SELECT list. In
a grouped query expressions are bound over the rows first; then whatever equals a key becomes the key's column, and a column
that is left over is an error.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from gquery import tuning
from gquery.errors import BindError, Error, NotSupportedError, did_you_mean
from gquery.expression.expr import Column, Expr, Literal, SortKey, new_column
from gquery.expression.traverse import conjunction
from gquery.functions.structs import fields
from gquery.planner.logical.nodes import Aggregate, Filter, Plan, Project, Query, Sort, Values
from gquery.sql.binding.columns import by_function, expanded, like_star
from gquery.sql.binding.expr import ExprBinder
from gquery.sql.binding.from_clause import FromBinder
from gquery.sql.binding.groups import ByExpr, GroupedScope, Item, columns_by_expr, named_item
from gquery.sql.binding.limits import first_of_each
from gquery.sql.binding.structs import struct_to_unnest
from gquery.sql.binding.windows import Windows
from gquery.sql.collation import sort_node
from gquery.sql.ctes import Ctes, Queries
from gquery.sql.group_all import has_aggregate, is_key_of_all
from gquery.sql.grouping_sets import has_sets, keys_of, sets_of
from gquery.sql.names import column_name
from gquery.sql.order_keys import check_key, ordinal, sort_key
from gquery.sql.parse import located
from gquery.sql.reshape import reshaped
from gquery.sql.scope import Scope


class SelectBinder:
    """Binds one SELECT in the scope of the queries around it."""

    def __init__(self, query: Queries, node: exp.Select, parent: Scope | None, ctes: Ctes) -> None:
        self.query, self.node, self.parent, self.ctes = query, node, parent, ctes

    def bind(self) -> Query:
        """The plan and the result columns."""
        plan, self.scope = FromBinder(self.query, self.parent, self.ctes).bind(self.node)
        plan = self.query.sampled(plan, self.node)
        plan, self.scope, self.node = reshaped(self.query, self.node, plan, self.scope)
        self.items = self._select_list()
        self.aliases = {
            i.name.lower(): i.node.this
            for i in self.items  # of equal ones the last counts
            if i.node is not None and isinstance(i.node, exp.Alias)
        }
        self.defined: dict[str, exp.Expr] = {}  # what an entry of the SELECT list may use: aliases before it
        where = self.node.args.get("where")
        if where is not None:
            terms = [self._binder("WHERE").condition(n) for n in self._expanded([where.this], named=False)]
            plan = Filter(plan, conjunction(tuple(terms)))
        self.windows = Windows(self.query.sql, self.node.args.get("windows") or (), self.query.windows)
        self.groups = GroupedScope(self.scope) if self._is_grouped() else None
        if self.groups is not None:
            plan = self._grouped(plan, self.groups)
        else:
            for item in self.items:
                self._bind_item(item, None)
            self.sort_keys = self._order_by(None)
            self.distinct_on = self._distinct_on(None)
            self.qualify = self._qualify(None)
        plan = self.windows.plan(plan)
        plan = plan if self.qualify is None else Filter(plan, self.qualify)
        return self._finish(self.windows.unnested.plan(plan))

    def _binder(self, clause: str, groups: GroupedScope | None = None) -> ExprBinder:
        return ExprBinder(self.query, self.scope, clause, groups, self.aliases)

    # ---- the SELECT list ---------------------------------------------------------------------------------------------

    def _select_list(self) -> list[Item]:
        items: list[Item] = []
        for node in self._expanded(self.node.expressions, named=True):
            if (chosen := like_star(node)) is not None:
                items += [i for i in self._star(chosen[0], None) if chosen[1](i.name)]
                continue
            star = node.this if isinstance(node, exp.Column) else node
            if isinstance(star, exp.Star):
                items += self._star(star, *((node.table, node.db.lower()) if isinstance(node, exp.Column) else (None,)))
            elif isinstance(node, exp.Column):
                items.append(Item(self.scope.spelling(node.name), node))
            elif (parts := self._struct_parts(node)) is not None:
                items += [Item(name, None, e) for name, e in parts]
            else:
                items.append(Item(column_name(node), node))
        if not items:
            raise located(BindError("SELECT * without a FROM clause"), self.query.sql, self.node)
        return items

    def _struct_parts(self, node: exp.Expr) -> list[tuple[str, Expr]] | None:
        """The columns that ``unnest(struct)`` stands for; None for any other entry."""
        of = struct_to_unnest(node)
        if of is None:
            return None
        e = ExprBinder(self.query, self.scope, "the argument of unnest").bind(of)
        return fields(e) if e.dtype.is_struct else None

    def _kept(self, tests: list[exp.Expr]) -> list[bool]:
        """Which of some conditions over constants are true."""
        binder = ExprBinder(self.query, Scope(), "COLUMNS")
        made = tuple((new_column("kept", e.dtype), e) for e in map(binder.condition, tests))
        asked = Query(Project(Values((), ((),)), made), tuple(c for c, _ in made), tuple(c.name for c, _ in made))
        return [value is True for value in self.query.ask(asked, self.node)[0]]

    def _expanded(self, nodes: Sequence[exp.Expr], named: bool) -> list[exp.Expr]:
        """Expressions, each with COLUMNS as often as that means a column."""
        if not self.query.has_columns:
            return list(nodes)
        result: list[exp.Expr] = []
        for node in nodes:
            try:
                result += expanded(by_function(node, self.scope.star, self._kept), self.scope.star, named)
            except (BindError, NotSupportedError) as error:
                raise located(error, self.query.sql, node) from None
        return result

    def _star(self, star: exp.Star, table: str | None, schema: str = "") -> list[Item]:
        try:
            columns = self.scope.star(table, schema)
        except Error as e:
            raise located(e, self.query.sql, self.node) from None
        dropped = {c.name.lower(): c for c in star.args.get("except_") or star.args.get("except") or ()}
        replaced = {a.alias.lower(): a for a in star.args.get("replace") or ()}
        renamed = {a.this.name.lower(): a.alias for a in star.args.get("rename") or ()}
        names = [n for n, _ in columns]
        for name, node in (*dropped.items(), *replaced.items()):
            if name not in (n.lower() for n in names):
                error = BindError(f"* has no column {name!r}.{did_you_mean(name, names)}")
                raise located(error, self.query.sql, node)
        return [
            Item(replaced[n.lower()].alias, replaced[n.lower()])
            if n.lower() in replaced
            else Item(renamed.get(n.lower(), n), None, e, n.lower() in renamed)
            for n, e in columns
            if n.lower() not in dropped
        ]

    def _bind_item(self, item: Item, groups: GroupedScope | None) -> None:
        """Sets the item's expression, over the groups where there are some."""
        if item.node is None:
            if groups is not None:
                item.expr = item.key or self._lifted(groups, item.bound, self.node)
            return
        node = item.node.this if isinstance(item.node, exp.Alias) else item.node
        item.expr = item.key or self._over_groups(node, "SELECT", groups, self.defined)
        low = item.name.lower()
        if isinstance(item.node, exp.Alias) and self.aliases.get(low) is node:
            self.defined[low] = self.aliases[low]

    def _over_groups(
        self, node: exp.Expr, clause: str, groups: GroupedScope | None, aliases: dict[str, exp.Expr] | None = None
    ) -> Expr:
        seen = self.aliases if aliases is None else aliases
        binder = ExprBinder(self.query, self.scope, clause, groups, seen, self.windows)
        if groups is None:
            return binder.bind(node)
        key = groups.written(node)
        return key if key is not None else self._lifted(groups, binder.bind(node), node)

    def _lifted(self, groups: GroupedScope, e: Expr, node: exp.Expr) -> Expr:
        try:
            return groups.lift(e)
        except BindError as error:
            raise located(error, self.query.sql, node) from None

    # ---- grouping ----------------------------------------------------------------------------------------------------

    def _is_grouped(self) -> bool:
        group, having = self.node.args.get("group"), self.node.args.get("having")
        if having is not None or (group is not None and (not group.args.get("all") or self._keys_of_all())):
            return True
        order = self.node.args.get("order")
        qualify = self.node.args.get("qualify")
        nodes = [i.node for i in self.items if i.node is not None] + [n for n in (order, qualify) if n is not None]
        nodes += self.node.args.get("windows") or ()
        return any(has_aggregate(n) for n in nodes)

    def _grouped(self, plan: Plan, groups: GroupedScope) -> Plan:
        group = self.node.args.get("group")
        if group is not None:
            self._add_keys(groups, group)
        self.scope.grouped, self.scope.written = groups.lift, groups.written
        self.windows.lift = lambda e, node: self._lifted(groups, e, node)
        for item in self.items:
            self._bind_item(item, groups)
        having = self.node.args.get("having")
        predicate: Expr | None = None
        if having is not None:
            binder = self._binder("HAVING", groups)
            predicate = self._lifted(groups, binder.condition(having.this), having)
        self.sort_keys = self._order_by(groups)
        self.distinct_on = self._distinct_on(groups)
        self.qualify = self._qualify(groups)
        self.scope.grouped = self.scope.written = None
        plan = Aggregate(plan, tuple(groups.keys), tuple(groups.aggregates), groups.sets)
        return plan if predicate is None else Filter(plan, predicate)

    def _add_keys(self, groups: GroupedScope, group: exp.Group) -> None:
        if group.args.get("all"):
            for item in self._keys_of_all():
                self._add_key(groups, item)
        elif has_sets(group.expressions):
            self._add_sets(groups, group)
        else:
            for node in group.expressions:
                for key in keys_of(node):
                    self._add_key(groups, key)

    def _keys_of_all(self) -> list[Item]:
        """The entries that GROUP BY ALL groups by."""

        def is_key(node: exp.Expr) -> bool:
            return is_key_of_all(node.unalias(), self._binder("GROUP BY"), self.aliases)

        return [i for i in self.items if i.node is None or is_key(i.node)]

    def _add_sets(self, groups: GroupedScope, group: exp.Group) -> None:
        try:
            sets = sets_of(group.expressions)
        except NotSupportedError as error:
            raise located(error, self.query.sql, group) from None
        nodes = list({id(n): n for s in sets for n in s}.values())
        trial = GroupedScope(self.scope)  # which keys are the same, before it is said which may be NULL
        items = {id(n): named_item(n, self.items, self.aliases, self.scope, self.query.sql) for n in nodes}
        keys = {id(n): self._add_key(trial, n, item=items[id(n)]) for n in nodes}
        for item in self.items:
            item.key = None
        if len(trial.keys) > tuning.rewrites.most_set_keys:
            text = f"not supported: grouping sets of more than {tuning.rewrites.most_set_keys} keys"
            raise located(NotSupportedError(text), self.query.sql, group)
        inside = [{keys[id(n)].id for n in s} for s in sets]
        columns = {
            id(n): self._add_key(groups, n, any(keys[id(n)].id not in s for s in inside), items[id(n)]) for n in nodes
        }
        groups.set_sets([[columns[id(n)] for n in s] for s in sets])

    def _add_key(
        self, groups: GroupedScope, key: exp.Expr | Item, nullable: bool = False, item: Item | None = None
    ) -> Column:
        """A key: a column, an ordinal or alias of the SELECT list, or any expression. ``item``: what it names, if that counts as
        a key of its own."""
        if isinstance(key, exp.Expr):
            index = ordinal(key, len(self.items), "GROUP BY", self.query.sql)
            if index is not None:
                key = self.items[index]
        if isinstance(key, Item):
            if key.node is None:
                check_key((key.bound,), "GROUP BY", self.node, self.query.sql)
                return self._grouped_by(groups, key.bound, key.name, nullable, item)
            key = key.node.this if isinstance(key.node, exp.Alias) else key.node
        e = self._binder("GROUP BY").bind(key)
        check_key((e,), "GROUP BY", key, self.query.sql)
        name = key.name if isinstance(key, exp.Column) else column_name(key)
        column = self._grouped_by(groups, e, name, nullable, item)
        groups.write(key, column)
        alias = self.aliases.get(name.lower()) if isinstance(key, exp.Column) and not key.table else None
        if alias is not None and self.scope.meant(name) is None:
            groups.write(alias, column)
        return column

    def _grouped_by(self, groups: GroupedScope, e: Expr, name: str, nullable: bool, item: Item | None) -> Column:
        column = groups.add_key(e, name, nullable, item)
        if item is not None:
            item.key = column
        return column

    def _qualify(self, groups: GroupedScope | None) -> Expr | None:
        """The predicate of QUALIFY; it is bound last, when all windows of the SELECT are known."""
        node = self.node.args.get("qualify")
        if node is None:
            return None
        binder = ExprBinder(self.query, self.scope, "QUALIFY", groups, self.aliases, self.windows)
        predicate = binder.condition(node.this)
        if not self.windows:
            raise located(
                BindError("QUALIFY without a window function in it or in the SELECT list"), self.query.sql, node
            )
        return predicate if groups is None else self._lifted(groups, predicate, node)

    # ---- order, distinct, limit --------------------------------------------------------------------------------------

    def _order_by(self, groups: GroupedScope | None) -> list[tuple[Item | Expr, exp.Ordered]]:
        """The sort keys: entries of the SELECT list, or other expressions over the same columns."""
        order = self.node.args.get("order")
        keys: list[tuple[Item | Expr, exp.Ordered]] = []
        for ordered in order.expressions if order is not None else ():
            node = sort_node(ordered.this)
            if isinstance(node, exp.Var) and node.name.upper() == "ALL":
                keys += [(i, ordered) for i in self.items]
                continue
            index = ordinal(node, len(self.items), "ORDER BY", self.query.sql)
            item = self.items[index] if index is not None else self._item_named(node)
            keys.append((item if item is not None else self._over_groups(node, "ORDER BY", groups), ordered))
        return keys

    def _distinct_on(self, groups: GroupedScope | None) -> list[Expr]:
        """The keys of DISTINCT ON, which are read as those of ORDER BY are."""
        distinct = self.node.args.get("distinct")
        on = distinct.args.get("on") if distinct is not None else None
        keys: list[Expr] = []
        for node in keys_of(on) if on is not None else ():
            index = ordinal(node, len(self.items), "DISTINCT ON", self.query.sql)
            item = self.items[index] if index is not None else self._item_named(node)
            keys.append(item.bound if item is not None else self._over_groups(node, "DISTINCT ON", groups))
        check_key(keys, "DISTINCT ON", self.node, self.query.sql)
        return keys

    def _item_named(self, node: exp.Expr) -> Item | None:
        """The entry of the SELECT list that a sort key names or repeats."""
        if isinstance(node, exp.Column) and not node.table:
            low = node.name.lower()
            named = [i for i in self.items if i.name.lower() == low]
            aliased = [i for i in named if i.is_aliased]
            if aliased:
                return aliased[-1]
            if any(i.expr != named[0].expr for i in named):  # of several tables
                self._binder("ORDER BY").bind(node)
            if named:
                return named[0]
        for i in self.items:
            if i.node is not None and (i.node.this if isinstance(i.node, exp.Alias) else i.node) == node:
                return i
        return None

    def _finish(self, plan: Plan) -> Query:
        sql = self.query.sql
        names = tuple(i.name for i in self.items)
        if self.distinct_on:
            order = [sort_key(_bound(k), o, sql) for k, o in self.sort_keys]
            plan = first_of_each(plan, self.distinct_on, [k for k in order if not isinstance(k.expr, Literal)])
        targets = self._targets(plan)
        projected = _project(plan, targets)
        outputs = tuple(c for c, _ in targets)
        if self.node.args.get("distinct") is not None and not self.distinct_on:
            check_key(outputs, "DISTINCT", self.node, sql)
            distinct = tuple((new_column(c.name, c.dtype, c.nullable), c) for c in outputs)
            self.query.distinct |= {c.id: of for c, of in distinct}
            by_item = {id(i): c for i, (c, _) in zip(self.items, distinct, strict=True)}
            by_expr = columns_by_expr((e, c) for (_, e), (c, _) in zip(targets, distinct, strict=True))
            projected, outputs = Aggregate(projected, distinct, ()), tuple(c for c, _ in distinct)
            keys = [sort_key(self._distinct_key(k, by_item, by_expr, o), o, sql) for k, o in self.sort_keys]
            return self._limited(_sorted(projected, keys), outputs, names)
        by_item = {id(i): c for i, (c, _) in zip(self.items, targets, strict=True)}
        by_expr = columns_by_expr((e, c) for c, e in targets)
        found = [(by_item[id(k)] if isinstance(k, Item) else by_expr.get(k), o) for k, o in self.sort_keys]
        keys = [sort_key(c, o, sql) for c, o in found if c is not None]
        if len(keys) == len(found):
            return self._limited(_sorted(projected, keys), outputs, names)
        keys = [sort_key(_bound(k), o, sql) for k, o in self.sort_keys]
        plan = self.query.limited(_sorted(plan, keys), self.node)
        return Query(_project(plan, targets), outputs, names)

    def _limited(self, plan: Plan, outputs: tuple[Column, ...], names: tuple[str, ...]) -> Query:
        return Query(self.query.limited(plan, self.node), outputs, names)

    def _distinct_key(self, key: Item | Expr, by_item: dict[int, Column], by_expr: ByExpr, o: exp.Ordered) -> Expr:
        found = by_item[id(key)] if isinstance(key, Item) else by_expr.get(key)
        if found is None:
            error = BindError("ORDER BY of SELECT DISTINCT can only use what is in the SELECT list")
            raise located(error, self.query.sql, o)
        return found

    def _targets(self, plan: Plan) -> list[tuple[Column, Expr]]:
        """The result columns: a column of the plan is passed on once; the rest are new."""
        known = {c.id for c in plan.columns}
        targets: list[tuple[Column, Expr]] = []
        for i in self.items:
            e = i.bound
            if isinstance(e, Column) and e.id in known:
                known.discard(e.id)
                targets.append((e, e))
            else:
                targets.append((new_column(i.name, e.dtype, e.nullable), e))
        return targets


def _bound(key: Item | Expr) -> Expr:
    return key.bound if isinstance(key, Item) else key


def _project(plan: Plan, targets: list[tuple[Column, Expr]]) -> Plan:
    """The plan with these columns: itself where it has them already."""
    pairs = zip(targets, plan.columns, strict=True)
    is_there = len(targets) == len(plan.columns) and all(c is e and c.id == below.id for (c, e), below in pairs)
    return plan if is_there else Project(plan, tuple(targets))


def _sorted(plan: Plan, keys: list[SortKey]) -> Plan:
    """The plan in order; constants do not order anything."""
    kept = tuple(k for k in keys if not isinstance(k.expr, Literal))
    return Sort(plan, kept) if kept else plan
