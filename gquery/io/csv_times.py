"""Days and times of CSV files that are written otherwise than ISO 8601 has them, as DuckDB finds them out.

A column of texts is of days where all of them are days of one format, of times, or of both with a blank between them. Formats
are tried in DuckDB's order: 25/12/24 is the 24th of December 2025, and 01/02/2024 the first of February. All days of a file have
the format of its first column of days, else they stay texts; so do all timestamps.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from gquery.columns.arrow_buffers import arrow_buffer, bits_of, values_of
from gquery.runtime.arrow_compute import pc, take
from gquery.runtime.records import dataclass

_SIGNS = "-/. "
_PARTS = {"Y": r"[0-9]{4}", "y": r"[0-9]{2}", "m": r"[0-9]{1,2}", "d": r"[0-9]{1,2}"}
_ORDERS = ("ymd", "Ymd", "dmy", "dmY", "mdy", "mdY")
_TIME = r"(?P<H>[0-9]{1,2}):(?P<M>[0-9]{2})"
_SECONDS = r"(?P<S>[0-9]{2})"
_FRACTION = r"(?:\.(?P<f>[0-9]{1,6}))?"
_CLOCK = rf"^\s*{_TIME}(?::{_SECONDS}{_FRACTION})?\s*$"
_FIRST = re.compile(r"\s*[0-9]{1,4}([-/. ])[0-9]{1,2}\1[0-9]{1,4}( [0-9]{1,2}:[0-9]{2}:[0-9]{2}( [AP]M)?)?\s*", re.IGNORECASE)
_DAY = 86_400_000_000  # microseconds


@dataclass(frozen=True)
class TimeFormat:
    """In which order the parts of a day stand, what is between them, and whether hours are those of half days."""

    order: str
    sign: str
    has_halves: bool = False

    def pattern(self, has_time: bool) -> str:
        """The texts of this format, as a regular expression."""
        parts = re.escape(self.sign).join(f"(?P<{p}>{_PARTS[p]})" for p in self.order)
        if not has_time:
            return rf"^\s*{parts}\s*$"
        return rf"^\s*{parts} {_TIME}:{_SECONDS}{' (?P<p>[AaPp])[Mm]' if self.has_halves else ''}\s*$"


def is_time(text: str) -> bool:
    """Whether a text looks like a day, a time, or both, of any such format: no name of a column does.

    >>> is_time("25/12/2024"), is_time("10:30"), is_time("1.2.24 3:04:05"), is_time("12/25"), is_time("1.5")
    (True, True, True, False, False)
    """
    return _FIRST.fullmatch(text) is not None or re.fullmatch(_CLOCK.strip("^$"), text) is not None


def with_times(table: pa.Table, texts: Sequence[str]) -> pa.Table:
    """The table with days, times and timestamps in place of texts that are such, in the columns of these names."""
    formats: dict[bool, TimeFormat] = {}  # of days, and of timestamps
    for name in table.column_names:
        column = table[name]
        if pa.types.is_date32(column.type) or pa.types.is_timestamp(column.type):  # which Arrow has found out
            formats.setdefault(pa.types.is_timestamp(column.type), TimeFormat("Ymd", "-"))
        if name not in texts:
            continue
        first = next((v for v in _beginning(column) if v.strip()), None)
        if first is None or not is_time(first):
            continue
        coded = column.combine_chunks().dictionary_encode()  # days come again and again: each is read once
        made = _typed(coded.dictionary, first, formats)
        if made is not None:
            table = table.set_column(table.column_names.index(name), name, take(made, coded.indices))
    return table


def with_format(table: pa.Table, name: str, form: str, must_fit: bool) -> pa.Table:
    """The table with days in place of the texts of a column, which have a format of ``strptime``. Where one is no such day,
    that is an error, or the column stays as it is."""
    column = table[name]
    made = pc.strptime(column, format=form, unit="s", error_is_null=True)
    wrong = pc.and_(column.is_valid(), made.is_null())
    if pc.any(wrong, min_count=0).as_py():
        if must_fit:
            raise pa.ArrowInvalid(f"{column.filter(wrong)[0].as_py()!r} is no day of the format {form}")
        return table
    if not must_fit and column.null_count == len(column):
        return table
    return table.set_column(table.column_names.index(name), name, made.cast(pa.date32(), safe=False))


def _beginning(column: pa.ChunkedArray) -> list[str]:
    """The first texts, where NULL does not fill the beginning."""
    kept = column.drop_null()
    return [str(v) for v in kept.slice(0, 1).to_pylist()]


def _typed(texts: pa.Array, first: str, formats: dict[bool, TimeFormat]) -> pa.Array | None:
    if re.fullmatch(_CLOCK.strip("^$"), first):
        return _clocks(texts)
    found = _FIRST.fullmatch(first)
    assert found is not None
    has_time = found[2] is not None
    asked = [formats[has_time]] if has_time in formats else [
        TimeFormat(order, found[1], found[3] is not None) for order in _ORDERS if has_time <= (order[-1] != "y")
    ]  # fmt: skip
    if has_time and has_time not in formats:  # months before days stand beside AM and PM alone, and there not behind them
        asked = [f for f in asked if (f.order == "mdY") == f.has_halves]
    for form in asked:
        made = _moments(texts, form, has_time)
        if made is not None:
            formats[has_time] = form
            return made
    return None


def _moments(texts: pa.Array, form: TimeFormat, has_time: bool) -> pa.Array | None:
    """Days or timestamps; None where a text is none."""
    parts = _parts(texts, form.pattern(has_time))
    if parts is None:
        return None
    year = parts["Y"] if "Y" in parts else np.where(parts["y"] < 69, 2000, 1900) + parts["y"]
    is_there = _valid(texts)
    month, day = parts["m"], parts["d"]
    months = (year - 1970) * 12 + np.clip(month, 1, 12) - 1
    begins, ends = (m.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64) for m in (months, months + 1))
    is_right = (month >= 1) & (month <= 12) & (day >= 1) & (day <= ends - begins)
    days = begins + day - 1
    if not has_time:
        return _array(days.astype(np.int32), pa.date32(), is_there) if is_right[is_there].all() else None
    hour = parts["H"]
    if form.has_halves:
        is_right &= (hour >= 1) & (hour <= 12)
        hour = hour % 12 + 12 * parts["p"]
    is_right &= (hour < 24) & (parts["M"] < 60) & (parts["S"] < 60)
    micros = days * _DAY + ((hour * 60 + parts["M"]) * 60 + parts["S"]) * 1_000_000
    return _array(micros, pa.timestamp("us"), is_there) if is_right[is_there].all() else None


def _clocks(texts: pa.Array) -> pa.Array | None:
    parts = _parts(texts, _CLOCK)
    if parts is None:
        return None
    is_there = _valid(texts)
    is_right = (parts["H"] < 24) & (parts["M"] < 60) & (parts["S"] < 60)
    micros = ((parts["H"] * 60 + parts["M"]) * 60 + parts["S"]) * 1_000_000 + parts["f"]
    return _array(micros, pa.time64("us"), is_there) if is_right[is_there].all() else None


def _parts(texts: pa.Array, pattern: str) -> dict[str, np.ndarray] | None:
    """The numbers that a pattern finds in texts, 0 where there is none; None where a text has them not."""
    found = pc.extract_regex(texts, pattern)
    if found.null_count > texts.null_count:
        return None
    made = {}
    for name in (f.name for f in found.type.fields):
        part = pc.struct_field(found, name)
        if name == "f":
            part = pc.utf8_rpad(part, 6, "0")
        if name == "p":
            part = pc.if_else(pc.equal(pc.utf8_lower(part), "p"), "1", "0")
        part = pc.if_else(pc.equal(pc.fill_null(part, ""), ""), "0", part)
        made[name] = values_of(pc.fill_null(part, "0").cast(pa.int64()), "int64")
    return made


def _valid(texts: pa.Array) -> np.ndarray:
    """Where there is a text."""
    valid: np.ndarray = bits_of(texts, 0).view(np.bool_)
    return valid


def _array(values: np.ndarray, type_: pa.DataType, is_there: np.ndarray) -> pa.Array:
    buffers = [arrow_buffer(np.packbits(is_there, bitorder="little")), arrow_buffer(values)]
    return pa.Array.from_buffers(type_, len(values), buffers)
