"""Intrinsics: definitions of `targets.intrinsics` as functions of an LLVM module, inlined wherever they are called."""

from __future__ import annotations

import re

from llvmlite import ir as llvm

from gquery.kernels.lowering.function import LoweredFunction
from gquery.kernels.targets.intrinsics import F64, I1, I8, I64, I128, Definition

INLINED = "alwaysinline nounwind"
_PAIR = llvm.LiteralStructType([I64, I64])
_TYPES = {"i64": I64, "u64": I64, "f64": F64, "bool": I1, "i128": I128, "str": _PAIR, "*": I8.as_pointer()}
# what lanes of a warp, or a block, do together
_MEETS_OTHERS = re.compile(r"activemask|bar\.warp|barrier|match|shfl|vote")


def lower_intrinsic(definition: Definition) -> LoweredFunction:
    """The function of a definition, which emits into a function of its own."""
    module = llvm.Module(definition.name)
    is_void = definition.result == "void"
    type_ = llvm.FunctionType(
        llvm.VoidType() if is_void else _TYPES[definition.result], [_TYPES[a] for a in definition.arguments]
    )
    function = llvm.Function(module, type_, definition.name)
    function.linkage = "internal"
    b = llvm.IRBuilder(function.append_basic_block("entry"))
    given = [
        (b.extract_value(value, 0), b.extract_value(value, 1)) if t == "str" else value
        for t, value in zip(definition.arguments, function.args, strict=True)
    ]
    made = definition.emit(b, *given)
    if is_void:
        b.ret_void()
    elif definition.result == "str":
        first = b.insert_value(llvm.Constant(_PAIR, llvm.Undefined), made[0], 0)
        b.ret(b.insert_value(first, made[1], 1))
    else:
        b.ret(made)
    declarations = tuple([str(g) for g in module.globals.values() if g is not function])
    text = str(function)
    is_convergent = _MEETS_OTHERS.search(text) is not None
    head, brace, body = text.partition("\n{")
    lines = f"{head} {'convergent ' * is_convergent}{INLINED}{brace}{body}"
    return LoweredFunction(
        definition.name, definition.arguments, definition.result, lines, (), declarations, is_convergent
    )
