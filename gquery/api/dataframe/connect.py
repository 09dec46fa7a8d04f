"""What a connection does for relations and Python functions: making them, and finding variables of the caller by name."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import TYPE_CHECKING, Any, cast

from gquery.api.session import Session
from gquery.errors import CatalogError, InterfaceError
from gquery.kernels.targets.capabilities import capabilities
from gquery.runtime.arguments import checked
from gquery.runtime.boundary import boundary

if TYPE_CHECKING:
    from gquery.api.connection import Connection
    from gquery.api.relation import Relation
    from gquery.columns.table import TableSource
    from gquery.functions.user import UserFunction
    from gquery.planner.logical.nodes import Query
    from gquery.sql.catalog import BoundRelation, Catalog

_namespace: ContextVar[Mapping[str, Any] | None] = ContextVar("namespace", default=None)
_ANONYMOUS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>", "<lambda>")


@contextmanager
def variables_of(namespace: Mapping[str, Any]) -> Iterator[None]:
    """Within it, names in SQL mean variables of this namespace (a notebook's) and no others."""
    token = _namespace.set(namespace)
    try:
        yield
    finally:
        _namespace.reset(token)


class Frames(Session):
    """The part of a connection that `Relation` and `udf` meet."""

    @property
    def catalog(self) -> Catalog:
        """Tables, views and functions by name."""
        return self._catalog

    @boundary
    def relation(self, query: Query) -> Relation:
        """A bound query as a relation; it is planned when its rows are asked for."""
        from gquery.api.relation import Relation

        return Relation(cast("Connection", self), self._plan(query, now=False))

    @checked
    @boundary
    def from_data(self, data: Any, name: str = "data") -> Relation:
        """Data as a relation, without a name in the catalog: whatever `register` takes, as they are now."""
        from gquery.api.relation import Relation
        from gquery.io.memory import kept_source

        found = data.to_arrow_table() if isinstance(data, Relation) else data
        return self.relation(_scan(kept_source(name, found, self.settings.narrow)))

    @boundary
    def create_function(self, name: str | UserFunction | Callable[..., Any], function: Any = None) -> Any:
        """Make a typed Python function one of SQL, under a name or its own: ``con.create_function("price", price)``."""
        from gquery.functions import is_aggregate
        from gquery.functions.registry import is_declared
        from gquery.functions.user import UserFunction, udf

        if not isinstance(name, str):
            name, function = getattr(name, "name", getattr(name, "__name__", "")), name
        made = function if isinstance(function, UserFunction) else udf(function)
        if is_declared(name.lower()) or is_aggregate(name.lower()):
            raise CatalogError(f'there is a function "{name}" in SQL already; give yours another name')
        self._check_function(made)
        self._catalog.create_function(name, made)
        return self

    def _check_function(self, function: UserFunction) -> None:
        """A function that the compiler does not take is refused where it is first used, not where a kernel is made."""
        if not capabilities(self.target).is_interpreted:
            from gquery.kernels.targets.user_check import check

            function.check(check)

    def _variable(self, name: str, is_function: bool) -> TableSource | BoundRelation | UserFunction | None:
        """What a Python variable of the caller stands for in SQL; None where there is none, or scans are switched off."""
        from gquery.api.relation import Relation
        from gquery.functions.user import UserFunction
        from gquery.io.memory import source_of

        if not self.settings.python_scan:
            return None
        found = _find(name)
        if is_function:
            return found if isinstance(found, UserFunction) else None
        if found is None:
            return None
        if isinstance(found, Relation):
            return found if found._connection is self else self.from_data(found, name)
        if not _is_table(found):
            raise CatalogError(
                f"table {name!r} does not exist; the Python variable of that name is a {type(found).__name__}, "
                "which is no table"
            )
        try:
            return source_of(name, found, self.settings.narrow)
        except InterfaceError as error:
            raise CatalogError(str(error)) from error


def _scan(source: TableSource) -> Query:
    """All rows of a source."""
    from gquery.expression.expr import new_column
    from gquery.planner.logical.nodes import Query, Scan

    columns = tuple(new_column(f.name, f.dtype, f.nullable) for f in source.schema)
    return Query(Scan(source, columns, tuple(range(len(columns)))), columns, source.schema.names)


def _is_table(value: Any) -> bool:
    if isinstance(value, Mapping):
        return bool(value) and all(isinstance(k, str) and hasattr(v, "__len__") and not isinstance(v, str | bytes)
                                   for k, v in value.items())  # fmt: skip
    return hasattr(value, "__arrow_c_stream__") or type(value).__module__.split(".")[0] == "pandas"


def _find(name: str) -> Any:
    """The value of a variable of the first caller outside of this package: local, then global. Comprehensions and lambdas
    see what stands around them."""
    namespace = _namespace.get()
    if namespace is not None:
        return namespace.get(name)
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_inside(frame):
        frame = frame.f_back
    while frame is not None:
        if name in frame.f_locals:
            return frame.f_locals[name]
        if frame.f_code.co_name not in _ANONYMOUS or frame.f_back is None:
            return frame.f_globals.get(name)
        frame = frame.f_back
    return None


def _is_inside(frame: FrameType) -> bool:
    module = str(frame.f_globals.get("__name__", ""))
    return module.split(".")[0] in ("gquery", "contextlib")
