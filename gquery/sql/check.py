"""What is asked of a statement before it is bound: gquery runs all of it (`supported`), it is a statement by DuckDB's grammar
(`grammar`), the binder reads all of the tree (`closed`), and the tree holds all of the text (`covered`)."""

from __future__ import annotations

from sqlglot import exp

from gquery.errors import BindError, ParseError
from gquery.functions.registry import OPERATORS
from gquery.sql.closed import check_read
from gquery.sql.covered import check_covered
from gquery.sql.parse import Parsed, located
from gquery.sql.supported import check_supported


def check(parsed: Parsed) -> None:
    """Raises NotSupportedError for what gquery does not run, with every reason at once, and ParseError where a token
    cannot stand where it stands."""
    nodes = parsed.nodes
    check_supported(nodes, parsed.sql)
    if isinstance(parsed.reading, ParseError):
        raise parsed.reading
    check_read(nodes, parsed.sql)
    if parsed.reading is not None:
        check_covered(nodes, parsed.reading, parsed.sql)
        for node in nodes:
            if type(node) is exp.Anonymous and ((name := node.name.lower()) in OPERATORS or name[:1] == "_"):
                raise located(BindError(f"there is no function {node.name!r}"), parsed.sql, node)
