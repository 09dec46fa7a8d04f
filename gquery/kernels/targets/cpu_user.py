"""Python functions of users for this processor: Numba makes a module of one, as text, for kernels that are lowered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core.compiler_lock import global_compiler_lock
from numba.core.errors import NumbaError

from gquery.kernels.lowering.user import UserModule
from gquery.kernels.lowering.values import Type
from gquery.kernels.targets.cpu_linking import module_text, part
from gquery.kernels.targets.cpu_primitives import binding
from gquery.kernels.targets.user_entry import bound, entry, numba_types, refusal, result_type
from gquery.runtime import collector


@global_compiler_lock  # type: ignore[untyped-decorator]
def make_module(function: Callable[..., Any], given: tuple[Type, ...], name: str) -> UserModule:
    """See `lowering.user.MakeModule`."""
    try:
        with collector.paused():
            compiled = part(bound(function.__code__, binding()))
            types = numba_types(given)
            compiled.compile(types)
            result = result_type(compiled.overloads[types].signature.return_type)
            return UserModule(result, module_text(*entry(compiled, given, result), name))
    except NumbaError as error:
        raise refusal(error) from error
