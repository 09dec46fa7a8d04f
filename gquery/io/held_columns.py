"""Which columns of Parquet a GPU decodes; see `io.held_chunks`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gquery.columns.assemble import Fixed
from gquery.columns.assemble_strings import DictionaryPieces
from gquery.columns.held_pages import held_kernels
from gquery.device.transfer import Upload
from gquery.io.held_chunks import Decoder, HeldColumn, HeldFiles
from gquery.io.held_codes import HeldCodes
from gquery.io.pages import CAN_READ, Layout, are_readable
from gquery.io.parquet_files import ParquetFiles, RowGroup


def held_column(
    files: ParquetFiles,
    groups: Sequence[RowGroup],
    layouts: set[Layout | None],
    field: tuple[int, str],
    assembly: object,
    upload: Upload,
) -> HeldColumn | None:
    """The column of a field, its number and name, if a GPU may decode it: integers or codes of one leaf without NULLs, with one
    layout in all files, each of whose row groups is wanted whole. None while the kernels are not ready."""
    layout = layouts.pop() if len(layouts) == 1 else None
    if layout is None or layout.are_texts or not groups or not all(group.whole and group.rows for group in groups):
        return None
    if not (CAN_READ and isinstance(assembly, (Fixed, DictionaryPieces)) and assembly.takes_held):
        return None
    if any(file.filesystem is not None for file in files.files):
        return None
    (chunks,) = files.chunks(field[0], groups)
    sizes = np.array([files.files[group.file].size for group in groups])
    are_read = are_readable(chunks, layout, np.array([group.rows for group in groups]), sizes)
    if not are_read.all() or (layout.has_levels and (chunks.nulls != 0).any()):
        return None
    device = upload.device
    kernels = None if device is None else held_kernels(device)
    if device is None or kernels is None or device.copy_calls() is None:
        return None
    decoder, held = Decoder(device, kernels, upload), HeldFiles(files, groups, layout, chunks)
    if isinstance(assembly, Fixed):
        return HeldColumn(decoder, held, assembly)
    return HeldCodes(decoder, held, assembly, field[1])
