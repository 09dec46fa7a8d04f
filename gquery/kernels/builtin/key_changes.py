"""Where keys change from one row to the next in a given order: the starts of partitions and of peers.

Keys are compared as SQL groups them: NULL equals NULL, NaN equals NaN, -0.0 equals 0.0, text by its bytes. One loop compares the
keys of partitions and those of the order behind them, so that each key is read once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from gquery.columns.table import ColumnData
from gquery.device.array import Array
from gquery.device.device import Device
from gquery.expression.types import PhysicalType
from gquery.kernels.bindings import Argument
from gquery.kernels.builtin.define import BuiltinKernel, address, builtin_kernel, launch
from gquery.runtime.tuples import NamedTuple

_SAME = {
    "integer": "eq_i64(i64(c{n}[this]), i64(c{n}[last]))",
    "float": "eq_f64(f64(c{n}[this]), f64(c{n}[last]))",
    "i128": "eq_i128(load_i128(c{n}, i64(this)), load_i128(c{n}, i64(last)))",
    "string32": "eq_str(string32(c{n}, k{n}, i64(this)), string32(c{n}, k{n}, i64(last)))",
    "string64": "eq_str(string64(c{n}, k{n}, i64(this)), string64(c{n}, k{n}, i64(last)))",
    "view": "eq_str(view(c{n}, i64(this)), view(c{n}, i64(last)))",
}
_KINDS = {
    PhysicalType.F32: "float",
    PhysicalType.F64: "float",
    PhysicalType.I128: "i128",
    PhysicalType.STRING32: "string32",
    PhysicalType.STRING64: "string64",
    PhysicalType.VIEW: "view",
}
_ELEMENTS = {
    PhysicalType.BOOL: "u8",
    PhysicalType.I128: "i64",
    PhysicalType.STRING32: "i32",
    PhysicalType.STRING64: "i64",
    PhysicalType.VIEW: "i64",
}


class _Shape(NamedTuple):
    """What a kernel's text must know of a key."""

    kind: str
    element: str
    nullable: bool


def key_changes(
    partition: Sequence[ColumnData], order: Sequence[ColumnData], rows: Array | None, device: Device, workers: int = 1
) -> tuple[Array, Array]:
    """For each place of the rows in this order (None: as they stand) whether its partition keys differ from those of the place
    before, and whether any key does; 1 for the first place (uint8)."""
    keys = [*partition, *order]
    size = keys[0].length
    starts, peers = device.empty(size, np.uint8), device.empty(size, np.uint8)
    values: list[Argument] = [] if rows is None else [rows]
    for key in keys:
        values.append(key.data.on(device))
        if _KINDS.get(key.physical_type, "") in ("string32", "string64"):
            assert key.characters is not None
            values.append(address(key.characters.on(device)))
        if key.validity is not None:
            values.append(key.validity.on(device))
    kernel = _kernel(tuple([_shape(k) for k in keys]), len(partition), rows is not None)
    launch(kernel, size, starts, *values, starts, peers, workers=workers)
    return starts, peers


def _shape(key: ColumnData) -> _Shape:
    kind = _KINDS.get(key.physical_type, "integer")
    return _Shape(kind, _ELEMENTS.get(key.physical_type, key.physical_type.value), key.validity is not None)


@lru_cache(maxsize=256)
def _kernel(shapes: tuple[_Shape, ...], partition: int, ordered: bool) -> BuiltinKernel:
    """The kernel for keys of these shapes, of which the first ``partition`` make partitions."""
    parameters = ["rows:*u32"] * ordered
    lines = [
        "starts = eq_i64(i64(i), 0)",
        "peers = eq_i64(i64(i), 0)",
        "if not starts:",
        "    before = row_index(sub_i64(i64(i), 1))",
        f"    this = {'row_index(i64(rows[i]))' if ordered else 'row_index(i64(i))'}",
        f"    last = {'row_index(i64(rows[before]))' if ordered else 'row_index(i64(before))'}",
    ]
    for n, shape in enumerate(shapes):
        parameters.append(f"c{n}:*{shape.element}")
        if shape.kind in ("string32", "string64"):
            parameters.append(f"k{n}:i64")
        same, changed = _SAME[shape.kind].format(n=n), "starts" if n < partition else "peers"
        if not shape.nullable:
            lines += [f"    if not {same}:", f"        {changed} = True"]
            continue
        parameters.append(f"m{n}:*u8")
        lines += [
            f"    if ne_i64(i64(m{n}[this]), i64(m{n}[last])):",
            f"        {changed} = True",
            f"    elif ne_i64(i64(m{n}[this]), 0):",
            f"        if not {same}:",
            f"            {changed} = True",
        ]
    lines += ["store_bool(partitions, i64(i), starts)", "store_bool(all_keys, i64(i), starts or peers)"]
    return builtin_kernel(" ".join([*parameters, "partitions:*u8", "all_keys:*u8"]), *lines)
