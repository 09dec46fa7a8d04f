"""What is asked of a statement before it is bound: gquery runs all of it (`supported`), it is a statement by DuckDB's grammar
(`grammar`), the binder reads all of the tree (`closed`), and the tree holds all of the text (`covered`)."""

from __future__ import annotations

from sqlglot import exp

from gquery.errors import BindError, InterfaceError, ParseError
from gquery.functions.registry import OPERATORS
from gquery.sql.grammar.tokens import Reading
from gquery.sql.lexer import PARAMETER
from gquery.sql.parse import Parsed, located
from gquery.sql.types import Parameters, parameter_names


def check(parsed: Parsed) -> None:
    """Raises NotSupportedError for what gquery does not run, with every reason at once, and ParseError where a token
    cannot stand where it stands."""
    if parsed.is_plain:
        return  # nothing of what is refused
    from gquery.sql.closed import check_read
    from gquery.sql.covered import check_covered
    from gquery.sql.supported import check_supported

    nodes = parsed.read or parsed.nodes
    check_supported(nodes, parsed.sql)
    if isinstance(parsed.reading, ParseError):
        raise parsed.reading
    check_read(nodes, parsed.sql)
    if parsed.reading is not None:
        check_covered(nodes, parsed.reading, parsed.sql)
        for node in nodes:
            if type(node) is exp.Anonymous and ((name := node.name.lower()) in OPERATORS or name[:1] == "_"):
                raise located(BindError(f"there is no function {node.name!r}"), parsed.sql, node)


def check_used(parsed: Parsed, parameters: Parameters) -> None:
    """InterfaceError for values of parameters that the text does not have, and for what is no list or dict of values."""
    if parameters is None:
        return
    if isinstance(parameters, str | bytes) or not (hasattr(parameters, "__len__") and hasattr(parameters, "__getitem__")):
        raise InterfaceError(f"parameters are given as a list or a dict of values, not {parameters!r}")
    if not len(parameters) or parsed.tokens is None:
        return
    words = [w[1:] for w, kind in zip(parsed.tokens.words, parsed.tokens.kinds, strict=True) if kind == PARAMETER]
    used = {*filter(None, words), *(str(n) for n in range(1, words.count("") + 1))}
    if (
        isinstance(parsed.reading, Reading)
        and parsed.reading.form is not None
        and parsed.reading.form.kind == "prepare"
    ):
        used = set()  # which are EXECUTE's
    more = sorted(parameter_names(parameters) - used, key=lambda p: (len(p), p))
    if more:
        raise InterfaceError(
            f"the statement has no parameter {', '.join(f'${p}' for p in more)}, which a value is given for"
        )
