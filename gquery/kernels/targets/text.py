"""Texts of modules that targets compile: scalar functions as source, indentation, the names that a text needs."""

from __future__ import annotations

import ast
import builtins
import textwrap
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from gquery.kernels.kernel import Kernel, function_source
from gquery.runtime.syntax import parse


@lru_cache(maxsize=1024)
def function_text(name: str, function: Callable[..., Any]) -> str:
    """The source of a scalar function's body without decorators, annotations and docstring, named ``name``."""
    tree = parse(textwrap.dedent(function_source(function)))
    node = tree.body[0]
    assert isinstance(node, ast.FunctionDef), f"{name} is not a plain function"
    node.name, node.decorator_list, node.returns = name, [], None
    for argument in node.args.args:
        argument.annotation = None
    if ast.get_docstring(node) is not None:
        node.body = node.body[1:]
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def free_names(text: str) -> set[str]:
    """The names that a module's text loads and nowhere binds: what it has to import."""
    loaded, bound = set(), set(dir(builtins))
    for node in ast.walk(parse(text)):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                loaded.add(name)
            case ast.Name(id=name) | ast.FunctionDef(name=name) | ast.arg(arg=name):
                bound.add(name)
    return loaded - bound


def functions_text(kernel: Kernel, part: str) -> str:
    """The scalar functions that a kernel calls and its parts, as text of its module."""
    functions = "".join(f"@device\n{function_text(name, f)}\n\n" for name, f in kernel.functions)
    return functions + "".join(
        "\n".join((part + found.lines[0], *found.lines[1:], "", "", "")) for found in kernel.parts
    )
