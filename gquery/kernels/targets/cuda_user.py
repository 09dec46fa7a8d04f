"""Python functions of users for a GPU: Numba makes modules of one, in libNVVM's dialect, for kernels that are lowered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.cuda.compiler import compile_cuda
from numba.cuda.core.errors import NumbaError

from gquery.expression.facts import OLDEST_CAPABILITY
from gquery.kernels.lowering.names import LINKED
from gquery.kernels.lowering.user import UserModule
from gquery.kernels.lowering.values import Type
from gquery.kernels.targets.cuda_primitives import binding, compiling_for, device, void
from gquery.kernels.targets.user_entry import bound, entry, numba_types, refusal, result_type
from gquery.runtime import collector


def make_module(function: Callable[..., Any], given: tuple[Type, ...], name: str) -> UserModule:
    """See `lowering.user.MakeModule`; what plain arithmetic is made into is the same for all GPUs."""
    try:
        with collector.paused(), compiling_for(OLDEST_CAPABILITY):
            compiled = device(bound(function.__code__, binding()))
            result = result_type(compiled.compile_device(numba_types(given)).signature.return_type)
            made, parameters = entry(compiled, given, result)
            library = compile_cuda(
                made, void, parameters, cc=OLDEST_CAPABILITY, abi="c", abi_info={"abi_name": name}
            ).library
    except NumbaError as error:
        raise refusal(error) from error
    for part in library.modules:
        for found in part.global_values:
            if isinstance(found, ir.GlobalVariable):
                found.linkage = "internal"
            elif not found.is_declaration:
                found.linkage = "linkonce_odr"  # what is inlined wherever it is called, or needed twice, goes
    return UserModule(result, LINKED.join(dict.fromkeys(map(str, library.modules))))
