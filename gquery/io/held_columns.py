"""Which columns of Parquet a GPU decodes; see `io.held_chunks`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gquery.columns.assemble import Fixed
from gquery.columns.assemble_strings import DictionaryPieces
from gquery.columns.assemble_texts import CountedStrings
from gquery.columns.held_pages import held_kernels, held_text_kernels
from gquery.device.transfer import Upload
from gquery.io.held_chunks import Decoder, HeldBytes, HeldFiles, HeldNumbers
from gquery.io.held_codes import HeldCodes
from gquery.io.held_texts import HeldTexts
from gquery.io.pages import CAN_READ, Layout, are_readable
from gquery.io.parquet_files import ParquetFiles, RowGroup


def held_column(
    files: ParquetFiles,
    groups: Sequence[RowGroup],
    layouts: set[Layout | None],
    field: tuple[int, str],
    assembly: object,
    upload: Upload,
) -> HeldBytes | None:
    """The column of a field, its number and name, if a GPU may decode it: integers, codes or texts of one leaf without NULLs,
    with one layout in all files, each of whose row groups is wanted whole. None while the kernels are not ready."""
    layout = layouts.pop() if len(layouts) == 1 else None
    if layout is None or not groups or not all(group.whole and group.rows for group in groups):
        return None
    if layout.are_texts is not isinstance(assembly, CountedStrings):
        return None
    if not (CAN_READ and isinstance(assembly, (Fixed, DictionaryPieces, CountedStrings)) and assembly.takes_held):
        return None
    if any(file.filesystem is not None for file in files.files):
        return None
    (chunks,) = files.chunks(field[0], groups)
    sizes = np.array([files.files[group.file].size for group in groups])
    are_read = are_readable(chunks, layout, np.array([group.rows for group in groups]), sizes)
    if not are_read.all() or (layout.has_levels and (chunks.nulls != 0).any()):
        return None
    device = upload.device
    if device is None or device.copy_calls() is None:
        return None
    held = HeldFiles(files, groups, layout, chunks)
    if isinstance(assembly, CountedStrings):
        text_kernels = held_text_kernels(device)
        return None if text_kernels is None else HeldTexts(Decoder(device, text_kernels, upload), held, assembly, text_kernels)
    kernels = held_kernels(device)
    if kernels is None:
        return None
    decoder = Decoder(device, kernels, upload)
    if isinstance(assembly, Fixed):
        return HeldNumbers(decoder, held, assembly)
    return HeldCodes(decoder, held, assembly, field[1])
