"""The backend of Ibis: ``ibis.gquery.connect(device="auto")`` (`pip install gquery[ibis]`).

Ibis' compiler for DuckDB writes the SQL of queries, a `Connection` runs it, and results come back as Arrow. Nothing is computed
here: what gquery does not run is refused by it, with its message. Statements are written here, as sqlglot's trees for them
change from version to version. Ibis finds this module by its entry point.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import metadata
from typing import Any

import ibis.backends.sql.compilers as compilers
import ibis.expr.operations as ops
import ibis.expr.schema as sch
import ibis.expr.types as ir
import pyarrow as pa
import sqlglot.expressions as sge
from ibis.backends import NoUrl
from ibis.backends.sql import SQLBackend

from gquery.api.connection import Connection, connect
from gquery.api.relation import Relation
from gquery.errors import CatalogError, Error

CATALOG, DATABASE = "memory", "main"


class Backend(SQLBackend, NoUrl):  # type: ignore[misc]
    """Tables of one `gquery.Connection`, ``con``."""

    name = "gquery"
    compiler = compilers.duckdb.compiler
    con: Connection

    def do_connect(self, device: str = "auto", **options: Any) -> None:
        """Open a connection; the options are those of `gquery.connect`."""
        self.con = connect(device, **options)

    @classmethod
    def from_connection(cls, con: Connection, /) -> Backend:
        """A backend over a connection that is open."""
        made = cls()
        made._can_reconnect = False
        made.con = con
        return made

    def disconnect(self) -> None:
        """Close the connection."""
        self.con.close()

    @property
    def version(self) -> str:
        """gquery's version."""
        return metadata.version("gquery")

    @property
    def current_catalog(self) -> str:
        """The only catalog."""
        return CATALOG

    @property
    def current_database(self) -> str:
        """The only database."""
        return DATABASE

    # ---- tables ----------------------------------------------------------------------------------------------------

    def list_tables(self, *, like: str | None = None, database: tuple[str, str] | str | None = None) -> list[str]:
        """The names of tables and views; ``like`` is a regular expression."""
        names = [name for (name,) in self.con.sql("SHOW TABLES").fetchall()]
        found: list[str] = self._filter_with_like(names, like)
        return found

    def get_schema(self, table_name: str, *, catalog: str | None = None, database: str | None = None) -> sch.Schema:
        """The columns of a table."""
        try:
            return self._schema(self.con.table(table_name))
        except CatalogError as error:
            from ibis.common.exceptions import TableNotFound

            raise TableNotFound(table_name) from error

    def _get_schema_using_query(self, query: str) -> sch.Schema:
        return self._schema(self.con.sql(query))

    def _schema(self, relation: Relation) -> sch.Schema:
        of_text = self.compiler.type_mapper.from_string
        return sch.Schema({n: of_text(str(t)) for n, t in zip(relation.columns, relation.types, strict=True)})

    def create_table(
        self,
        name: str,
        /,
        obj: Any = None,
        *,
        schema: Any = None,
        database: str | None = None,
        temp: bool = False,
        overwrite: bool = False,
    ) -> ir.Table:
        """A table of an expression's rows, or of a data frame's; without either an empty one of a schema. All live as long as the
        connection, as ``temp`` ones do."""
        if obj is None and schema is None:
            raise ValueError("create_table takes obj or schema")
        if obj is None:
            obj = sch.schema(schema).to_pyarrow().empty_table()
        if not isinstance(obj, ir.Table):
            import ibis

            obj = ibis.memtable(obj, schema=schema)
        self._run_pre_execute_hooks(obj)
        return self._created("TABLE", name, obj, overwrite)

    def create_view(
        self, name: str, /, obj: ir.Table, *, database: str | None = None, overwrite: bool = False
    ) -> ir.Table:
        """A view of an expression."""
        self._run_pre_execute_hooks(obj)
        return self._created("VIEW", name, obj, overwrite)

    def drop_table(self, name: str, /, *, database: str | None = None, force: bool = False) -> None:
        """Drop a table; with ``force`` one that may not be there."""
        self._dropped("TABLE", name, force)

    def drop_view(self, name: str, /, *, database: str | None = None, force: bool = False) -> None:
        """Drop a view; with ``force`` one that may not be there."""
        self._dropped("VIEW", name, force)

    def _created(self, kind: str, name: str, obj: ir.Table, overwrite: bool) -> ir.Table:
        replace = "OR REPLACE " if overwrite else ""
        self.con.sql(f"CREATE {replace}{kind} {_quoted(name)} AS {self.compile(obj)}")
        return self.table(name)

    def _dropped(self, kind: str, name: str, force: bool) -> None:
        self.con.sql(f"DROP {kind} {'IF EXISTS ' if force else ''}{_quoted(name)}")

    def _register_in_memory_table(self, op: ops.InMemoryTable) -> None:
        self.con.register(op.name, op.data.to_pyarrow(op.schema))

    def _make_memtable_finalizer(self, name: str) -> Callable[..., None]:
        con = self.con
        return lambda: _forget(con, name)

    def read_parquet(self, paths: Any, /, *, table_name: str | None = None, **options: Any) -> ir.Table:
        """A view of Parquet files."""
        return self._read(self.con.read_parquet(paths, **options), table_name, "parquet")

    def read_csv(self, paths: Any, /, *, table_name: str | None = None, **options: Any) -> ir.Table:
        """A table of CSV files."""
        return self._read(self.con.read_csv(paths, **options), table_name, "csv")

    def read_json(self, paths: Any, /, *, table_name: str | None = None, **options: Any) -> ir.Table:
        """A table of JSON files, a value a line."""
        return self._read(self.con.read_json(paths, **options), table_name, "json")

    def _read(self, relation: Relation, name: str | None, kind: str) -> ir.Table:
        from ibis import util

        name = name or util.gen_name(f"read_{kind}")
        self.con.register(name, relation)
        return self.table(name)

    # ---- queries ---------------------------------------------------------------------------------------------------

    def raw_sql(self, query: str | sge.Expression, **_: Any) -> Relation:
        """Run SQL as it stands."""
        text = query if isinstance(query, str) else query.sql(dialect=self.dialect)
        return self.con.sql(text).collect()

    @contextmanager
    def _safe_raw_sql(self, query: str | sge.Expression, **_: Any) -> Iterator[Relation]:
        yield self.raw_sql(query)

    def to_pyarrow(
        self,
        expr: ir.Expr,
        /,
        *,
        params: Mapping[ir.Scalar, Any] | None = None,
        limit: int | str | None = None,
        **_: Any,
    ) -> Any:
        """An expression's value as a table, a column or a scalar of Arrow."""
        return expr.__pyarrow_result__(self._arrow(expr, params, limit))

    def to_pyarrow_batches(
        self,
        expr: ir.Expr,
        /,
        *,
        params: Mapping[ir.Scalar, Any] | None = None,
        limit: int | str | None = None,
        chunk_size: int = 1_000_000,
        **_: Any,
    ) -> pa.ipc.RecordBatchReader:
        """An expression's rows in batches."""
        table = self._arrow(expr, params, limit).cast(expr.as_table().schema().to_pyarrow())
        return pa.ipc.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=chunk_size))

    def execute(
        self,
        expr: ir.Expr,
        /,
        *,
        params: Mapping[ir.Scalar, Any] | None = None,
        limit: int | str | None = None,
        **_: Any,
    ) -> Any:
        """An expression's value as a frame, a series or a value of pandas."""
        from ibis.formats.pandas import PandasData

        frame = self._arrow(expr, params, limit).to_pandas()
        return expr.__pandas_result__(PandasData.convert_table(frame, expr.as_table().schema()))

    def _arrow(self, expr: ir.Expr, params: Mapping[ir.Scalar, Any] | None, limit: int | str | None) -> pa.Table:
        self._run_pre_execute_hooks(expr)
        table = expr.as_table()
        made = self.con.sql(self.compile(table, params=params, limit=limit)).to_arrow_table()
        return made.rename_columns(list(table.schema().names))


def narwhals_frame(relation: Relation) -> Any:
    """What Narwhals computes with for a relation: its frame of Ibis over a table of this backend. The table has a name in the
    connection as long as somebody holds it."""
    import narwhals
    from ibis import util

    name = util.gen_name("narwhals")
    relation.connection.register(name, relation)
    table = Backend.from_connection(relation.connection).table(name)
    weakref.finalize(table.op(), _forget, relation.connection, name)
    return narwhals.from_native(table)._compliant_frame


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _forget(con: Connection, name: str) -> None:
    """Unregister a table that may be gone with its connection."""
    with suppress(Error):
        con.unregister(name)
