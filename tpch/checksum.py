"""Checksums of answers: what an independent run can be held against where the answers themselves are not at hand.

A checksum does not depend on what may differ between two right answers: rows that tie under ORDER BY may change places,
decimals may have more zeros, DOUBLE may differ in the last bits. So exact values and the order of the sort keys are
hashed, and DOUBLE columns are summed up and compared within 1e-9.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import click

from tpch.engines.base import Row
from tpch.validate import same


@dataclass(frozen=True)
class Checksum:
    """``exact`` hashes the exact values of all rows, ``order`` those that ORDER BY names in the order of the rows;
    ``sums`` are those of the DOUBLE columns."""

    rows: int
    exact: str
    order: str
    sums: tuple[float, ...]


def checksum(rows: Sequence[Row], order: Sequence[int]) -> Checksum:
    """
    >>> checksum([(1, Decimal("2.50"))], (0,)) == checksum([(Decimal(1), Decimal("2.5"))], (0,))
    True
    """
    inexact = sorted({c for row in rows for c, value in enumerate(row) if isinstance(value, float)})
    lines = [_line([v for c, v in enumerate(row) if c not in inexact]) for row in rows]
    keys = [_line([row[c] for c in order if c not in inexact]) for row in rows]
    sums = tuple(sum(row[c] for row in rows if row[c] is not None) for c in inexact)
    return Checksum(len(rows), _hash(sorted(lines)), _hash(keys), sums)


def mismatch(got: Checksum, want: Checksum) -> str | None:
    """In what two checksums differ; None where they agree."""
    if got.rows != want.rows:
        return f"{got.rows} rows, expected {want.rows}"
    if got.exact != want.exact:
        return "the checksum of the exact values differs"
    if got.order != want.order:
        return "the checksum of the order differs"
    if len(got.sums) != len(want.sums) or not all(map(same, got.sums, want.sums)):
        return f"the sums of the DOUBLE columns are {list(got.sums)}, expected {list(want.sums)}"
    return None


def write(path: Path, of: Mapping[str, Any], found: Mapping[int, Checksum]) -> None:
    """``of`` tells what the checksums belong to: scale factor, parameters, engine."""
    record = {**of, "queries": {str(number): asdict(value) for number, value in sorted(found.items())}}
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def read(path: Path, of: Mapping[str, Any]) -> dict[int, Checksum]:
    """The checksums of a file. It must be for the same data and parameters: what ``of`` says, the file says too."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        found = {int(n): Checksum(**{**v, "sums": tuple(v["sums"])}) for n, v in record["queries"].items()}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise click.ClickException(f"{path} holds no checksums: {error}") from None
    for name, value in of.items():
        if record.get(name) != value:
            raise click.ClickException(f"{path} is for {name} {record.get(name)}, this run for {value}")
    return found


def _line(values: Sequence[Any]) -> str:
    return "|".join(_text(v) for v in values)


def _text(value: Any) -> str:
    """A value in one spelling: numbers without zeros at their end, whatever type holds them."""
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        text = f"{value:f}" if isinstance(value, Decimal) else str(value)
        text = text.rstrip("0").rstrip(".") if "." in text else text
        return "0" if text == "-0" else text
    return "NULL" if value is None else str(value)


def _hash(lines: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
