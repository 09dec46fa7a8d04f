"""Statements: what `bind` makes of one, a closed union. The session runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gquery.columns.table import TableSource
from gquery.expression.expr import Expr
from gquery.expression.types import DType
from gquery.planner.logical.nodes import Query
from gquery.runtime.records import dataclass
from gquery.sql.constraints import NONE, Columns, Constraints, Key
from gquery.sql.definitions import Macro

if TYPE_CHECKING:
    from gquery.sql.sequences import Sequence


@dataclass(frozen=True)
class SelectStatement:
    """A query whose rows are asked for."""

    query: Query


@dataclass(frozen=True)
class CreateTable:
    """``CREATE [OR REPLACE] TABLE [IF NOT EXISTS] name AS query``, or with columns, which may have constraints."""

    name: str
    query: Query
    or_replace: bool = False
    if_not_exists: bool = False
    constraints: Constraints = NONE


@dataclass(frozen=True)
class Returning:
    """``RETURNING list``: where it begins and ends in a text, the table whose rows it is over, and what that is called there."""

    sql: str
    start: int
    behind: int
    name: str
    alias: str
    of_merge: bool = False


@dataclass(frozen=True)
class ChangeTable:
    """UPDATE or DELETE: a query of all rows that a table is to have in place of those of ``before``. With
    ``is_marked`` its last column is no column of the table: it says which rows are changed, or ``goes`` if it is true of one.
    Without a query the rows stay. ``constraints`` are the table's, ``new`` what it has behind it, if they are others;
    ``changed`` the columns of which there are new values. MERGE's last column says what is done with a row: 'UPDATE', 'INSERT'
    or 'DELETE', NULL where it stays as it is."""

    name: str
    before: TableSource
    query: Query | None
    constraints: Constraints
    is_marked: bool = False
    goes: bool = False
    returning: Returning | None = None
    new: Constraints | None = None
    changed: tuple[str, ...] = ()


@dataclass(frozen=True)
class AlterTable:
    """``ALTER TABLE`` that adds, drops, renames or retypes a column, or changes what is asked of its values; None where IF
    EXISTS or IF NOT EXISTS leaves nothing to do."""

    change: ChangeTable | None


@dataclass(frozen=True)
class RenameTable:
    """``ALTER TABLE name RENAME TO new``."""

    name: str
    new: str


@dataclass(frozen=True)
class Transaction:
    """``BEGIN``, ``COMMIT`` or ``ROLLBACK``: the kind is "begin", "commit" or "rollback"."""

    kind: str


@dataclass(frozen=True)
class Conflict:
    """What an INSERT does with a row whose key the table has: the ``kind`` is "nothing", "update" or "replace". ``target``: the
    columns of the key as they were written; ``sets``: columns with their new values as texts, None for their defaults."""

    kind: str
    target: tuple[str, ...] = ()
    sets: tuple[tuple[str, str | None], ...] = ()
    where: str = ""
    key: Key | None = None


@dataclass(frozen=True)
class AppendRows:
    """INSERT: a query of the rows that go behind those of a table, which has these columns. If they are VALUES of constants,
    ``values`` has an expression for each row and column, of the ``types`` of the query; ``parameters`` then has the name of the
    parameter that such a value is, None for any other, if no parameter is only a part of a value."""

    name: str
    columns: Columns
    query: Query
    constraints: Constraints = NONE
    values: tuple[tuple[Expr, ...], ...] | None = None
    parameters: tuple[tuple[str | None, ...], ...] | None = None
    returning: Returning | None = None
    conflict: Conflict | None = None

    @property
    def types(self) -> tuple[DType, ...]:
        return tuple(c.dtype for c in self.query.outputs)


@dataclass(frozen=True)
class CreateView:
    """``CREATE [OR REPLACE] VIEW [IF NOT EXISTS] name [(columns)] AS sql``; the text has been bound once, so it is
    right."""

    name: str
    sql: str
    columns: tuple[str, ...] = ()
    or_replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True)
class CreateMacro:
    """``CREATE [OR REPLACE] MACRO [IF NOT EXISTS] name(...) AS ...``: bodies whose names have been looked at."""

    name: str
    bodies: tuple[Macro, ...]
    or_replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True)
class DropMacro:
    """``DROP MACRO [IF EXISTS] name``."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True)
class DropTable:
    """``DROP TABLE [IF EXISTS] name``."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True)
class DropView:
    """``DROP VIEW [IF EXISTS] name``."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True)
class CreateSchema:
    """``CREATE SCHEMA [IF NOT EXISTS] name``."""

    name: str
    if_not_exists: bool = False


@dataclass(frozen=True)
class DropSchema:
    """``DROP SCHEMA [IF EXISTS] name [CASCADE]``."""

    name: str
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True)
class UseSchema:
    """``USE name``, ``SET schema = name``."""

    name: str


@dataclass(frozen=True)
class CreateSequence:
    """``CREATE [OR REPLACE] SEQUENCE [IF NOT EXISTS] name ...``."""

    sequence: Sequence
    or_replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True)
class DropSequence:
    """``DROP SEQUENCE [IF EXISTS] name``."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True)
class SetVariable:
    """``SET VARIABLE name = value``: a query of one row and column; None of RESET VARIABLE."""

    name: str
    query: Query | None


@dataclass(frozen=True)
class Explain:
    """``EXPLAIN``: options such as "analyze", "bound", "optimized", "physical", "pipelines", "code"."""

    options: tuple[str, ...]
    statement: Statement


@dataclass(frozen=True)
class Prepare:
    """``PREPARE name AS text``; ``parameters``: the names of those in it, numbers for those without a name."""

    name: str
    text: str
    parameters: tuple[str, ...]


@dataclass(frozen=True)
class Execute:
    """``EXECUTE name(arguments)``: a query of one row that has their values, None where there are none, and their names: "" for
    one by its place."""

    name: str
    arguments: Query | None
    names: tuple[str, ...]


@dataclass(frozen=True)
class Deallocate:
    """``DEALLOCATE name``."""

    name: str


@dataclass(frozen=True)
class CopyTo:
    """``COPY query TO path (options)``: an option has a text, several, or TRUE where it has no value."""

    query: Query
    path: str
    options: tuple[tuple[str, object], ...]


@dataclass(frozen=True)
class SetOption:
    """``SET name = value``; None resets it."""

    name: str
    value: Any


Statement = (
    SelectStatement
    | CreateTable
    | ChangeTable
    | AlterTable
    | RenameTable
    | Transaction
    | AppendRows
    | CreateView
    | CreateMacro
    | DropMacro
    | DropTable
    | DropView
    | CreateSchema
    | DropSchema
    | UseSchema
    | SetVariable
    | CreateSequence
    | DropSequence
    | Explain
    | SetOption
    | Prepare
    | Execute
    | Deallocate
    | CopyTo
)
