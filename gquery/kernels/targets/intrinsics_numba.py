"""From the definition of an intrinsic to what Numba calls: its types, its arity, and pairs for what has no type of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gquery.kernels.targets.intrinsics import I64, I128, Definition, constant


def numba_types() -> dict[str, Any]:
    """The Numba type of each type name."""
    from numba import types

    return {
        "i64": types.int64, "u64": types.uint64, "f64": types.float64, "bool": types.boolean, "void": types.void,
        "i128": types.Tuple((types.int64, types.uint64)), "str": types.UniTuple(types.int64, 2),
    }  # fmt: skip


def build(definition: Definition, intrinsic: Callable[[Any], Any]) -> Any:
    """The Numba intrinsic of a definition, by the ``intrinsic`` decorator of the target."""
    return build_chosen(definition.name, len(definition.arguments), lambda *given: definition, intrinsic)


def build_chosen(
    name: str, arguments: int, choose: Callable[..., Definition | None], intrinsic: Callable[[Any], Any]
) -> Any:
    """An intrinsic whose definition the types of its arguments choose; None refuses them."""
    types = numba_types()

    def typing(context: Any, *given: Any) -> Any:
        definition = choose(*given)
        if definition is None:
            return None
        taken = [g if t == "*" else types[t] for g, t in zip(given, definition.arguments, strict=True)]
        made = given[0] if definition.result == "*" else types[definition.result]  # a pointer of the same type
        return made(*taken), lambda *a: generate(definition, *a)

    def generate(definition: Definition, context: Any, builder: Any, signature: Any, values: Any) -> Any:
        result = definition.emit(
            builder, *(_unpack(builder, t, v) for t, v in zip(definition.arguments, values, strict=True))
        )
        match definition.result:
            case "void":
                return context.get_dummy_value()
            case "i128":
                low, high = builder.trunc(result, I64), builder.trunc(builder.lshr(result, constant(64, I128)), I64)
                return context.make_tuple(builder, signature.return_type, (high, low))
            case "str":
                return context.make_tuple(builder, signature.return_type, result)
            case "*":
                return builder.bitcast(result, values[0].type)
            case _:
                return result

    exact = _ARITY[arguments](typing)
    exact.__name__ = exact.__qualname__ = name
    return intrinsic(exact)


# Numba reads the number of arguments off the function itself
_ARITY: dict[int, Callable[[Any], Any]] = {
    0: lambda f: lambda context: f(context),
    1: lambda f: lambda context, a: f(context, a),
    2: lambda f: lambda context, a, b: f(context, a, b),
    3: lambda f: lambda context, a, b, c: f(context, a, b, c),
    4: lambda f: lambda context, a, b, c, d: f(context, a, b, c, d),
}


def _unpack(b: Any, type_: str, value: Any) -> Any:
    if type_ == "i128":
        high, low = b.extract_value(value, 0), b.extract_value(value, 1)
        return b.or_(b.shl(b.zext(high, I128), constant(64, I128)), b.zext(low, I128))
    if type_ == "str":
        return b.extract_value(value, 0), b.extract_value(value, 1)
    return value
