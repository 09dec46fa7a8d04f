"""Whether Numba compiles a Python function of a user: its error, with the line in the user's file."""

from __future__ import annotations

import ast
import linecache
import re
from types import CodeType

from numba import types
from numba.core.errors import NumbaError

from gquery.errors import NotSupportedError
from gquery.functions.user_source import Rewritten, refusal
from gquery.kernels.targets.cpu_primitives import binding, part
from gquery.kernels.targets.user_entry import bound
from gquery.runtime.syntax import compiled

_TYPES = {"int": types.int64, "float": types.float64, "bool": types.boolean}
_STATUS = (types.CPointer(types.uint32), types.int64)
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_NOISE = re.compile(r"Failed in|During:|There are|Overload of|>>>|-{3,}|\[|\s*$|No conversion|.*function <built-in")


def check(rewritten: Rewritten, name: str, kinds: tuple[str, ...]) -> None:
    """Compile the function for these parameters; NotSupportedError where Numba falls over a line."""
    module = compiled(ast.fix_missing_locations(rewritten.tree), rewritten.file)
    code = next(c for c in module.co_consts if isinstance(c, CodeType))
    try:
        part(bound(code, binding())).compile((*(_TYPES[k] for k in kinds), *_STATUS))
    except NumbaError as error:
        message = _ANSI.sub("", str(error))
        lines = [int(n) for n in re.findall(rf'File "{re.escape(rewritten.file)}", line (\d+)', message)]
        line = lines[0] if lines else getattr(getattr(error, "loc", None), "line", code.co_firstlineno)
        missing = re.search(r">>> (.+)", message)
        why = (
            f"Numba has no {missing[1].strip()}"
            if missing
            else next((text.strip() for text in message.splitlines() if not _NOISE.match(text)), "Numba refuses it")
        )
        why = re.sub(r"\b(?:u|there)_(\w+)", r"\1", why)
        text = linecache.getline(rewritten.file, line)
        raise NotSupportedError(refusal(name, why, rewritten.file, line, text)) from None
