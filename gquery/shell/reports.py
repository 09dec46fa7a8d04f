"""What .schema, .gpu and .kernels show."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import Any

from gquery.api.connection import Connection
from gquery.device.device import available_devices, cuda_device
from gquery.errors import DeviceError, InterfaceError
from gquery.expression.types import BIGINT, VARCHAR, DType
from gquery.kernels.targets import TARGETS, Compiled
from gquery.result.display import Box, render
from gquery.runtime.amounts import format_bytes
from gquery.shell.progress import seconds_text

_WIDTH = 120
_ALONE = re.compile(r"-?[\w.]+|'(?:[^']|'')*'|\([^()]*\)")  # a default that needs no parentheses


def create_text(connection: Connection, name: str) -> str:
    """A table or view as the statement that would make it."""
    view = connection.catalog.view(name)
    if view is not None:
        columns = f" ({', '.join(map(quoted, view.columns))})" if view.columns else ""
        return f"CREATE VIEW {quoted(name)}{columns} AS {view.sql};"
    asked = connection.catalog.constraints(name)
    names = {f.name.lower(): f.name for f in connection.catalog.table(name).schema}
    fields = []
    for f in connection.catalog.table(name).schema:
        default = asked.default(f.name)
        if default is not None:
            default = f" DEFAULT {default if _ALONE.fullmatch(default) else f'({default})'}"
        not_null = " NOT NULL" if f.name.lower() in asked.not_null else ""
        fields.append(f"  {quoted(f.name)} {f.dtype}{not_null}{default or ''}")
    fields += [f"  {k.kind} ({', '.join(quoted(names[c]) for c in k.columns)})" for k in asked.keys]
    fields += [f"  CHECK ({c.text})" for c in asked.checks]
    return f"CREATE TABLE {quoted(name)} (\n" + ",\n".join(fields) + "\n);"


def quoted(name: str) -> str:
    """A name as SQL needs it.

    >>> quoted("trips"), quoted("Total amount")
    ('trips', '"Total amount"')
    """
    plain = name.isidentifier() and name.isascii() and name == name.lower()
    return name if plain else '"' + name.replace('"', '""') + '"'


def devices_text(connection: Connection) -> str:
    """The devices, and which columns of the connection lie on each."""
    rows: list[Sequence[Any]] = []
    devices = available_devices()
    for device in devices:
        used = "yes" if device == connection.device else ""
        rows.append(
            (device.name, device.model, format_bytes(device.total_bytes), format_bytes(device.free_bytes), used)
        )
    text = _box(["device", "model", "memory", "free", "in use"], rows)
    if len(devices) == 1:
        try:
            cuda_device(0)
        except DeviceError as error:
            text += f"{error}\n"
    kept = [
        (source, name, device.name, column.physical_type.name.lower(), format_bytes(column.nbytes))
        for source, name, column in connection.kept_columns()
        for device in column.data.devices
    ]
    return text + (
        _box(["table", "column", "on", "stored as", "bytes"], kept) if kept else "No columns are kept yet.\n"
    )


def _compiled() -> list[tuple[str, Compiled]]:
    """What the targets that this process has loaded hold, in the order in which it was made."""
    modules = [(name, sys.modules.get(path)) for name, path in TARGETS.items()]
    return [(name, made) for name, module in modules if module is not None for made in module.TARGET.held()]


def kernels_text() -> str:
    """The kernels of this process."""
    rows = []
    for number, (target, made) in enumerate(_compiled(), 1):
        origin = "cache" if made.cached else "interpreted" if target == "python" else "compiled"
        lines = made.kernel.text.count("\n")
        rows.append((number, target, origin, seconds_text(made.seconds), lines, made.registers or None))
    if not rows:
        return "No kernel has run yet.\n"
    types = [BIGINT, VARCHAR, VARCHAR, VARCHAR, BIGINT, BIGINT]
    return _box(["number", "target", "from", "time", "lines", "registers"], rows, types)


def kernel_source(number: str) -> str:
    """The source of a kernel, by its number in `kernels_text`."""
    from gquery.kernels.targets import get_target

    made = _compiled()
    if not number.isdecimal() or not 1 <= int(number) <= len(made):
        raise InterfaceError(f"There is no kernel {number}; .kernels lists {len(made)}")
    target, compiled = made[int(number) - 1]
    return f"# {target}, {compiled.name}\n{get_target(target).source(compiled.kernel)}"


def _box(names: Sequence[str], rows: Sequence[Sequence[Any]], types: Sequence[DType] = ()) -> str:
    return render(names, types or [VARCHAR] * len(names), rows, None, Box(len(rows), _WIDTH, "")) + "\n"
